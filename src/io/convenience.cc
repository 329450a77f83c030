#include "packtrain/storage.h"
