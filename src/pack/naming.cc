#include "packtrain/pack.h"
