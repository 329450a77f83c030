// How a failure travels: as a value. Nothing in packtrain throws across a folder.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace packtrain {

// A view of bytes; never owns them.
using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// What kind of failure. Each maps to one exit code of the command and one Python exception.
enum class Code : uint8_t {
  ok,
  not_found,    // a path, key, class or field that is not there
  invalid,      // wrong usage: an option, a combination, an argument
  corrupt,      // the bytes are not what they must be
  no_room,      // bytes, inodes, memory or quota exhausted
  io,           // the storage or the system failed
  limit,        // this process or machine may open no more files: no fault of the file that was asked for
  unsupported,  // valid, but this build or version cannot do it
  stopped,      // by a signal or by the caller; resumable
};

std::string_view code_name(Code code);

// Success, or a code and a sentence that says what, where and what to do next. Immutable, cheap to
// copy; success allocates nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::ok; }
  const std::string& message() const;
  // The places that were put in front of the message by at(), outermost first; empty if none.
  const std::string& where() const;
  // The message with its places in front: "a.tar: member b.jpg @ 512: header is cut short".
  std::string text() const;
  // A copy with one more place in front.
  Status at(std::string_view where) const;

 private:
  struct Rep {
    Code code;
    std::string message, where;
  };
  std::shared_ptr<const Rep> rep_;
};

// A failure of the system, from errno: ENOSPC, EDQUOT and ENOMEM become no_room, ENOENT not_found, EMFILE and
// ENFILE limit, everything else io. `doing` is a phrase such as "cannot open".
Status status_from_errno(int error, std::string_view doing);

// A T, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                                  // NOLINT
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return assert(ok()), *value_; }
  const T& value() const& { return assert(ok()), *value_; }
  T&& value() && { return assert(ok()), std::move(*value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

// Leaves the enclosing function with the status of a failed expression.
#define PACKTRAIN_TRY(expression)                                            \
  do {                                                                       \
    if (auto try_status = (expression); !try_status.ok()) return try_status; \
  } while (false)

// Declares `name` and gives it the value of a Result, or leaves the function with its status.
#define PACKTRAIN_ASSIGN(name, expression)                \
  auto name##_result = (expression);                      \
  if (!name##_result.ok()) return name##_result.status(); \
  auto name = std::move(name##_result).value()

}  // namespace packtrain
