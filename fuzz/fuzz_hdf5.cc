#include "base/little_endian.h"
#include "format/hdf5_records.h"
#include "fuzz/fuzz_container.h"

namespace packtrain {
namespace {

// Newer headers have checksums, which would keep changed bytes from ever being parsed.
void mend_checksums(std::string& bytes) {
  constexpr size_t kSuperblockChecked = 44;
  if (bytes.size() >= kSuperblockChecked + 4 && (bytes[8] == 2 || bytes[8] == 3)) {
    const uint32_t checksum = hdf5_checksum(as_bytes(bytes).first(kSuperblockChecked));
    store_le<uint32_t>(bytes.data() + kSuperblockChecked, checksum);
  }
  for (size_t at = bytes.find("OHDR"); at != std::string::npos; at = bytes.find("OHDR", at + 4)) {
    if (bytes.size() - at < 8) return;
    const auto flags = static_cast<uint8_t>(bytes[at + 5]);
    const size_t skip = size_t{6} + ((flags & 32) != 0 ? 16 : 0) + ((flags & 16) != 0 ? 4 : 0);
    const size_t number = size_t{1} << (flags & 3);
    if (bytes.size() - at < skip + number) continue;
    const uint64_t inner = Hdf5Cursor(as_bytes(bytes).subspan(at + skip, number)).number(number);
    const size_t head = skip + number;
    if (inner > bytes.size() || bytes.size() - at < head + inner + 4) continue;
    const uint32_t checksum = hdf5_checksum(as_bytes(bytes).subspan(at, head + inner));
    store_le<uint32_t>(bytes.data() + at + head + inner, checksum);
  }
}

// The same for a tree of the newer kind, if one leaf is all of it, and for the head of a heap.
void mend_new_records(std::string& bytes) {
  constexpr size_t kHeapHead = 146, kTreeHead = 38, kLeafHead = 6;
  const auto mend = [&](size_t at, size_t length) {
    if (at > bytes.size() || bytes.size() - at < length || length < 4) return;
    const uint32_t checksum = hdf5_checksum(as_bytes(bytes).subspan(at, length - 4));
    store_le<uint32_t>(bytes.data() + at + length - 4, checksum);
  };
  for (size_t at = bytes.find("FRHP"); at != std::string::npos; at = bytes.find("FRHP", at + 4))
    mend(at, kHeapHead);
  for (size_t at = bytes.find("BTHD"); at != std::string::npos; at = bytes.find("BTHD", at + 4)) {
    mend(at, kTreeHead);
    if (bytes.size() - at < kTreeHead) return;
    const auto record = load_le<uint16_t>(bytes.data() + at + 10);
    const auto root = load_le<uint64_t>(bytes.data() + at + 16);
    const auto records = load_le<uint16_t>(bytes.data() + at + 24);
    if (root < bytes.size()) mend(root, kLeafHead + size_t{record} * records + 4);
  }
}

}  // namespace
}  // namespace packtrain

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  packtrain::mend_new_records(bytes);
  packtrain::mend_checksums(bytes);
  packtrain::fuzz_container("hdf5", bytes);
  return 0;
}
