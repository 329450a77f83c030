#include "format/zip_records.h"

#include <algorithm>
#include <cstring>

#include "base/little_endian.h"
#include "base/words.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50, kEndSignature = 0x06054b50,
                   kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr uint16_t kZip64Extra = 0x0001, kPaddingExtra = 0x7470;
constexpr uint16_t kMadeByUnix = 3;
constexpr uint16_t kZipVersion = 20, kVersion64 = 45;  // "2.0" and "4.5"
constexpr uint16_t kFirstDay = 1 << 5 | 1;             // 1980-01-01
constexpr uint32_t kReadOnlyFile = 0100444u << 16;
constexpr uint16_t kCountLimit = 0xFFFF;

template <class T>
T get(Bytes record, size_t at) {
  return load_le<T>(record.data() + at);
}

// The ZIP64 extra holds, in this order, those values that the record itself could not.
Status apply_zip64(Bytes extra, ZipEntry& entry) {
  auto bad = [&](std::string_view what) {
    return Status(Code::corrupt, "extra field of " + printable(entry.name) + " " + std::string(what));
  };
  bool needed = entry.raw == kZip32Limit || entry.stored == kZip32Limit ||
                entry.local_offset == kZip32Limit || entry.disk == kCountLimit;
  while (needed && extra.size() >= 4) {
    auto id = get<uint16_t>(extra, 0);
    size_t bytes = get<uint16_t>(extra, 2);
    if (bytes > extra.size() - 4) return bad("is cut short");
    Bytes data = extra.subspan(4, bytes);
    extra = extra.subspan(4 + bytes);
    if (id != kZip64Extra) continue;
    for (uint64_t* value : {&entry.raw, &entry.stored, &entry.local_offset}) {
      if (*value != kZip32Limit) continue;
      if (data.size() < 8) return bad("lacks a 64-bit size");
      *value = get<uint64_t>(data, 0);
      data = data.subspan(8);
    }
    if (entry.disk == kCountLimit) {
      if (data.size() < 4) return bad("lacks a disk number");
      entry.disk = get<uint32_t>(data, 0);
    }
    return {};
  }
  return {};
}

// Appends little-endian numbers.
class Cursor {
 public:
  explicit Cursor(std::byte* out) : out_(out) {}
  template <class T>
  void put(T value) {
    store_le(out_, value);
    out_ += sizeof value;
  }
  void put_text(std::string_view text) {
    if (!text.empty()) std::memcpy(out_, text.data(), text.size());
    out_ += text.size();
  }

 private:
  std::byte* out_;
};

bool large(const ZipWritten& entry) { return entry.raw >= kZip32Limit || entry.stored >= kZip32Limit; }
bool far(const ZipWritten& entry) { return entry.local_offset >= kZip32Limit; }
size_t local_extra_bytes(const ZipWritten& entry) {
  return entry.local_room > 0 ? entry.local_room : large(entry) ? 20 : 0;
}
uint32_t cut(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, kZip32Limit)); }
bool ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}
uint16_t flags_of(const ZipWritten& entry) {
  return !ascii(entry.name) && is_utf8(entry.name) ? kZipUtf8 : uint16_t{0};
}
bool needs_zip64_end(uint64_t entries, uint64_t offset, uint64_t bytes) {
  return entries >= kCountLimit || offset >= kZip32Limit || bytes >= kZip32Limit;
}

// What a local header and a directory entry have in common, from the version on.
void put_common(Cursor& out, const ZipWritten& entry, bool sixty_four, size_t extra_bytes) {
  out.put(sixty_four ? kVersion64 : kZipVersion);
  out.put(flags_of(entry));
  out.put(static_cast<uint16_t>(entry.method));
  out.put(uint16_t{0});  // time
  out.put(kFirstDay);
  out.put(entry.crc32);
  out.put(large(entry) ? kZip32Limit : cut(entry.stored));
  out.put(large(entry) ? kZip32Limit : cut(entry.raw));
  out.put(static_cast<uint16_t>(entry.name.size()));
  out.put(static_cast<uint16_t>(extra_bytes));
}

}  // namespace

std::optional<size_t> find_zip_end(Bytes tail) {
  if (tail.size() < kZipEndBytes) return std::nullopt;
  for (size_t at = tail.size() - kZipEndBytes + 1; at-- > 0;) {
    if (get<uint32_t>(tail, at) == kEndSignature &&
        at + kZipEndBytes + get<uint16_t>(tail, at + 20) == tail.size()) {
      return at;
    }
  }
  return std::nullopt;
}

ZipEnd parse_zip_end(Bytes record) {
  return {.entries = get<uint16_t>(record, 10),
          .directory_bytes = get<uint32_t>(record, 12),
          .directory_offset = get<uint32_t>(record, 16),
          .disk = get<uint16_t>(record, 4),
          .directory_disk = get<uint16_t>(record, 6),
          .sixty_four = false};
}

std::optional<uint64_t> parse_zip64_locator(Bytes record) {
  if (get<uint32_t>(record, 0) != kLocator64Signature) return std::nullopt;
  return get<uint64_t>(record, 8);
}

std::optional<ZipEnd> parse_zip64_end(Bytes record) {
  if (get<uint32_t>(record, 0) != kEnd64Signature) return std::nullopt;
  return ZipEnd{.entries = get<uint64_t>(record, 32),
                .directory_bytes = get<uint64_t>(record, 40),
                .directory_offset = get<uint64_t>(record, 48),
                .disk = get<uint32_t>(record, 16),
                .directory_disk = get<uint32_t>(record, 20),
                .sixty_four = true};
}

Result<ZipLocal> parse_zip_local(Bytes record) {
  if (get<uint32_t>(record, 0) != kLocalSignature) return Status(Code::corrupt, "no local header there");
  return ZipLocal{.flags = get<uint16_t>(record, 6),
                  .method = get<uint16_t>(record, 8),
                  .name_bytes = get<uint16_t>(record, 26),
                  .extra_bytes = get<uint16_t>(record, 28),
                  .stored = get<uint32_t>(record, 18)};
}

Result<ZipEntry> take_zip_entry(Bytes& directory) {
  if (directory.size() < kZipCentralBytes) return Status(Code::corrupt, "zip directory is cut short");
  if (get<uint32_t>(directory, 0) != kCentralSignature) {
    return Status(Code::corrupt, "zip directory holds something that is no entry");
  }
  size_t name = get<uint16_t>(directory, 28), extra = get<uint16_t>(directory, 30),
         comment = get<uint16_t>(directory, 32);
  if (directory.size() - kZipCentralBytes < name + extra + comment) {
    return Status(Code::corrupt, "zip directory is cut short");
  }
  ZipEntry entry{.name = as_text(directory.subspan(kZipCentralBytes, name)),
                 .flags = get<uint16_t>(directory, 8),
                 .method = get<uint16_t>(directory, 10),
                 .crc32 = get<uint32_t>(directory, 16),
                 .stored = get<uint32_t>(directory, 20),
                 .raw = get<uint32_t>(directory, 24),
                 .local_offset = get<uint32_t>(directory, 42),
                 .disk = get<uint16_t>(directory, 34)};
  if (get<uint8_t>(directory, 5) == kMadeByUnix) entry.unix_mode = get<uint32_t>(directory, 38) >> 16;
  PACKTRAIN_TRY(apply_zip64(directory.subspan(kZipCentralBytes + name, extra), entry));
  directory = directory.subspan(kZipCentralBytes + name + extra + comment);
  return entry;
}

size_t zip_local_bytes(const ZipWritten& entry) {
  return kZipLocalBytes + entry.name.size() + local_extra_bytes(entry);
}

size_t zip_central_bytes(const ZipWritten& entry) {
  size_t values = (large(entry) ? 16 : 0) + (far(entry) ? 8 : 0);
  return kZipCentralBytes + entry.name.size() + (values > 0 ? 4 + values : 0);
}

size_t zip_end_bytes(uint64_t entries, uint64_t directory_offset, uint64_t directory_bytes) {
  bool sixty_four = needs_zip64_end(entries, directory_offset, directory_bytes);
  return (sixty_four ? kZip64EndBytes + kZip64LocatorBytes : 0) + kZipEndBytes;
}

void write_zip_local(const ZipWritten& entry, std::byte* out) {
  Cursor cursor(out);
  cursor.put(kLocalSignature);
  put_common(cursor, entry, large(entry), local_extra_bytes(entry));
  cursor.put_text(entry.name);
  if (large(entry)) {
    cursor.put(kZip64Extra);
    cursor.put(uint16_t{16});
    cursor.put(entry.raw);
    cursor.put(entry.stored);
  }
  if (entry.local_room == 0) return;
  const size_t padding = entry.local_room - (large(entry) ? 20 : 0) - 4;
  cursor.put(kPaddingExtra);
  cursor.put(static_cast<uint16_t>(padding));
  for (size_t i = 0; i < padding; ++i) cursor.put(uint8_t{0});
}

void write_zip_central(const ZipWritten& entry, std::byte* out) {
  size_t extra = zip_central_bytes(entry) - kZipCentralBytes - entry.name.size();
  Cursor cursor(out);
  cursor.put(kCentralSignature);
  cursor.put(static_cast<uint16_t>(kMadeByUnix << 8 | (extra > 0 ? kVersion64 : kZipVersion)));
  put_common(cursor, entry, extra > 0, extra);
  cursor.put(uint16_t{0});  // comment
  cursor.put(uint16_t{0});  // disk
  cursor.put(uint16_t{0});  // internal attributes
  cursor.put(kReadOnlyFile);
  cursor.put(cut(entry.local_offset));
  cursor.put_text(entry.name);
  if (extra == 0) return;
  cursor.put(kZip64Extra);
  cursor.put(static_cast<uint16_t>(extra - 4));
  if (large(entry)) {
    cursor.put(entry.raw);
    cursor.put(entry.stored);
  }
  if (far(entry)) cursor.put(entry.local_offset);
}

void write_zip_end(uint64_t entries, uint64_t directory_offset, uint64_t directory_bytes, std::byte* out) {
  Cursor cursor(out);
  if (needs_zip64_end(entries, directory_offset, directory_bytes)) {
    cursor.put(kEnd64Signature);
    cursor.put(uint64_t{kZip64EndBytes - 12});
    cursor.put(static_cast<uint16_t>(kMadeByUnix << 8 | kVersion64));
    cursor.put(kVersion64);
    cursor.put(uint32_t{0});  // this disk
    cursor.put(uint32_t{0});  // the directory's disk
    cursor.put(entries);
    cursor.put(entries);
    cursor.put(directory_bytes);
    cursor.put(directory_offset);
    cursor.put(kLocator64Signature);
    cursor.put(uint32_t{0});
    cursor.put(directory_offset + directory_bytes);
    cursor.put(uint32_t{1});  // disks
  }
  cursor.put(kEndSignature);
  cursor.put(uint32_t{0});  // disks
  for (int i = 0; i < 2; ++i) cursor.put(static_cast<uint16_t>(std::min<uint64_t>(entries, kCountLimit)));
  cursor.put(cut(directory_bytes));
  cursor.put(cut(directory_offset));
  cursor.put(uint16_t{0});  // comment
}

}  // namespace packtrain
