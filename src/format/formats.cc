#include "packtrain/format.h"
