// Names for temporary files that tell who made them.
#pragma once

#include <string>
#include <string_view>

namespace packtrain {

// HOST-PID-N: a name for temporary files that no other live process has.
std::string process_token();
// Whether a process that made a token on this host is gone; false for other hosts, whose processes cannot be
// seen.
bool token_is_dead(std::string_view token);

}  // namespace packtrain
