#include "decode/exif.h"

#include "base/little_endian.h"

namespace packtrain {

namespace {

// Numbers in the byte order that the block declares; 0 beyond its end.
class TiffReader {
 public:
  TiffReader(Bytes data, bool big_endian) : data_(data), big_endian_(big_endian) {}
  uint16_t word(size_t at) const {
    if (at + 2 > data_.size()) return 0;
    const auto value = load_le<uint16_t>(data_.data() + at);
    return big_endian_ ? __builtin_bswap16(value) : value;
  }
  uint32_t number(size_t at) const {
    if (at + 4 > data_.size()) return 0;
    const auto value = load_le<uint32_t>(data_.data() + at);
    return big_endian_ ? __builtin_bswap32(value) : value;
  }

 private:
  Bytes data_;
  bool big_endian_;
};

}  // namespace

uint8_t exif_orientation(Bytes tiff) {
  constexpr uint16_t kOrientation = 0x0112, kShort = 3;
  constexpr size_t kEntryBytes = 12;
  if (tiff.size() < 8) return 1;
  const auto order = load_le<uint16_t>(tiff.data());
  if (order != 0x4949 && order != 0x4D4D) return 1;  // "II", "MM"
  const TiffReader reader(tiff, order == 0x4D4D);
  if (reader.word(2) != 42) return 1;
  const size_t directory = reader.number(4);
  const size_t entries = reader.word(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 1;
    if (reader.word(entry) != kOrientation) continue;
    const uint16_t value = reader.word(entry + 8);
    return reader.word(entry + 2) == kShort && value >= 1 && value <= 8 ? static_cast<uint8_t>(value) : 1;
  }
  return 1;
}

}  // namespace packtrain
