// Names that come from a dataset, made safe to write to.
#pragma once

#include <string>
#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

// A recorded path as a path below the target folder: "." components are dropped; an absolute path, "..", an
// empty component or a byte 0 is Code::corrupt, because following it would write elsewhere.
Result<std::string> path_below_target(std::string_view recorded);

}  // namespace packtrain
