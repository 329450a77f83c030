#include "format/numpy_type.h"

#include "base/words.h"

namespace packtrain {
namespace {

// Whether NumPy writes such a type: a letter, the bytes of an element (of 'U' its characters), and behind
// those of dates their unit.
bool is_known(char kind, uint64_t size, std::string_view digits, std::string_view rest) {
  if (digits.empty()) return false;
  switch (kind) {
    case 'b':
      return size == 1 && rest.empty();
    case 'i':
    case 'u':
      return (size == 1 || size == 2 || size == 4 || size == 8) && rest.empty();
    case 'f':
      return (size == 2 || size == 4 || size == 8 || size == 12 || size == 16) && rest.empty();
    case 'c':
      return (size == 8 || size == 16 || size == 24 || size == 32) && rest.empty();
    case 'S':
    case 'U':
    case 'V':
      return rest.empty();
    case 'm':
    case 'M':
      return size == 8 && (rest.empty() || (rest.starts_with('[') && rest.ends_with(']')));
    default:
      return false;
  }
}

}  // namespace

NumpyType parse_numpy_type(std::string_view word) {
  using Kind = ArrayType::Kind;
  const bool records = word.starts_with('[');
  const bool swapped = records ? word.find('>') != std::string_view::npos : word.starts_with('>');
  const bool objects = word.find(records ? "O'" : "O") != std::string_view::npos;
  if (!records && !word.empty() && std::string_view("<>|=").find(word[0]) != std::string_view::npos)
    word.remove_prefix(1);
  const char kind = records || word.empty() ? 'V' : word[0];
  uint64_t size = 0;
  size_t end = 1;
  for (; !records && end < word.size() && word[end] >= '0' && word[end] <= '9' && size < (1u << 30); ++end)
    size = size * 10 + static_cast<uint64_t>(word[end] - '0');
  NumpyType found;
  found.type.item_bytes = kind == 'U' ? 4 * size : size;
  const bool whole = size == 1 || size == 2 || size == 4 || size == 8;
  found.type.kind = kind == 'b' && whole   ? Kind::truth
                    : kind == 'u' && whole ? Kind::unsigned_integer
                    : kind == 'i' && whole ? Kind::signed_integer
                    : kind == 'S'          ? Kind::bytes
                    : kind == 'U'          ? Kind::text
                                           : Kind::other;
  if (objects) {
    found.unusable = Status(Code::unsupported,
                            "holds Python objects, which could run any program when they are loaded "
                            "(allow_pickle); save numbers, or bytes with offsets");
  } else if (swapped && (records || size > 1 || kind == 'U')) {
    found.unusable = Status(Code::unsupported,
                            "is big-endian; save it again after array.astype(array.dtype.newbyteorder('<'))");
  } else if (!records && !word.empty() && !is_known(kind, size, word.substr(1, end - 1), word.substr(end))) {
    // A guess at the width would give samples of other bytes, or of none.
    found.unusable = Status(Code::unsupported, "has elements of the type '" + printable(word) +
                                                   "', which this version of packtrain does not know; save "
                                                   "it again by numpy.save or numpy.savez");
  }
  return found;
}

}  // namespace packtrain
