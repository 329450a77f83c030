#include "decode/pickle.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <unordered_map>

#include "base/words.h"
#include "decode/pickle_input.h"
#include "decode/pickle_objects.h"
#include "decode/pickle_opcodes.h"
#include "decode/python_text.h"

namespace packtrain {
namespace {

constexpr size_t kTupleChunk = 4096;

}  // namespace

std::string_view pickle_kind_name(PickleKind kind) {
  constexpr std::string_view kNames[] = {"None", "bool",  "int",  "float", "str",   "bytes",
                                         "list", "tuple", "dict", "array", "dtype", "name"};
  return kNames[static_cast<size_t>(kind)];
}

std::span<const PickleValue> Pickle::items(const PickleValue& value) const {
  if (value.kind == PickleKind::tuple) return {value.items, value.count};
  if (value.kind == PickleKind::list || value.kind == PickleKind::dict)
    return containers_[static_cast<size_t>(value.container)];
  return {};
}

// Python's stack machine without the opcodes that reach outside of it. A step that fails sets status_ and
// returns false: there are some ten million steps in a large list, and most do next to nothing. One use, one
// thread.
class PickleMachine : private PickleInput {
 public:
  PickleMachine(std::string_view bytes, PickleNames names, Pickle& out)
      : PickleInput(bytes), names_(names), out_(out), objects_(out, bytes.size()) {}

  Status run() {
    while (!stopped_) {
      start_ = at_;
      if (at_ == in_.size()) return fail("it ends without a STOP opcode: the file is cut short"), status_;
      if (!step(static_cast<uint8_t>(in_[at_++]))) return status_;
    }
    if (at_ != in_.size()) {
      start_ = at_;
      return fail("more data follow the end of the pickle; write one dict or list into one file"), status_;
    }
    return {};
  }

 private:
  bool push(const PickleValue& value) {
    stack_.push_back(value);
    return true;
  }
  bool push_integer(int64_t integer, PickleKind kind = PickleKind::integer) {
    PickleValue value;
    value.kind = kind;
    value.integer = integer;
    return push(value);
  }
  bool push_text(std::string_view text, PickleKind kind) {
    if (text.size() > UINT32_MAX) return fail("a string is longer than 4 GiB");
    PickleValue value;
    value.kind = kind;
    value.count = static_cast<uint32_t>(text.size());
    value.text = text.data();
    return push(value);
  }
  bool push_sized_text(uint64_t bytes, PickleKind kind) {
    std::string_view text;
    return take(bytes, text) && push_text(text, kind);
  }
  template <class Size>
  bool push_prefixed_text(PickleKind kind) {
    Size bytes = 0;
    return number(bytes) && push_sized_text(bytes, kind);
  }

  // Values above the last mark: Python never reaches below it but by popping the mark.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  bool need(size_t values) {
    return stack_.size() - floor() >= values || fail("an opcode finds too few values on the stack");
  }
  bool pop_mark(size_t& first) {
    if (marks_.empty()) return fail("an opcode finds no mark on the stack");
    first = marks_.back();
    marks_.pop_back();
    return true;
  }

  // Makes a container of stack_[first, …) and leaves it in their place.
  bool make_container(PickleKind kind, size_t first) {
    PickleValue value;
    value.kind = kind;
    value.container = out_.containers_.size();
    out_.containers_.emplace_back(stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
    stack_.resize(first);
    return push(value);
  }

  bool make_tuple(size_t first) {
    const size_t count = stack_.size() - first;
    if (count > UINT32_MAX) return fail("a tuple has more than 2^32 items");
    if (count > chunk_left_) {
      chunk_left_ = std::max(count, kTupleChunk);
      out_.tuple_items_.push_back(std::make_unique<PickleValue[]>(chunk_left_));
      chunk_next_ = out_.tuple_items_.back().get();
    }
    std::copy(stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end(), chunk_next_);
    PickleValue value;
    value.kind = PickleKind::tuple;
    value.count = static_cast<uint32_t>(count);
    value.items = chunk_next_;
    chunk_next_ += count;
    chunk_left_ -= count;
    stack_.resize(first);
    return push(value);
  }

  // Adds stack_[first, …) to the container right below them, and takes them off.
  bool extend(PickleKind kind, size_t first) {
    if (first == floor() || stack_[first - 1].kind != kind)
      return fail("items are added to what is no " + std::string(pickle_kind_name(kind)));
    if (kind == PickleKind::dict && (stack_.size() - first) % 2 != 0)
      return fail("a key of a dict has no value");
    auto& container = out_.containers_[static_cast<size_t>(stack_[first - 1].container)];
    container.insert(container.end(), stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
    stack_.resize(first);
    return true;
  }
  bool extend_from_mark(PickleKind kind) {
    size_t first = 0;
    return pop_mark(first) && extend(kind, first);
  }

  bool remember(uint64_t number) {
    if (!need(1)) return false;
    // Writers count from 0 or 1. A number far ahead of that must not size a table.
    if (number < memo_.size()) {
      memo_[static_cast<size_t>(number)] = stack_.back();
    } else if (number <= memo_.size() + 1) {
      memo_.resize(static_cast<size_t>(number));
      memo_.push_back(stack_.back());
    } else {
      far_memo_[number] = stack_.back();
    }
    return true;
  }
  bool recall(uint64_t number) {
    const auto far = far_memo_.find(number);
    if (far != far_memo_.end()) return push(far->second);
    if (number >= memo_.size()) return fail("it refers to a value that it has not stored");
    return push(memo_[static_cast<size_t>(number)]);
  }
  template <class Number>
  bool line_number(Number& out, int base = 10) {
    std::string_view text;
    if (!line(text)) return false;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out, base);
    return (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) ||
           fail("\"" + printable(text) + "\" is no number that fits");
  }

  bool take_int_line() {
    std::string_view text;
    if (!line(text)) return false;
    if (text == "00" || text == "01") return push_integer(text == "01", PickleKind::boolean);
    return push_decimal(text);
  }
  bool take_long_line() {
    std::string_view text;
    if (!line(text)) return false;
    if (text.ends_with('L')) text.remove_suffix(1);
    return push_decimal(text);
  }
  bool push_decimal(std::string_view text) {
    int64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
      return fail("\"" + printable(text) + "\" is no integer of 64 bits");
    return push_integer(value);
  }
  bool take_long(uint64_t bytes) {
    std::string_view text;
    if (!take(bytes, text)) return false;
    if (bytes > 8) return fail("an integer has more than 64 bits");
    uint64_t value = bytes > 0 && (static_cast<uint8_t>(text.back()) & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = text.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(text[i]);
    return push_integer(static_cast<int64_t>(value));
  }
  bool push_real(double real) {
    PickleValue value;
    value.kind = PickleKind::real;
    value.real = real;
    return push(value);
  }
  bool take_float_line() {
    std::string_view text;
    if (!line(text)) return false;
    const std::string number(text);
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || end != number.c_str() + number.size())
      return fail("\"" + printable(text) + "\" is no number");
    return push_real(value);
  }
  bool take_string_line() {
    std::string_view text;
    if (!line(text)) return false;
    if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0])
      return fail("a string is not in quotes");
    text = text.substr(1, text.size() - 2);
    if (text.find('\\') == std::string_view::npos) return push_text(text, PickleKind::text);
    std::string& out = out_.unescaped_.emplace_back();
    if (!decode_literal(text, out)) return fail("a string has a bad escape");
    return push_text(out, PickleKind::text);
  }
  bool take_unicode_line() {
    std::string_view text;
    if (!line(text)) return false;
    const bool plain =
        std::all_of(text.begin(), text.end(), [](char c) { return c != '\\' && (c & 0x80) == 0; });
    if (plain) return push_text(text, PickleKind::text);
    std::string& out = out_.unescaped_.emplace_back();
    if (!decode_raw_unicode(text, out)) return fail("a string has a bad escape");
    return push_text(out, PickleKind::text);
  }

  bool pop() {
    if (stack_.size() > floor()) {
      stack_.pop_back();
      return true;
    }
    size_t first = 0;
    return pop_mark(first);
  }

  bool refuse(uint8_t code) {
    return fail(why_refused(code, named_object(code), names_ == PickleNames::numpy));
  }

  // What a refused opcode would have imported, for the message.
  std::string named_object(uint8_t code) const {
    if (code == 'c' || code == 'i') {
      const size_t first = in_.find('\n', at_);
      if (first == std::string_view::npos) return {};
      const size_t second = in_.find('\n', first + 1);
      if (second == std::string_view::npos) return {};
      return std::string(in_.substr(at_, first - at_)) + "." +
             std::string(in_.substr(first + 1, second - first - 1));
    }
    if (code == 0x93 && stack_.size() >= 2 && stack_.back().kind == PickleKind::text &&
        stack_[stack_.size() - 2].kind == PickleKind::text)
      return std::string(Pickle::text(stack_[stack_.size() - 2])) + "." +
             std::string(Pickle::text(stack_.back()));
    return {};
  }

  // A name that is known becomes a value of its own; nothing is imported.
  bool take_name(uint8_t op) {
    std::string_view module, name;
    PickleValue value;
    if (op == kGlobal) {
      const size_t first = at_;
      if (!line(module) || !line(name)) return false;
      if (objects_.find(module, name, value)) return push(value);
      at_ = first;  // where refuse() looks for the name
      return refuse(op);
    }
    if (!need(2)) return false;
    const PickleValue &upper = stack_[stack_.size() - 1], &lower = stack_[stack_.size() - 2];
    if (upper.kind != PickleKind::text || lower.kind != PickleKind::text ||
        !objects_.find(Pickle::text(lower), Pickle::text(upper), value))
      return refuse(op);
    stack_.resize(stack_.size() - 2);
    return push(value);
  }
  // Puts together what a known name is called with, or the state it is given.
  bool use_object(uint8_t op) {
    if (!need(2)) return false;
    const PickleValue given = stack_.back(), object = stack_[stack_.size() - 2];
    stack_.resize(stack_.size() - 2);
    PickleValue made = object;
    const Status status =
        op == kReduce ? objects_.call(object, given, made) : objects_.set_state(object, given);
    if (status.ok()) return push(made);
    status_ = status.at("pickle @ " + std::to_string(start_));
    return false;
  }

  bool take_protocol() {
    uint8_t version = 0;
    if (!number(version)) return false;
    return version <= 5 || fail("protocol " + std::to_string(version) +
                                " is newer than this reader: pickle it with protocol 5 or less");
  }
  bool take_frame() {
    uint64_t bytes = 0;
    if (!number(bytes)) return false;
    return bytes <= in_.size() - at_ || fail("a frame reaches beyond the end: the file is cut short");
  }
  bool take_memo(uint8_t op) {
    uint8_t byte = 0;
    uint32_t word = 0;
    uint64_t decimal = 0;
    switch (op) {
      case kBinPut:
        return number(byte) && remember(byte);
      case kBinGet:
        return number(byte) && recall(byte);
      case kLongBinPut:
        return number(word) && remember(word);
      case kLongBinGet:
        return number(word) && recall(word);
      case kPut:
        return line_number(decimal) && remember(decimal);
      default:
        return line_number(decimal) && recall(decimal);
    }
  }
  bool take_binary_number(uint8_t op) {
    uint8_t one = 0;
    uint16_t two = 0;
    int32_t four = 0;
    uint32_t bytes = 0;
    switch (op) {
      case kBinInt1:
        return number(one) && push_integer(one);
      case kBinInt2:
        return number(two) && push_integer(two);
      case kBinInt:
        return number(four) && push_integer(four);
      case kLong1:
        return number(one) && take_long(one);
      case kLong4:
        return number(bytes) && take_long(bytes);
      default: {
        uint64_t bits = 0;
        return number(bits) && push_real(std::bit_cast<double>(__builtin_bswap64(bits)));
      }
    }
  }

  bool step(uint8_t op) {
    size_t first = 0;
    switch (op) {
      case kShortBinUnicode:
        return push_prefixed_text<uint8_t>(PickleKind::text);
      case kBinUnicode:
        return push_prefixed_text<uint32_t>(PickleKind::text);
      case kBinUnicode8:
        return push_prefixed_text<uint64_t>(PickleKind::text);
      case kShortBinString:
        return push_prefixed_text<uint8_t>(PickleKind::text);
      case kBinString:
        return push_prefixed_text<uint32_t>(PickleKind::text);
      case kShortBinBytes:
        return push_prefixed_text<uint8_t>(PickleKind::bytes);
      case kBinBytes:
        return push_prefixed_text<uint32_t>(PickleKind::bytes);
      case kBinBytes8:
      case kByteArray8:
        return push_prefixed_text<uint64_t>(PickleKind::bytes);
      case kString:
        return take_string_line();
      case kUnicode:
        return take_unicode_line();
      case kMemoize:
        return remember(memo_.size() + far_memo_.size());
      case kPut:
      case kBinPut:
      case kLongBinPut:
      case kGet:
      case kBinGet:
      case kLongBinGet:
        return take_memo(op);
      case kBinInt:
      case kBinInt1:
      case kBinInt2:
      case kLong1:
      case kLong4:
      case kBinFloat:
        return take_binary_number(op);
      case kInt:
        return take_int_line();
      case kLong:
        return take_long_line();
      case kFloat:
        return take_float_line();
      case kNone:
        return push(PickleValue());
      case kNewTrue:
        return push_integer(1, PickleKind::boolean);
      case kNewFalse:
        return push_integer(0, PickleKind::boolean);
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kPop:
        return pop();
      case kPopMark:
        if (!pop_mark(first)) return false;
        stack_.resize(first);
        return true;
      case kDup:
        return need(1) && push(PickleValue(stack_.back()));
      case kEmptyDict:
        return make_container(PickleKind::dict, stack_.size());
      case kEmptyList:
        return make_container(PickleKind::list, stack_.size());
      case kEmptyTuple:
        return make_tuple(stack_.size());
      case kTuple1:
      case kTuple2:
      case kTuple3: {
        const size_t count = size_t{1} + op - kTuple1;
        return need(count) && make_tuple(stack_.size() - count);
      }
      case kTuple:
        return pop_mark(first) && make_tuple(first);
      case kList:
        return pop_mark(first) && make_container(PickleKind::list, first);
      case kDict:
        if (!pop_mark(first)) return false;
        if ((stack_.size() - first) % 2 != 0) return fail("a key of a dict has no value");
        return make_container(PickleKind::dict, first);
      case kAppend:
        return need(2) && extend(PickleKind::list, stack_.size() - 1);
      case kSetItem:
        return need(3) && extend(PickleKind::dict, stack_.size() - 2);
      case kAppends:
        return extend_from_mark(PickleKind::list);
      case kSetItems:
        return extend_from_mark(PickleKind::dict);
      case kProto:
        return take_protocol();
      case kFrame:
        return take_frame();
      case kStop:
        if (!need(1)) return false;
        out_.root_ = stack_.back();
        stopped_ = true;
        return true;
      case kGlobal:
      case kStackGlobal:
        return names_ == PickleNames::numpy ? take_name(op) : refuse(op);
      case kReduce:
      case kBuild:
        return names_ == PickleNames::numpy ? use_object(op) : refuse(op);
      default:
        return refuse(op);
    }
  }

  const PickleNames names_;
  Pickle& out_;
  PickleObjects objects_;
  bool stopped_ = false;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::vector<PickleValue> memo_;
  std::unordered_map<uint64_t, PickleValue> far_memo_;
  PickleValue* chunk_next_ = nullptr;
  size_t chunk_left_ = 0;
};

Result<Pickle> Pickle::parse(std::string_view bytes, PickleNames names) {
  Pickle pickle;
  PACKTRAIN_TRY(PickleMachine(bytes, names, pickle).run());
  return pickle;
}

}  // namespace packtrain
