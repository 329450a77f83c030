#include "base/json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace packtrain {
namespace {

using Library = nlohmann::ordered_json;
constexpr size_t kDeepest = 256;

const std::string kNoText;
const Json::Array kNoItems;
const Json::Object kNoMembers;
const Json kNull;

// "line 2, column 1: unexpected end of input; expected '}'", from what the library says:
// "[json.exception.parse_error.101] parse error at line 2, column 1: syntax error while parsing object -
// unexpected end of input; expected '}'". What is spelt otherwise loses only the name of the exception.
std::string in_plain_words(std::string_view what) {
  if (what.starts_with('[')) what.remove_prefix(std::min(what.find("] ") + 2, what.size()));
  constexpr std::string_view kError = "parse error at ", kSyntax = ": syntax error while parsing ";
  if (what.starts_with(kError)) what.remove_prefix(kError.size());
  const size_t syntax = what.find(kSyntax);
  const size_t dash = what.find(" - ", std::min(syntax, what.size()));
  if (syntax == std::string_view::npos || dash == std::string_view::npos) return std::string(what);
  return std::string(what.substr(0, syntax)) + ": " + std::string(what.substr(dash + 3));
}

// Builds a Json from the parser's events, so that no second tree is made.
class Builder : public nlohmann::json_sax<Library> {
 public:
  bool null() override { return put(Json()); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(number_integer_t value) override { return put(Json(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override { return put(Json(uint64_t{value})); }
  bool number_float(number_float_t value, const string_t&) override { return put(Json(value)); }
  bool string(string_t& value) override { return put(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    stack_.back().key = std::move(value);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    error_ = "not valid JSON: " + in_plain_words(error.what());
    return false;
  }

  Json root;
  std::string error_;

 private:
  struct Level {
    Json value;
    std::string key;
  };

  bool put(Json value) {
    if (stack_.empty()) {
      root = std::move(value);
    } else {
      add_to(stack_.back(), std::move(value));
    }
    return true;
  }
  bool open(Json container) {
    if (stack_.size() >= kDeepest) {
      error_ = "nested more than 256 levels deep";
      return false;
    }
    stack_.push_back({std::move(container), {}});
    return true;
  }
  bool close() {
    Json value = std::move(stack_.back().value);
    stack_.pop_back();
    return put(std::move(value));
  }
  static void add_to(Level& level, Json value) {
    if (level.value.is_array()) {
      level.value.push(std::move(value));
    } else {
      level.value.append(std::move(level.key), std::move(value));
    }
  }

  std::vector<Level> stack_;
};

void append_escaped(std::string& out, const std::string& text) {
  // The library's own serialiser, for its UTF-8 handling.
  out += Library(text).dump(-1, ' ', false, Library::error_handler_t::replace);
}

}  // namespace

bool Json::as_bool(bool otherwise) const {
  const bool* value = std::get_if<bool>(&value_);
  return value ? *value : otherwise;
}

int64_t Json::as_int(int64_t otherwise) const {
  if (const auto* value = std::get_if<int64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<uint64_t>(&value_)) {
    return *value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ? static_cast<int64_t>(*value)
                                                                                : otherwise;
  }
  return otherwise;
}

uint64_t Json::as_uint(uint64_t otherwise) const {
  if (const auto* value = std::get_if<uint64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<int64_t>(&value_)) {
    return *value >= 0 ? static_cast<uint64_t>(*value) : otherwise;
  }
  return otherwise;
}

double Json::as_double(double otherwise) const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<uint64_t>(&value_)) return static_cast<double>(*value);
  return otherwise;
}

const std::string& Json::as_string() const {
  const auto* value = std::get_if<std::string>(&value_);
  return value ? *value : kNoText;
}

const Json::Array& Json::items() const {
  const auto* value = std::get_if<Array>(&value_);
  return value ? *value : kNoItems;
}

const Json::Object& Json::members() const {
  const auto* value = std::get_if<Object>(&value_);
  return value ? *value : kNoMembers;
}

const Json& Json::operator[](std::string_view key) const {
  for (const Member& member : members()) {
    if (member.first == key) return member.second;
  }
  return kNull;
}

bool Json::has(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.first == key) return true;
  }
  return false;
}

Json& Json::append(std::string key, Json value) {
  if (!is_object()) value_ = Object{};
  std::get<Object>(value_).emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::set(std::string key, Json value) {
  if (is_object()) {
    for (Member& member : std::get<Object>(value_)) {
      if (member.first == key) {
        member.second = std::move(value);
        return *this;
      }
    }
  }
  return append(std::move(key), std::move(value));
}

Json& Json::push(Json value) {
  if (!is_array()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

void Json::dump_to(std::string& out, int indent, int level) const {
  const auto line_break = [&](int at_level) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent) * at_level, ' ');
  };
  if (is_array() || is_object()) {
    const bool array = is_array();
    out += array ? '[' : '{';
    bool first = true;
    const auto next = [&] {
      if (!first) out += indent < 0 ? ", " : ",";
      first = false;
      line_break(level + 1);
    };
    for (const Json& item : items()) {
      next();
      item.dump_to(out, indent, level + 1);
    }
    for (const Member& member : members()) {
      next();
      append_escaped(out, member.first);
      out += ": ";
      member.second.dump_to(out, indent, level + 1);
    }
    if (!first) line_break(level);
    out += array ? ']' : '}';
  } else if (is_string()) {
    append_escaped(out, std::get<std::string>(value_));
  } else if (const auto* number = std::get_if<double>(&value_)) {
    out += Library(*number).dump();
  } else if (const auto* integer = std::get_if<int64_t>(&value_)) {
    out += std::to_string(*integer);
  } else if (const auto* natural = std::get_if<uint64_t>(&value_)) {
    out += std::to_string(*natural);
  } else if (const auto* truth = std::get_if<bool>(&value_)) {
    out += *truth ? "true" : "false";
  } else {
    out += "null";
  }
}

std::string Json::dump(int indent) const {
  std::string out;
  dump_to(out, indent, 0);
  return out;
}

Result<Json> Json::parse(std::string_view text) {
  Builder builder;
  if (!Library::sax_parse(text, &builder)) {
    return Status(Code::corrupt, builder.error_.empty() ? "not valid JSON" : builder.error_);
  }
  return std::move(builder.root);
}

}  // namespace packtrain
