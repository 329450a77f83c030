// A JSON value, light enough for every file to include; the parser behind it is nlohmann's, in json.cc alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

// A plain value. Objects keep the order of insertion. Integers keep all 64 bits.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;                                             // null
  Json(std::nullptr_t) {}                                       // NOLINT
  Json(bool value) : value_(value) {}                           // NOLINT
  Json(int value) : value_(int64_t{value}) {}                   // NOLINT
  Json(int64_t value) : value_(value) {}                        // NOLINT
  Json(uint32_t value) : value_(uint64_t{value}) {}             // NOLINT
  Json(uint64_t value) : value_(value) {}                       // NOLINT
  Json(double value) : value_(value) {}                         // NOLINT
  Json(std::string value) : value_(std::move(value)) {}         // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  Json(const char* value) : value_(std::string(value)) {}       // NOLINT
  static Json array() { return Json(Value(Array{})); }
  static Json object() { return Json(Value(Object{})); }

  bool is_null() const { return value_.index() == 0; }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_integer() const {
    return std::holds_alternative<int64_t>(value_) || std::holds_alternative<uint64_t>(value_);
  }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // With a default for another type: reading is as forgiving as the caller wants it to be.
  bool as_bool(bool otherwise = false) const;
  int64_t as_int(int64_t otherwise = 0) const;  // an integer in range, else otherwise
  uint64_t as_uint(uint64_t otherwise = 0) const;
  double as_double(double otherwise = 0) const;
  const std::string& as_string() const;  // "" for another type
  const Array& items() const;            // empty for another type
  const Object& members() const;
  const Json& operator[](std::string_view key) const;  // null if absent
  bool has(std::string_view key) const;

  Json& set(std::string key, Json value);     // makes it an object; replaces the member of that name
  Json& append(std::string key, Json value);  // as set, without looking for a member of that name
  Json& push(Json value);                     // makes it an array

  // Bytes that are not UTF-8 are written as U+FFFD. `indent` < 0: one line.
  std::string dump(int indent = -1) const;
  static Result<Json> parse(
      std::string_view text);  // Code::corrupt with the byte offset; nesting at most 256

 private:
  using Value = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object>;
  explicit Json(Value value) : value_(std::move(value)) {}
  void dump_to(std::string& out, int indent, int level) const;
  Value value_;
};

}  // namespace packtrain
