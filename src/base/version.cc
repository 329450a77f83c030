#include "base/version.h"

namespace packtrain {

std::string_view version() { return PACKTRAIN_VERSION; }

}  // namespace packtrain
