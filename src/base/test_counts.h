// For tests: how much of it is tried.
#pragma once

#include <cstdlib>
#include <string_view>

namespace packtrain {

inline bool is_asked_for(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

// PACKTRAIN_SOAK=1 asks for the full counts.
inline bool soaking() { return is_asked_for("PACKTRAIN_SOAK"); }

// PACKTRAIN_FEW=1: whoever runs the tests looks for something that more of the same does not show, as
// ThreadSanitizer does where a single thread works.
inline bool few_will_do() { return is_asked_for("PACKTRAIN_FEW"); }

template <class T>
T count_of(T few, T usual, T full) {
  return soaking() ? full : few_will_do() ? few : usual;
}

}  // namespace packtrain
