#include "format/zip_store.h"

#include "base/hash.h"
#include "base/words.h"
#include "format/zip_records.h"

namespace packtrain {
namespace {

constexpr size_t kLongestStoreName = 0xFFFF;
constexpr uint64_t kStoreAlign = 64;

}  // namespace

Result<std::unique_ptr<ZipStore>> ZipStore::create(Storage& storage, std::string_view path,
                                                   uint64_t expected_bytes, const WriteOptions& options) {
  PACKTRAIN_ASSIGN(writer, storage.create(path, expected_bytes, options));
  return std::unique_ptr<ZipStore>(new ZipStore(std::move(writer), expected_bytes));
}

Status ZipStore::begin(std::string_view name, size_t head_bytes) {
  if (name.size() > kLongestStoreName) return Status(Code::invalid, "a zip name has at most 65,535 bytes");
  name_ = name;
  local_offset_ = out_.position();
  const uint64_t least = local_offset_ + kZipLocalBytes + name.size() + kZipLeastRoom;
  room_ = static_cast<uint16_t>(kZipLeastRoom + (kStoreAlign - least % kStoreAlign) % kStoreAlign);
  head_bytes_ = head_bytes;
  data_bytes_ = 0;
  crc32_ = 0;
  // Written at the end; until then its place is kept.
  const std::vector<std::byte> place(kZipLocalBytes + name.size() + room_ + head_bytes);
  return out_.append(place);
}

Status ZipStore::append(Bytes data) {
  crc32_ = crc32(data, crc32_);
  data_bytes_ += data.size();
  return out_.append(data);
}

Status ZipStore::end(std::string_view head) {
  const uint64_t bytes = head_bytes_ + data_bytes_;
  const ZipWritten entry{.name = name_,
                         .crc32 = crc32_join(crc32(as_bytes(head)), crc32_, data_bytes_),
                         .stored = bytes,
                         .raw = bytes,
                         .local_offset = local_offset_,
                         .local_room = room_};
  std::vector<std::byte> local(zip_local_bytes(entry));
  write_zip_local(entry, local.data());
  const Bytes text = as_bytes(head);
  local.insert(local.end(), text.begin(), text.end());
  PACKTRAIN_TRY(out_.overwrite(local_offset_, local));
  const size_t record = directory_.size();
  directory_.resize(record + zip_central_bytes(entry));
  write_zip_central(entry, directory_.data() + record);
  ++entries_;
  return {};
}

Status ZipStore::add(std::string_view name, Bytes data) {
  PACKTRAIN_TRY(begin(name));
  PACKTRAIN_TRY(append(data));
  return end();
}

Status ZipStore::finish() {
  const uint64_t directory_offset = out_.position();
  PACKTRAIN_TRY(out_.append(directory_));
  std::vector<std::byte> end(zip_end_bytes(entries_, directory_offset, directory_.size()));
  write_zip_end(entries_, directory_offset, directory_.size(), end.data());
  PACKTRAIN_TRY(out_.append(end));
  PACKTRAIN_TRY(out_.settle());
  return out_.commit();
}

}  // namespace packtrain
