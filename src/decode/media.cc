#include "packtrain/decode.h"
