#include "format/zip_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "base/words.h"
#include "format/table.h"

namespace packtrain {
namespace {

// Folders, devices, pipes and sockets, as opposed to a kind that no system has.
bool is_other_kind(uint32_t mode) {
  return S_ISDIR(mode) || S_ISCHR(mode) || S_ISBLK(mode) || S_ISFIFO(mode) || S_ISSOCK(mode);
}

constexpr uint64_t kLocalExtraGuess = 64;  // local extra fields are rarely longer: room for times and owners
// No DEFLATE data decode to more than 1032 times their length, no zstd data to more than 32768 times (a run
// of 128 KiB in four bytes). What claims more was made to exhaust memory.
constexpr uint64_t kHighestZipDeflateRatio = 1032, kHighestZipZstdRatio = 32768;

}  // namespace

Pipeline zip_pipeline(const ZipEntry& entry) {
  switch (static_cast<ZipMethod>(entry.method)) {
    case ZipMethod::store:
      return {};
    case ZipMethod::deflate:
      return {{"deflate"}};
    case ZipMethod::zstd:
      return {{"zstd"}};
  }
  return {};
}

bool looks_like_zip(Storage& storage, const File& file) {
  if (file.size() < kZipEndBytes) return false;
  std::byte head[4], end[kZipEndBytes];
  if (!storage.read(file, 0, head).ok() || !storage.read(file, file.size() - sizeof end, end).ok()) {
    return false;
  }
  std::string_view signature = as_text(head);
  return signature == "PK\3\4" || signature == "PK\5\6" || signature == "PK\7\10" ||
         as_text(end).starts_with("PK\5\6");
}

Status ZipDirectory::read(const Wanted& wanted, const Take& take, EachCall calls) {
  wanted_ = &wanted;
  take_ = &take;
  PACKTRAIN_TRY(find_directory());
  PACKTRAIN_TRY(read_directory());
  PACKTRAIN_TRY(read_local_headers(calls));
  find_overlaps();
  return tell_damage();
}

Status ZipDirectory::tell_damage() {
  for (const ZipMember& member : members_) {
    if (member.damage.ok()) continue;
    Status status =
        member.damage.at(printable(member.record.name) + " @ " + std::to_string(member.record.local_offset));
    if (status.code() != Code::corrupt) return status;
    if (!options_.recover) return with_way_out(status);
    if (options_.damage) {
      options_.damage->push_back({member.record.local_offset, member.record.stored,
                                  printable(member.record.name) + ": " + member.damage.message()});
    }
  }
  return {};
}

Status ZipDirectory::find_directory() {
  uint64_t size = file_.size();
  auto tail_bytes = static_cast<size_t>(std::min<uint64_t>(size, kZipEndBytes + kZipLongestComment));
  std::vector<std::byte> tail(tail_bytes);
  PACKTRAIN_TRY(storage_.read(file_, size - tail_bytes, tail));
  auto at = find_zip_end(tail);
  if (!at) {
    return Status(Code::corrupt,
                  "no end record: the archive is cut short, or not a zip; `zip -FF` may save its entries");
  }
  ZipEnd end = parse_zip_end(Bytes(tail).subspan(*at, kZipEndBytes));
  uint64_t end_at = size - tail_bytes + *at;
  directory_end_ = end_at;
  PACKTRAIN_TRY(find_zip64_end(end_at, end));
  if (end.disk != 0 || end.directory_disk != 0) {
    return Status(Code::unsupported, "the archive is split; join it with `zip -s 0 --out JOINED.zip`");
  }
  // Whatever stands in front of the archive shifts all of its offsets.
  if (end.directory_bytes > directory_end_ || end.directory_offset > directory_end_ - end.directory_bytes) {
    return Status(Code::corrupt, "the directory does not fit into the file")
        .at("@ " + std::to_string(end_at));
  }
  directory_start_ = directory_end_ - end.directory_bytes;
  shift_ = directory_start_ - end.directory_offset;
  end_ = end;
  return {};
}

Status ZipDirectory::find_zip64_end(uint64_t end_at, ZipEnd& end) {
  if (end_at < kZip64LocatorBytes + kZip64EndBytes) return {};
  std::byte locator[kZip64LocatorBytes], record[kZip64EndBytes];
  PACKTRAIN_TRY(storage_.read(file_, end_at - kZip64LocatorBytes, locator));
  auto recorded = parse_zip64_locator(locator);
  if (!recorded) return {};
  uint64_t last = end_at - kZip64LocatorBytes - kZip64EndBytes;
  // Where it says, or right in front of the locator if something was put in front of the archive.
  for (uint64_t at : {*recorded, last}) {
    if (at > last) continue;
    PACKTRAIN_TRY(storage_.read(file_, at, record));
    auto found = parse_zip64_end(record);
    if (!found) continue;
    end = *found;
    directory_end_ = at;
    return {};
  }
  return Status(Code::corrupt, "the ZIP64 end record is missing").at("@ " + std::to_string(last));
}

Status ZipDirectory::read_directory() {
  directory_.resize(static_cast<size_t>(directory_end_ - directory_start_));
  PACKTRAIN_TRY(storage_.read(file_, directory_start_, directory_));
  Bytes rest = directory_;
  members_.reserve(directory_.size() / (kZipCentralBytes + 16));
  uint64_t count = 0;
  for (; !rest.empty(); ++count) {
    uint64_t at = directory_end_ - rest.size();
    auto record = take_zip_entry(rest);
    if (!record.ok()) return record.status().at("@ " + std::to_string(at));
    if (S_ISLNK(record->unix_mode)) {
      if (options_.links != nullptr) note_left_out(record->name, *options_.links);
      continue;
    }
    // What has bytes is a file, whatever else its mode says: devices and folders have none.
    if (record->name.ends_with('/') || (record->raw == 0 && is_other_kind(record->unix_mode))) continue;
    ZipMember member{.record = *record, .damage = {}};
    member.damage = check_entry(member.record);
    members_.push_back(std::move(member));
  }
  // Before ZIP64 the number was simply cut to 16 bits.
  bool agrees = end_.sixty_four ? count == end_.entries : (count & 0xFFFF) == (end_.entries & 0xFFFF);
  if (!agrees) {
    return Status(Code::corrupt, "the directory holds " + std::to_string(count) + " entries where " +
                                     std::to_string(end_.entries) + " are recorded");
  }
  return {};
}

// What the directory alone tells; moves the entry's offset to where it really is.
Status ZipDirectory::check_entry(ZipEntry& entry) const {
  if ((entry.flags & (kZipEncrypted | kZipStrongEncryption | kZipMaskedDirectory)) != 0) {
    return Status(Code::unsupported, "is encrypted; unpack it with its password and pack the files");
  }
  if (entry.disk != 0) return Status(Code::unsupported, "lies in another part of a split archive");
  if ((entry.flags & kZipPatched) != 0) return Status(Code::unsupported, "is a patch, not a file");
  uint64_t ratio = 1;
  switch (static_cast<ZipMethod>(entry.method)) {
    case ZipMethod::store:
      break;
    case ZipMethod::deflate:
      ratio = kHighestZipDeflateRatio;
      break;
    case ZipMethod::zstd:
      ratio = kHighestZipZstdRatio;
      break;
    default:
      return Status(Code::unsupported,
                    "is compressed by method " + std::to_string(entry.method) +
                        "; packtrain reads store (0), deflate (8) and zstd (93): unpack the "
                        "archive and pack the files");
  }
  if (entry.name.find('\0') != std::string_view::npos) {
    return Status(Code::corrupt, "its name holds a NUL byte");
  }
  uint64_t room = directory_start_ - shift_;
  uint64_t head = kZipLocalBytes + entry.name.size();
  if (entry.local_offset > room || head > room - entry.local_offset ||
      entry.stored > room - entry.local_offset - head) {
    return Status(Code::corrupt, "lies outside of the archive");
  }
  if (ratio == 1 ? entry.raw != entry.stored : entry.raw / ratio > entry.stored) {
    return Status(Code::corrupt, "cannot have " + std::to_string(entry.raw) + " bytes in " +
                                     std::to_string(entry.stored) + " stored ones");
  }
  entry.local_offset += shift_;
  return {};
}

// The end of what is wanted from a member's local header on: with its first bytes where they are likely to
// be.
uint64_t ZipDirectory::wanted_end(const ZipEntry& entry) const {
  uint64_t end = entry.local_offset + kZipLocalBytes + entry.name.size();
  if (const uint64_t bytes = (*wanted_)(entry); bytes > 0) end += kLocalExtraGuess + bytes;
  return std::min(end, directory_start_);
}

// In the order of the file, near ones together, many in flight.
Status ZipDirectory::read_local_headers(EachCall calls) {
  order_.reserve(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].damage.ok()) order_.push_back(i);
  }
  const auto before = [&](size_t a, size_t b) {
    return members_[a].record.local_offset < members_[b].record.local_offset;
  };
  if (!std::is_sorted(order_.begin(), order_.end(), before)) std::sort(order_.begin(), order_.end(), before);
  std::vector<Stretch> heads;
  heads.reserve(order_.size());
  for (size_t i : order_) {
    const ZipEntry& entry = members_[i].record;
    heads.push_back({entry.local_offset, wanted_end(entry) - entry.local_offset});
  }
  // All threads come from front to back, so that the place of one tells how far they are.
  const auto caller = std::this_thread::get_id();
  const auto take = [&](size_t position, Bytes head) -> Status {
    PACKTRAIN_TRY(take_head(head, order_[position]));
    if (std::this_thread::get_id() != caller) return {};
    return pace_.tell(
        {.phase = "index", .items = position + 1, .items_total = order_.size(), .unit = "members"});
  };
  return read_merged(storage_, file_, heads, take, calls);
}

// `head`: what was read from the local header on.
Status ZipDirectory::take_head(Bytes head, size_t number) {
  ZipMember& member = members_[number];
  member.damage = take_local(head, member);
  if (!member.damage.ok()) return {};
  const uint64_t wanted = (*wanted_)(member.record);
  if (wanted == 0) return {};
  member.damage = hand_on(head, number, wanted);
  return member.damage.code() == Code::corrupt ? Status() : member.damage;
}

Status ZipDirectory::take_local(Bytes head, ZipMember& member) {
  PACKTRAIN_ASSIGN(local, parse_zip_local(head));
  const ZipEntry& record = member.record;
  if (local.method != record.method || (local.flags & kZipEncrypted) != (record.flags & kZipEncrypted)) {
    return Status(Code::corrupt, "local header and directory differ in the method");
  }
  if (local.name_bytes != record.name.size() ||
      as_text(head.subspan(kZipLocalBytes, local.name_bytes)) != record.name) {
    return Status(Code::corrupt, "local header and directory differ in the name");
  }
  member.data_offset = record.local_offset + kZipLocalBytes + local.name_bytes + local.extra_bytes;
  return {};
}

Status ZipDirectory::hand_on(Bytes head, size_t number, uint64_t wanted) {
  const ZipMember& member = members_[number];
  if (member.data_offset > directory_start_ || member.record.stored > directory_start_ - member.data_offset) {
    return Status(Code::corrupt, "lies outside of the archive");
  }
  const uint64_t skip = member.data_offset - member.record.local_offset;
  if (skip <= head.size() && wanted <= head.size() - skip)
    return (*take_)(number, head.subspan(skip, wanted));
  std::vector<std::byte> first(wanted);
  PACKTRAIN_TRY(storage_.read(file_, member.data_offset, first));
  return (*take_)(number, first);
}

// No two entries may share bytes, and none may reach into the directory.
void ZipDirectory::find_overlaps() {
  for (size_t i = 0; i < order_.size(); ++i) {
    ZipMember& member = members_[order_[i]];
    if (!member.damage.ok()) continue;
    uint64_t limit = i + 1 < order_.size() ? members_[order_[i + 1]].record.local_offset : directory_start_;
    if (member.data_offset > limit || member.record.stored > limit - member.data_offset) {
      member.damage = Status(Code::corrupt, "overlaps what follows it @ " + std::to_string(limit));
    }
  }
}

Status zip_own_checks(Storage& storage, std::string_view path, std::vector<CheckedStretch>& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  const IndexOptions options;
  ZipDirectory directory(storage, *file, options);
  PACKTRAIN_TRY(
      directory.read([](const ZipEntry&) { return uint64_t{0}; }, [](size_t, Bytes) { return Status(); }));
  for (const ZipMember& member : directory.members()) {
    if (!member.damage.ok() || member.record.method != static_cast<uint16_t>(ZipMethod::store)) continue;
    out.push_back({.offset = member.data_offset,
                   .bytes = member.record.stored,
                   .kind = CheckKind::crc32,
                   .check = member.record.crc32,
                   .name = "the member " + std::string(member.record.name)});
  }
  return {};
}

}  // namespace packtrain
