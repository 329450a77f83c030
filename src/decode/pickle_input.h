// The bytes of a pickle on their way through the machine that reads it.
#pragma once

#include <string>
#include <string_view>

#include "base/little_endian.h"
#include "packtrain/status.h"

namespace packtrain {

// What fails sets status_ and returns false. One thread at a time.
class PickleInput {
 protected:
  explicit PickleInput(std::string_view bytes) : in_(bytes) {}

  bool fail(std::string what) {
    status_ = Status(Code::corrupt, std::move(what)).at("pickle @ " + std::to_string(start_));
    return false;
  }

  bool take(uint64_t bytes, std::string_view& out) {
    if (bytes > in_.size() - at_) return fail("it ends inside a value: the file is cut short");
    out = in_.substr(at_, static_cast<size_t>(bytes));
    at_ += static_cast<size_t>(bytes);
    return true;
  }

  template <class T>
  bool number(T& out) {
    std::string_view bytes;
    if (!take(sizeof(T), bytes)) return false;
    out = load_le<T>(bytes.data());
    return true;
  }

  bool line(std::string_view& out) {
    const size_t end = in_.find('\n', at_);
    if (end == std::string_view::npos) return fail("it ends inside a line: the file is cut short");
    out = in_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }

  const std::string_view in_;
  size_t at_ = 0, start_ = 0;  // where it reads; where the opcode began
  Status status_;
};

}  // namespace packtrain
