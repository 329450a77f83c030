#pragma once

#include <string_view>

namespace packtrain {

std::string_view version();  // "0.1.0"

}  // namespace packtrain
