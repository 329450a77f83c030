#include "format/numpy_type.h"

namespace packtrain {

NumpyType parse_numpy_type(std::string_view word) {
  using Kind = ArrayType::Kind;
  const bool records = word.starts_with('[');
  const bool swapped = records ? word.find('>') != std::string_view::npos : word.starts_with('>');
  const bool objects = word.find(records ? "O'" : "O") != std::string_view::npos;
  if (!records && !word.empty() && std::string_view("<>|=").find(word[0]) != std::string_view::npos)
    word.remove_prefix(1);
  const char kind = records || word.empty() ? 'V' : word[0];
  uint64_t size = 0;
  for (size_t i = 1; !records && i < word.size() && word[i] >= '0' && word[i] <= '9' && size < (1u << 30);
       ++i)
    size = size * 10 + static_cast<uint64_t>(word[i] - '0');
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
  }
  return found;
}

}  // namespace packtrain
