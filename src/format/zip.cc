// Zip archives: the indexer. Entries stored as they are become plain extents with zip's own CRC-32,
// compressed ones blocks. Directory and local headers are read, payload is not, but for labels.
#include <sys/stat.h>

#include <algorithm>

#include "base/hash.h"
#include "base/words.h"
#include "format/grouping.h"
#include "format/pace.h"
#include "format/table.h"
#include "format/zip_records.h"
#include "format/zip_write.h"
#include "packtrain/codec.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

constexpr uint32_t kReadsInFlight = 64;
constexpr uint64_t kMergeGap = uint64_t{8} << 10;       // headers nearer than this share a read
constexpr uint64_t kMergedBytes = uint64_t{256} << 10;  // and a read is at most this long
constexpr uint64_t kLocalExtraGuess = 64;  // local extra fields are rarely longer: room for times and owners
constexpr uint64_t kLabelStored = 64;      // a label of kLabelBytes takes less in any method
// No DEFLATE data decode to more than 1032 times their length, no zstd data to more than 32768 times (a run
// of 128 KiB in four bytes). What claims more was made to exhaust memory.
constexpr uint64_t kHighestDeflateRatio = 1032, kHighestZstdRatio = 32768;

struct Entry {
  ZipEntry record;
  uint64_t data_offset = 0;
  int64_t label = kNoLabel;
  Status damage;  // why it cannot be used
};

// Reads the structure of one archive. One thread at a time. Memory: the directory, and about 150 bytes an
// entry.
class ZipIndexer {
 public:
  ZipIndexer(Storage& storage, const File& file, const IndexOptions& options)
      : storage_(storage), file_(file), options_(options), pace_(options.progress) {}

  Status run() {
    PACKTRAIN_TRY(find_directory());
    PACKTRAIN_TRY(read_directory());
    PACKTRAIN_TRY(read_local_headers());
    find_overlaps();
    for (const Entry& entry : entries_) {
      if (entry.damage.ok()) continue;
      Status status =
          entry.damage.at(printable(entry.record.name) + " @ " + std::to_string(entry.record.local_offset));
      if (status.code() != Code::corrupt) return status;
      if (!options_.recover) return with_way_out(status);
      if (options_.damage) {
        options_.damage->push_back({entry.record.local_offset, entry.record.stored,
                                    printable(entry.record.name) + ": " + entry.damage.message()});
      }
    }
    return {};
  }

  void add_members(MemberList& members, IndexBuilder& out) const {
    for (const Entry& entry : entries_) {
      if (!entry.damage.ok()) continue;
      MemberPlace place{.offset = entry.data_offset,
                        .stored = entry.record.stored,
                        .raw = entry.record.raw,
                        .check_kind = CheckKind::crc32,
                        .check = entry.record.crc32,
                        .label = entry.label};
      Pipeline pipeline = pipeline_of(entry.record);
      if (!pipeline.empty()) place.pipeline = out.add_pipeline(pipeline);
      members.add(entry.record.name, place);
    }
  }

 private:
  static Pipeline pipeline_of(const ZipEntry& entry) {
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

  Status find_directory() {
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

  Status find_zip64_end(uint64_t end_at, ZipEnd& end) {
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

  Status read_directory() {
    directory_.resize(static_cast<size_t>(directory_end_ - directory_start_));
    PACKTRAIN_TRY(storage_.read(file_, directory_start_, directory_));
    Bytes rest = directory_;
    entries_.reserve(directory_.size() / (kZipCentralBytes + 16));
    uint64_t count = 0;
    for (; !rest.empty(); ++count) {
      uint64_t at = directory_end_ - rest.size();
      auto record = take_zip_entry(rest);
      if (!record.ok()) return record.status().at("@ " + std::to_string(at));
      bool folder = record->name.ends_with('/');
      bool special = (record->unix_mode & S_IFMT) != 0 && !S_ISREG(record->unix_mode);
      if (folder || special) continue;
      Entry entry{.record = *record};
      entry.damage = check_entry(entry.record);
      entries_.push_back(std::move(entry));
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
  Status check_entry(ZipEntry& entry) const {
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
        ratio = kHighestDeflateRatio;
        break;
      case ZipMethod::zstd:
        ratio = kHighestZstdRatio;
        break;
      default:
        return Status(Code::unsupported, "is compressed by method " + std::to_string(entry.method) +
                                             "; packtrain reads store (0), deflate (8) and zstd (93)");
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

  // A read that covers the local headers of entries order_[first, last).
  struct Piece {
    Read read;
    std::vector<std::byte> buffer;
    size_t first = 0, last = 0;
  };

  // The bytes wanted from an entry's local header on: with a label's data where they are likely to be.
  uint64_t wanted_end(const Entry& entry) const {
    uint64_t end = entry.record.local_offset + kZipLocalBytes + entry.record.name.size();
    if (is_label(entry.record)) end += kLocalExtraGuess + entry.record.stored;
    return std::min(end, directory_start_);
  }

  static bool is_label(const ZipEntry& entry) {
    return entry.raw <= kLabelBytes && entry.stored <= kLabelStored && is_label_member(entry.name);
  }

  // In the order of the file, near ones together, many in flight.
  Status read_local_headers() {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].damage.ok()) order_.push_back(i);
    }
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return entries_[a].record.local_offset < entries_[b].record.local_offset;
    });
    std::vector<Piece> pieces(kReadsInFlight);  // outlives what is in flight
    std::vector<Piece*> idle;
    idle.reserve(pieces.size());
    for (Piece& piece : pieces) idle.push_back(&piece);
    std::unique_ptr<Reads> reads = storage_.reads(kReadsInFlight);
    for (size_t next = 0; next < order_.size() || reads->in_flight() > 0;) {
      std::vector<Read*> batch;
      for (; next < order_.size() && !idle.empty(); idle.pop_back()) {
        next = plan(next, *idle.back());
        idle.back()->read.tag = static_cast<uint64_t>(idle.back() - pieces.data());
        batch.push_back(&idle.back()->read);
      }
      if (!batch.empty()) reads->submit(batch);
      Read* finished[kReadsInFlight];
      size_t count = reads->wait(finished);
      for (Read* read : std::span(finished, count)) {
        Piece& piece = pieces[read->tag];
        PACKTRAIN_TRY(read->status);
        PACKTRAIN_TRY(take(piece));
        idle.push_back(&piece);
      }
      PACKTRAIN_TRY(
          pace_.tell_now({.phase = "index", .items = next, .items_total = order_.size(), .unit = "members"}));
    }
    return {};
  }

  // Lays out the read of the entries from order_[first] on; returns where the next one begins.
  size_t plan(size_t first, Piece& piece) {
    uint64_t start = entries_[order_[first]].record.local_offset;
    uint64_t end = wanted_end(entries_[order_[first]]);
    size_t last = first + 1;
    for (; last < order_.size(); ++last) {
      const Entry& entry = entries_[order_[last]];
      uint64_t further = std::max(end, wanted_end(entry));
      if (entry.record.local_offset > end + kMergeGap || further - start > kMergedBytes) break;
      end = further;
    }
    piece.first = first;
    piece.last = last;
    piece.buffer.resize(static_cast<size_t>(end - start));
    piece.read = {.file = &file_, .offset = start, .into = piece.buffer};
    return last;
  }

  Status take(const Piece& piece) {
    for (size_t i = piece.first; i < piece.last; ++i) {
      Entry& entry = entries_[order_[i]];
      Bytes head = Bytes(piece.buffer).subspan(entry.record.local_offset - piece.read.offset);
      entry.damage = take_local(head, entry);
      if (!entry.damage.ok() || !is_label(entry.record)) continue;
      auto label = read_label(head, entry);
      if (!label.ok() && label.status().code() != Code::corrupt) return label.status();
      if (label.ok()) entry.label = *label;
      entry.damage = label.status();
    }
    return {};
  }

  static Status take_local(Bytes head, Entry& entry) {
    PACKTRAIN_ASSIGN(local, parse_zip_local(head));
    const ZipEntry& record = entry.record;
    if (local.method != record.method || (local.flags & kZipEncrypted) != (record.flags & kZipEncrypted)) {
      return Status(Code::corrupt, "local header and directory differ in the method");
    }
    if (local.name_bytes != record.name.size() ||
        as_text(head.subspan(kZipLocalBytes, local.name_bytes)) != record.name) {
      return Status(Code::corrupt, "local header and directory differ in the name");
    }
    entry.data_offset = record.local_offset + kZipLocalBytes + local.name_bytes + local.extra_bytes;
    return {};
  }

  // `head`: what was read from the local header on.
  Result<int64_t> read_label(Bytes head, const Entry& entry) {
    const ZipEntry& record = entry.record;
    if (entry.data_offset > directory_start_ || record.stored > directory_start_ - entry.data_offset) {
      return Status(Code::corrupt, "lies outside of the archive");
    }
    uint64_t skip = entry.data_offset - record.local_offset;
    std::byte stored_bytes[kLabelStored], raw_bytes[kLabelBytes];
    Bytes stored;
    if (skip <= head.size() && record.stored <= head.size() - skip) {
      stored = head.subspan(skip, record.stored);
    } else {
      PACKTRAIN_TRY(storage_.read(file_, entry.data_offset, std::span(stored_bytes).first(record.stored)));
      stored = std::span(stored_bytes).first(record.stored);
    }
    MutableBytes raw = std::span(raw_bytes).first(record.raw);
    PACKTRAIN_TRY(decode(pipeline_of(record), stored, raw));
    if (crc32(raw) != record.crc32) return Status(Code::corrupt, "its bytes do not match its CRC-32");
    return parse_label(raw).value_or(kNoLabel);
  }

  // No two entries may share bytes, and none may reach into the directory.
  void find_overlaps() {
    for (size_t i = 0; i < order_.size(); ++i) {
      Entry& entry = entries_[order_[i]];
      if (!entry.damage.ok()) continue;
      uint64_t limit = i + 1 < order_.size() ? entries_[order_[i + 1]].record.local_offset : directory_start_;
      if (entry.data_offset > limit || entry.record.stored > limit - entry.data_offset) {
        entry.damage = Status(Code::corrupt, "overlaps what follows it @ " + std::to_string(limit));
      }
    }
  }

  Storage& storage_;
  const File& file_;
  const IndexOptions& options_;
  Pace pace_;
  ZipEnd end_;
  uint64_t directory_start_ = 0, directory_end_ = 0;
  uint64_t shift_ = 0;  // bytes in front of the archive
  std::vector<std::byte> directory_;
  std::vector<Entry> entries_;  // views into directory_
  std::vector<size_t> order_;   // the sound ones, by place in the file
};

bool recognise_zip(Storage& storage, std::string_view path) {
  auto file = storage.open(path);
  if (!file.ok() || (*file)->size() < kZipEndBytes) return false;
  std::byte head[4], end[kZipEndBytes];
  if (!storage.read(**file, 0, head).ok() || !storage.read(**file, (*file)->size() - sizeof end, end).ok()) {
    return false;
  }
  std::string_view signature = as_text(head);
  return signature == "PK\3\4" || signature == "PK\5\6" || signature == "PK\7\10" ||
         as_text(end).starts_with("PK\5\6");
}

Status index_zip(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  ZipIndexer indexer(storage, *file, options);
  Status status = indexer.run();
  if (!status.ok()) return status.at(path);
  uint32_t shard = out.add_shard(shard_spec(kZip, path, *file, options));
  MemberList members;
  indexer.add_members(members, out);
  // A zip has a directory, and the order of its entries is that of some filesystem: it promises nothing.
  status = members.add_samples(Adjacency::irrelevant, shard, options, out);
  return status.ok() ? status : status.at(path);
}

}  // namespace

const Format kZip = {
    .name = "zip",
    .suffix = ".zip",
    .summary = "zip archives, stored or compressed by entry",
    .recognise = recognise_zip,
    .index = index_zip,
    .layout = &kZipLayout,
    .create = create_zip,
};

}  // namespace packtrain
