#include "packtrain/codec.h"
