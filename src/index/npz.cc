// Layout of the file, all numbers little-endian:
//
//   per column:  local header (30 bytes, name, extra field)   the extra field (id 0x7470) is zero bytes, as
//   many as
//                                                             put the member at a multiple of 64
//                .npy member: "\x93NUMPY" 1 0, u16 header length, header text padded with spaces to 64 bytes,
//                data
//   directory:   per column 46 bytes, name, and a ZIP64 extra where a number needs it
//   end:         ZIP64 end record and locator, always written, so that the size of the file does not change
//   its form
//                end record (22 bytes)
#include "index/npz.h"

#include <cstring>

#include "base/big_vector.h"
#include "base/hash.h"
#include "base/little_endian.h"

namespace packtrain {
namespace {

constexpr uint64_t kAlign = 64;
constexpr uint16_t kPaddingExtra = 0x7470, kZip64Extra = 1;
constexpr uint32_t kLocalMagic = 0x04034b50, kDirectoryMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr uint32_t kZip64EndMagic = 0x06064b50, kZip64LocatorMagic = 0x07064b50;
constexpr uint32_t kNoTime = 0x00210000;  // 1980-01-01 00:00
constexpr uint64_t kSmallest64 = 0xFFFFFFFF;
constexpr size_t kLocalBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kZip64EndBytes = 56,
                 kZip64LocatorBytes = 20;

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  store_le(bytes, value);
  out.append(bytes, sizeof bytes);
}

std::string npy_header(std::string_view type, uint64_t count) {
  std::string text = "{'descr': '";
  text.append(type)
      .append("', 'fortran_order': False, 'shape': (")
      .append(std::to_string(count))
      .append(",), }");
  constexpr size_t kPrefix = 10;
  while ((kPrefix + text.size() + 1) % kAlign != 0) text += ' ';
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  put(header, static_cast<uint16_t>(text.size()));
  return header + text;
}

size_t item_bytes(std::string_view type) { return static_cast<size_t>(type.back() - '0'); }

}  // namespace

void NpzWriter::add(std::string_view name, std::string_view type, uint64_t count, Bytes data) {
  const std::string header = npy_header(type, count);
  const std::string member_name = std::string(name) + ".npy";
  const uint64_t member_bytes = header.size() + data.size();
  const bool large = member_bytes >= kSmallest64;
  uint32_t crc = crc32(std::as_bytes(std::span(header)));
  crc = crc32(data, crc);

  const size_t zip64 = large ? 20 : 0;
  const uint64_t fixed = at() + kLocalBytes + member_name.size() + zip64 + 4;
  const uint64_t padding = (kAlign - fixed % kAlign) % kAlign;
  members_.push_back({member_name, at(), member_bytes, crc});

  put(out_, kLocalMagic);
  put(out_, static_cast<uint16_t>(large ? 45 : 20));
  put(out_, uint16_t{0});  // flags
  put(out_, uint16_t{0});  // stored
  put(out_, kNoTime);
  put(out_, crc);
  put(out_, static_cast<uint32_t>(large ? kSmallest64 : member_bytes));
  put(out_, static_cast<uint32_t>(large ? kSmallest64 : member_bytes));
  put(out_, static_cast<uint16_t>(member_name.size()));
  put(out_, static_cast<uint16_t>(zip64 + 4 + padding));
  out_ += member_name;
  if (large) {
    put(out_, kZip64Extra);
    put(out_, uint16_t{16});
    put(out_, member_bytes);
    put(out_, member_bytes);
  }
  put(out_, kPaddingExtra);
  put(out_, static_cast<uint16_t>(padding));
  out_.append(padding, '\0');
  out_ += header;
  if (sink_) {
    pass_on(std::as_bytes(std::span(out_)));
    out_.clear();
    pass_on(data);  // from where it is: a column of a large set is not copied
  } else {
    out_.append(reinterpret_cast<const char*>(data.data()), data.size());
  }
}

void NpzWriter::reserve(uint64_t bytes) {
  out_.reserve(bytes);
  if (bytes >= kWorthHugePages) want_huge_pages(out_.data(), bytes);
}

void NpzWriter::pass_on(Bytes bytes) {
  if (status_.ok()) status_ = sink_(passed_on_, bytes);
  passed_on_ += bytes.size();
}

Status NpzWriter::finish_to_sink() {
  put_directory();
  pass_on(std::as_bytes(std::span(out_)));
  out_.clear();
  return status_;
}

Status write_npz(Storage& storage, const std::string& path, const WriteOptions& options,
                 const std::function<void(NpzWriter&)>& add_columns) {
  PACKTRAIN_ASSIGN(file, storage.create(path, 0, options));
  NpzWriter writer([&](uint64_t offset, Bytes bytes) -> Status {
    PACKTRAIN_TRY(file->resize(offset + bytes.size()));
    return file->write_at(offset, bytes);
  });
  add_columns(writer);
  Status status = writer.finish_to_sink();
  if (status.ok()) status = file->commit();
  if (!status.ok()) file->discard();
  return status;
}

std::string NpzWriter::finish() {
  put_directory();
  return std::move(out_);
}

void NpzWriter::put_directory() {
  const uint64_t directory = at();
  for (const Member& member : members_) {
    const bool large = member.bytes >= kSmallest64, far = member.offset >= kSmallest64;
    std::string extra;
    if (large || far) {
      put(extra, kZip64Extra);
      put(extra, static_cast<uint16_t>((large ? 16 : 0) + (far ? 8 : 0)));
      if (large) {
        put(extra, member.bytes);
        put(extra, member.bytes);
      }
      if (far) put(extra, member.offset);
    }
    put(out_, kDirectoryMagic);
    put(out_, static_cast<uint16_t>(3 << 8 | 45));  // made on Unix
    put(out_, static_cast<uint16_t>(large || far ? 45 : 20));
    put(out_, uint16_t{0});
    put(out_, uint16_t{0});
    put(out_, kNoTime);
    put(out_, member.crc32);
    put(out_, static_cast<uint32_t>(large ? kSmallest64 : member.bytes));
    put(out_, static_cast<uint32_t>(large ? kSmallest64 : member.bytes));
    put(out_, static_cast<uint16_t>(member.name.size()));
    put(out_, static_cast<uint16_t>(extra.size()));
    put(out_, uint16_t{0});               // comment
    put(out_, uint16_t{0});               // disk
    put(out_, uint16_t{0});               // internal attributes
    put(out_, uint32_t{0100444u << 16});  // a regular read-only file
    put(out_, static_cast<uint32_t>(far ? kSmallest64 : member.offset));
    out_ += member.name;
    out_ += extra;
  }
  const uint64_t end = at(), count = members_.size(), directory_bytes = end - directory;
  put(out_, kZip64EndMagic);
  put(out_, uint64_t{kZip64EndBytes - 12});
  put(out_, static_cast<uint16_t>(3 << 8 | 45));
  put(out_, uint16_t{45});
  put(out_, uint32_t{0});
  put(out_, uint32_t{0});
  put(out_, count);
  put(out_, count);
  put(out_, directory_bytes);
  put(out_, directory);
  put(out_, kZip64LocatorMagic);
  put(out_, uint32_t{0});
  put(out_, end);
  put(out_, uint32_t{1});
  put(out_, kEndMagic);
  put(out_, uint32_t{0});
  put(out_, static_cast<uint16_t>(std::min<uint64_t>(count, 0xFFFF)));
  put(out_, static_cast<uint16_t>(std::min<uint64_t>(count, 0xFFFF)));
  put(out_, static_cast<uint32_t>(std::min<uint64_t>(directory_bytes, kSmallest64)));
  put(out_, static_cast<uint32_t>(std::min<uint64_t>(directory, kSmallest64)));
  put(out_, uint16_t{0});
  members_.clear();
}

namespace {

struct Directory {
  uint64_t offset, bytes, count;
};

// Only what NpzWriter writes is taken: the ZIP64 records stand right before the end record, and no comment
// follows.
Result<Directory> find_directory(Bytes file) {
  const Status cut(Code::corrupt, "its zip directory is missing: the file is cut short or not an index");
  constexpr size_t kTail = kZip64EndBytes + kZip64LocatorBytes + kEndBytes;
  if (file.size() < kTail) return cut;
  const uint64_t zip64_end = file.size() - kTail;
  const std::byte* tail = file.data() + zip64_end;
  if (load_le<uint32_t>(tail) != kZip64EndMagic ||
      load_le<uint32_t>(tail + kZip64EndBytes) != kZip64LocatorMagic ||
      load_le<uint32_t>(tail + kZip64EndBytes + kZip64LocatorBytes) != kEndMagic) {
    return cut;
  }
  const Directory directory{load_le<uint64_t>(tail + 48), load_le<uint64_t>(tail + 40),
                            load_le<uint64_t>(tail + 32)};
  if (directory.offset > zip64_end || directory.bytes != zip64_end - directory.offset) return cut;
  return directory;
}

// Reads the two facts out of a version 1 .npy header. Returns the header's length, 0 if it is not one we use.
size_t parse_npy(Bytes member, Column& column) {
  if (member.size() < 10 || std::memcmp(member.data(), "\x93NUMPY\x01\x00", 8) != 0) return 0;
  const size_t length = 10 + load_le<uint16_t>(member.data() + 8);
  if (length > member.size()) return 0;
  const std::string_view text(reinterpret_cast<const char*>(member.data()) + 10, length - 10);
  const std::string_view before = "{'descr': '", between = "', 'fortran_order': False, 'shape': (";
  if (text.substr(0, before.size()) != before) return 0;
  const size_t type_end = text.find('\'', before.size());
  if (type_end == std::string_view::npos || text.substr(type_end, between.size()) != between) return 0;
  const std::string_view type = text.substr(before.size(), type_end - before.size());
  uint64_t count = 0;
  size_t at = type_end + between.size();
  const size_t digits = at;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (count > (uint64_t{1} << 58)) return 0;
    count = count * 10 + static_cast<uint64_t>(text[at] - '0');
  }
  if (at == digits || text.substr(at, 2) != ",)") return 0;
  for (std::string_view known : {"<u8", "<u4", "<u2", "<i8", "|u1"}) {
    if (type == known) column.type = known;
  }
  if (column.type.empty() || (member.size() - length) / item_bytes(column.type) != count ||
      (member.size() - length) % item_bytes(column.type) != 0) {
    return 0;
  }
  column.count = count;
  return length;
}

}  // namespace

Result<std::vector<Column>> read_npz(Bytes file) {
  PACKTRAIN_ASSIGN(directory, find_directory(file));
  const Status damaged(Code::corrupt, "its zip directory is damaged");
  std::vector<Column> columns;
  Bytes rest = file.subspan(directory.offset, directory.bytes);
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (rest.size() < kDirectoryBytes || load_le<uint32_t>(rest.data()) != kDirectoryMagic) return damaged;
    const size_t name_bytes = load_le<uint16_t>(rest.data() + 28),
                 extra_bytes = load_le<uint16_t>(rest.data() + 30);
    const size_t record = kDirectoryBytes + name_bytes + extra_bytes + load_le<uint16_t>(rest.data() + 32);
    if (rest.size() < record || load_le<uint16_t>(rest.data() + 10) != 0) return damaged;
    uint64_t bytes = load_le<uint32_t>(rest.data() + 24), offset = load_le<uint32_t>(rest.data() + 42);
    Bytes extra = rest.subspan(kDirectoryBytes + name_bytes, extra_bytes);
    if (bytes == kSmallest64 || offset == kSmallest64) {
      if (extra.size() < 4 || load_le<uint16_t>(extra.data()) != kZip64Extra) return damaged;
      extra = extra.subspan(4);
      if (bytes == kSmallest64) {
        if (extra.size() < 16) return damaged;
        bytes = load_le<uint64_t>(extra.data());
        extra = extra.subspan(16);
      }
      if (offset == kSmallest64) {
        if (extra.size() < 8) return damaged;
        offset = load_le<uint64_t>(extra.data());
      }
    }
    std::string name(reinterpret_cast<const char*>(rest.data()) + kDirectoryBytes, name_bytes);
    const uint32_t crc = load_le<uint32_t>(rest.data() + 16);
    rest = rest.subspan(record);

    if (offset > directory.offset || directory.offset - offset < kLocalBytes) return damaged;
    const std::byte* local = file.data() + offset;
    if (load_le<uint32_t>(local) != kLocalMagic) return damaged;
    const uint64_t data =
        offset + kLocalBytes + load_le<uint16_t>(local + 26) + load_le<uint16_t>(local + 28);
    if (data > directory.offset || bytes > directory.offset - data) return damaged;
    if (name.size() < 4 || name.compare(name.size() - 4, 4, ".npy") != 0) continue;

    Column column;
    column.name = name.substr(0, name.size() - 4);
    column.crc32 = crc;
    column.member_offset = data;
    column.member_bytes = bytes;
    const Bytes member = file.subspan(data, bytes);
    const size_t header = parse_npy(member, column);
    if (header == 0) continue;
    // A column that is not where its numbers can be used in place was not written by us.
    if ((data + header) % item_bytes(column.type) != 0) return damaged;
    column.data = member.subspan(header);
    columns.push_back(std::move(column));
  }
  if (!rest.empty()) return damaged;
  return columns;
}

Result<std::string> npz_directory_hash(Bytes file) {
  PACKTRAIN_ASSIGN(directory, find_directory(file));
  return hex64(xxh64(file.subspan(directory.offset)));
}

std::vector<std::string> damaged_columns(Bytes file, const std::vector<Column>& columns) {
  std::vector<std::string> damaged;
  for (const Column& column : columns) {
    if (crc32(file.subspan(column.member_offset, column.member_bytes)) != column.crc32)
      damaged.push_back(column.name);
  }
  return damaged;
}

}  // namespace packtrain
