// Pickle: a reader of plain data that Python pickled, protocols 0 to 5. It executes nothing: an opcode that
// names, imports, calls or builds something is refused, so a hostile file is an error and no more. Where it
// is asked to, it knows the few names by which NumPy pickles arrays of numbers, and puts those together
// itself.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/stored_array.h"
#include "packtrain/status.h"

namespace packtrain {

enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  bytes,
  list,
  tuple,
  dict,
  array,
  number_type,
  named
};
std::string_view pickle_kind_name(PickleKind kind);

// One value: 16 bytes. Containers and long strings lie in the Pickle it came from.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  uint32_t count = 0;  // bytes of text; items of a tuple
  union {
    int64_t integer = 0;  // and boolean
    double real;
    const char* text;
    const PickleValue* items;  // of a tuple
    uint64_t container;        // of a list, dict, array or number_type
  };
};

enum class PickleNames : uint8_t { refuse, numpy };

// A parsed pickle. Immutable. Strings are views into the bytes it was parsed from, which must outlive it; a
// dict of {str: int} takes about 65 bytes an entry beside them.
class Pickle {
 public:
  // Code::corrupt names the offset and what is wrong; the work and the memory it takes are bounded by a
  // constant times the number of bytes, whatever they say.
  static Result<Pickle> parse(std::string_view bytes, PickleNames names = PickleNames::refuse);

  const PickleValue& root() const { return root_; }
  // The items of a list or tuple; key, value, key, value … of a dict, in the order of insertion.
  std::span<const PickleValue> items(const PickleValue& value) const;
  static std::string_view text(const PickleValue& value) { return {value.text, value.count}; }  // and bytes
  // Its numbers lie in the bytes, or in this Pickle.
  const StoredArray& array(const PickleValue& value) const {
    return arrays_[static_cast<size_t>(value.container)];
  }

 private:
  friend class PickleMachine;
  friend class PickleObjects;
  PickleValue root_;
  std::deque<std::vector<PickleValue>> containers_;          // lists and dicts
  std::vector<std::unique_ptr<PickleValue[]>> tuple_items_;  // chunks
  std::deque<std::string> unescaped_;  // strings written with escapes, and bytes written as text
  std::deque<StoredArray> arrays_;
  std::deque<StoredNumber> types_;
};

}  // namespace packtrain
