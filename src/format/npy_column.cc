#include "format/npy_column.h"

#include <algorithm>

#include "base/words.h"
#include "format/array_writer.h"
#include "format/numpy_type.h"

namespace packtrain {
namespace {

constexpr uint64_t kLargestPiece = uint64_t{64} << 20;  // each sample costs the decoding of a whole member

void set_type(const NpyHeader& header, ArrayColumn& column) {
  const NumpyType type = parse_numpy_type(header.type);
  column.type = type.type;
  column.unusable = type.unusable;
  if (is_plain_number(header.type)) column.word = header.type;
  if (column.unusable.ok() && header.fortran && header.axes > 1) {
    column.unusable =
        Status(Code::unsupported,
               "is in Fortran order, in which no row lies together; save numpy.ascontiguousarray(array)");
  }
}

}  // namespace

Result<ArrayColumn> npy_column(std::string name, const NpyHeader& header, ArrayPart part, Pipeline pipeline) {
  ArrayColumn column;
  column.name = std::move(name);
  column.shape.assign(header.shape().begin(), header.shape().end());
  set_type(header, column);
  const uint64_t room = part.raw - header.bytes;
  if (header.records && column.unusable.ok()) {
    const auto count = checked_array_bytes(column.shape, 1);
    if (!count || (*count > 0 && room % *count != 0))
      return Status(Code::corrupt, "its records do not fill the file");
    column.type.item_bytes = *count > 0 ? room / *count : 0;
  }
  const auto bytes = checked_array_bytes(column.shape, column.type.item_bytes);
  if (!bytes || (column.unusable.ok() && *bytes > room)) {
    return Status(Code::corrupt, "the .npy file is cut short: its array takes " +
                                     (bytes ? count_in_words(*bytes) : "more than 2^60") + " bytes, and " +
                                     count_in_words(room) + " follow");
  }
  part.start = header.bytes;
  if (!pipeline.empty() && part.raw > kLargestPiece && column.unusable.ok()) {
    column.unusable = Status(Code::unsupported,
                             "is compressed in one piece of " + bytes_in_words(part.raw) +
                                 ", which every sample would have to decode; save it with numpy.savez, which "
                                 "does not compress");
  }
  column.pipeline = std::move(pipeline);
  column.part_bytes = std::max<uint64_t>(*bytes, 1);
  column.parts = {part};
  return column;
}

}  // namespace packtrain
