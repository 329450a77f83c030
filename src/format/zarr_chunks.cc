#include "format/zarr_chunks.h"

#include <algorithm>

#include "base/hash.h"
#include "base/little_endian.h"
#include "base/words.h"

namespace packtrain {
namespace {

constexpr uint64_t kLargestChunk = uint64_t{1} << 31;     // of compressed ones: Blosc's own limit
constexpr uint64_t kHighestRatio = 32768;                 // of any codec here
constexpr uint64_t kFillForNothing = uint64_t{64} << 20;  // what may be claimed without anything stored
constexpr uint64_t kMissing = UINT64_MAX;
constexpr size_t kChunkReadsInFlight = 32;
constexpr uint64_t kLongestText = uint64_t{1} << 20;

// Collects the parts of one array.
class ChunkFinder {
 public:
  ChunkFinder(Storage& storage, ZarrStore& store, const std::string& folder, const ZarrArray& array,
              ArrayColumn& column)
      : storage_(storage), store_(store), folder_(folder), array_(array), column_(column) {}

  Status run() {
    const uint64_t rows = array_.shape[0];
    const uint64_t chunks = rows / array_.chunk_rows + (rows % array_.chunk_rows != 0 ? 1 : 0);
    part_rows_ = array_.shards ? array_.shards->inner_rows : array_.chunk_rows;
    const uint64_t parts = rows / part_rows_ + (rows % part_rows_ != 0 ? 1 : 0);
    if (parts > most_parts())
      return Status(Code::corrupt, "claims to have " + count_in_words(parts) + " chunks");
    std::vector<uint64_t> shape = array_.shape;
    shape[0] = std::max(part_rows_, rows);
    // A long_text has no size of its own; its parts are not used as such.
    const auto bytes = checked_array_bytes(shape, std::max<uint64_t>(column_.type.item_bytes, 1));
    if (!bytes) return Status(Code::corrupt, "claims more than 2^60 bytes");
    column_.part_bytes = std::max<uint64_t>(part_rows_ * column_.row_bytes(), 1);
    if (!array_.codec.pipeline.empty() && column_.part_bytes > kLargestChunk)
      return Status(Code::unsupported,
                    "has compressed chunks of more than 2 GiB; write it with smaller ones");
    PACKTRAIN_TRY(array_.shards ? find_shards(chunks) : find_chunks(chunks));
    column_.pipeline = array_.codec.pipeline;
    if (zip_checks_ && !column_.pipeline.empty()) column_.pipeline.push_back({std::string(kStoredCheck)});
    const uint64_t claimed = column_.bytes();
    if (claimed > kFillForNothing && (claimed - kFillForNothing) / kHighestRatio > stored_)
      return Status(Code::corrupt,
                    "claims " + bytes_in_words(claimed) + " with " + bytes_in_words(stored_) + " stored");
    return {};
  }

 private:
  // Inner chunks are many where they are small, but not more than their shards have bytes for their index.
  uint64_t most_parts() const { return array_.shards ? 16 * store_.most_chunks() : store_.most_chunks(); }

  std::string key(uint64_t chunk) const {
    return folder_.empty() ? array_.chunk_key(chunk) : folder_ + "/" + array_.chunk_key(chunk);
  }

  Result<std::optional<ZarrObject>> find(uint64_t chunk) {
    PACKTRAIN_ASSIGN(object, store_.find(key(chunk)));
    if (object && !object->pipeline.empty()) {
      return Status(Code::unsupported,
                    "is compressed by the zip; make the zip without compression, as zarr's ZipStore does")
          .at(printable(key(chunk)));
    }
    return object;
  }

  Status add_hole() {
    PACKTRAIN_TRY(array_.fill_trouble);
    column_.parts.push_back({.raw = column_.part_bytes, .hole = true});
    return {};
  }

  // A chunk's bytes: `bytes` at `offset` of the object's file.
  Status add_part(const ZarrObject& object, uint64_t offset, uint64_t bytes, uint64_t chunk) {
    const ZarrCodec& codec = array_.codec;
    ArrayPart part{.file = object.file, .raw = column_.part_bytes};
    const bool fits = bytes >= codec.front;
    part.offset = offset + codec.front;
    part.stored = fits ? bytes - codec.front : 0;
    const bool plain = codec.pipeline.empty() && !codec.texts;
    if (!fits || (plain && part.stored != part.raw) ||
        (!plain && !codec.texts && part.raw / kHighestRatio > part.stored)) {
      return Status(Code::corrupt, "holds " + count_in_words(bytes) + " bytes, which cannot be a chunk of " +
                                       count_in_words(part.raw))
          .at(printable(key(chunk)) + " @ " + std::to_string(offset));
    }
    if (has_zip_check(object)) {
      part.check_kind = object.check_kind;
      part.check = object.check;
    }
    stored_ += bytes;
    column_.parts.push_back(part);
    return {};
  }

  // Whether the zip's check of an object is one of the stored bytes of a chunk.
  bool has_zip_check(const ZarrObject& object) const {
    return !array_.shards && array_.codec.front == 0 && object.check_kind != CheckKind::none;
  }

  Status find_chunks(uint64_t chunks) {
    for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
      PACKTRAIN_ASSIGN(object, find(chunk));
      if (object && has_zip_check(*object)) zip_checks_ = true;
      PACKTRAIN_TRY(object ? add_part(*object, object->offset, object->bytes, chunk) : add_hole());
    }
    return {};
  }

  // A shard whose index is on its way.
  struct Shard {
    std::optional<ZarrObject> object;
    std::shared_ptr<const File> file;
    std::vector<std::byte> index;
    Read read;
  };

  Status find_shards(uint64_t chunks) {
    const uint64_t each = array_.chunk_rows / array_.shards->inner_rows;
    auto reads = storage_.reads(kChunkReadsInFlight);
    for (uint64_t first = 0; first < chunks; first += kChunkReadsInFlight) {
      std::vector<Shard> window(std::min<uint64_t>(kChunkReadsInFlight, chunks - first));
      std::vector<Read*> batch;
      for (size_t i = 0; i < window.size(); ++i) {
        PACKTRAIN_TRY(plan_index(first + i, each, window[i]));
        if (window[i].object) batch.push_back(&window[i].read);
      }
      if (!batch.empty()) reads->submit(batch);
      std::vector<Read*> finished(kChunkReadsInFlight);
      while (reads->in_flight() > 0) reads->wait(finished);
      for (size_t i = 0; i < window.size(); ++i) PACKTRAIN_TRY(take_index(first + i, each, window[i]));
    }
    return join_parts(each);
  }

  Status plan_index(uint64_t chunk, uint64_t each, Shard& shard) {
    PACKTRAIN_ASSIGN(object, find(chunk));
    if (!object) return {};
    shard.object = object;
    const uint64_t check = array_.shards->index_has_check ? sizeof(uint32_t) : 0;
    if (each > object->bytes / 16 || object->bytes - 16 * each < check) {
      return Status(Code::corrupt, "the shard is cut short: it has no room for its index")
          .at(printable(key(chunk)));
    }
    shard.index.resize(16 * each + check);
    const ArrayFile& place = store_.files[object->file];
    shard.file = place.file;
    if (shard.file == nullptr) {
      PACKTRAIN_ASSIGN(opened, storage_.open(place.path));
      shard.file = std::move(opened);
    }
    const uint64_t at = array_.shards->index_at_start ? 0 : object->bytes - shard.index.size();
    shard.read = {
        .file = shard.file.get(), .offset = object->offset + at, .into = shard.index, .status = {}, .tag = 0};
    return {};
  }

  Status take_index(uint64_t chunk, uint64_t each, const Shard& shard) {
    // The last shard may reach beyond the array.
    const uint64_t rows_left = array_.shape[0] - chunk * array_.chunk_rows;
    const uint64_t used = std::min(each, (rows_left - 1) / array_.shards->inner_rows + 1);
    if (!shard.object) {
      for (uint64_t i = 0; i < used; ++i) PACKTRAIN_TRY(add_hole());
      return {};
    }
    PACKTRAIN_TRY(shard.read.status);
    const Bytes table = Bytes(shard.index).first(16 * each);
    if (array_.shards->index_has_check &&
        crc32c(table) != load_le<uint32_t>(shard.index.data() + 16 * each)) {
      return Status(Code::corrupt, "the index of the shard does not match its CRC-32C; write it again")
          .at(printable(key(chunk)) + " @ " + std::to_string(shard.read.offset));
    }
    for (uint64_t i = 0; i < used; ++i) {
      const auto offset = load_le<uint64_t>(table.data() + 16 * i);
      const auto bytes = load_le<uint64_t>(table.data() + 16 * i + 8);
      if (offset == kMissing && bytes == kMissing) {
        PACKTRAIN_TRY(add_hole());
        continue;
      }
      if (offset > shard.object->bytes || bytes > shard.object->bytes - offset) {
        return Status(Code::corrupt, "chunk " + std::to_string(i) + " lies outside of its shard")
            .at(printable(key(chunk)));
      }
      PACKTRAIN_TRY(add_part(*shard.object, shard.object->offset + offset, bytes, chunk));
    }
    return {};
  }

  // Inner chunks that are stored as they are, in order and without gaps, are one part for each shard, so that
  // a sample that crosses them is still one stretch.
  Status join_parts(uint64_t each) {
    if (!array_.codec.pipeline.empty() || array_.codec.texts || each < 2) return {};
    std::vector<ArrayPart> joined;
    for (size_t i = 0; i < column_.parts.size(); ++i) {
      const ArrayPart& part = column_.parts[i];
      if (part.hole) return {};
      if (i % each == 0) {
        joined.push_back(part);
        continue;
      }
      ArrayPart& last = joined.back();
      if (part.file != last.file || part.offset != last.offset + last.stored) return {};
      last.stored += part.stored;
      last.raw += part.raw;
    }
    column_.parts = std::move(joined);
    column_.part_bytes *= each;
    return {};
  }

  Storage& storage_;
  ZarrStore& store_;
  const std::string& folder_;
  const ZarrArray& array_;
  ArrayColumn& column_;
  uint64_t part_rows_ = 1, stored_ = 0;
  bool zip_checks_ = false;
};

// Decodes a buffer whose length is not recorded beside it.
Result<std::vector<std::byte>> decode_whole(Pipeline pipeline, std::vector<std::byte> stored) {
  while (!pipeline.empty() && pipeline.back().name == "crc32c") {
    const size_t around = sizeof(uint32_t) + pipeline.back().parameter;
    std::vector<std::byte> inner(stored.size() - std::min(stored.size(), around));
    PACKTRAIN_TRY(decode({pipeline.back()}, stored, inner));
    stored = std::move(inner);
    pipeline.pop_back();
  }
  if (pipeline.empty()) return stored;
  if (pipeline.size() == 1 && pipeline[0].name == "blosc") {
    if (stored.size() < 16) return Status(Code::corrupt, "blosc data are cut short");
    const auto bytes = load_le<uint32_t>(stored.data() + 4);
    if (bytes / kHighestRatio > stored.size()) return Status(Code::corrupt, "blosc data claim too much");
    std::vector<std::byte> raw(bytes);
    PACKTRAIN_TRY(decode(pipeline, stored, raw));
    return raw;
  }
  if (pipeline.size() != 1 || pipeline[0].name != "zstd")
    return Status(Code::unsupported,
                  "texts are read from chunks that are plain, or compressed by zstd or blosc");
  Bytes rest = stored;
  PACKTRAIN_ASSIGN(stream, make_stream_decoder("zstd", [&](MutableBytes into) -> Result<size_t> {
                     const size_t count = std::min(into.size(), rest.size());
                     std::copy_n(rest.begin(), count, into.begin());
                     rest = rest.subspan(count);
                     return count;
                   }));
  std::vector<std::byte> raw;
  for (size_t got = 1; got > 0;) {
    const size_t before = raw.size();
    raw.resize(before + (size_t{1} << 20));
    PACKTRAIN_ASSIGN(now, stream->read(MutableBytes(raw).subspan(before)));
    got = now;
    raw.resize(before + got);
  }
  return raw;
}

// vlen-utf8: u32 count, then each u32 length and bytes.
Status take_texts(Bytes chunk, uint64_t wanted, std::vector<std::string>& texts) {
  Status cut(Code::corrupt, "the texts are cut short");
  if (chunk.size() < 4 || load_le<uint32_t>(chunk.data()) < wanted) return cut;
  chunk = chunk.subspan(4);
  for (uint64_t i = 0; i < wanted; ++i) {
    if (chunk.size() < 4) return cut;
    const auto length = load_le<uint32_t>(chunk.data());
    chunk = chunk.subspan(4);
    if (length > chunk.size() || length > kLongestText) return cut;
    texts.emplace_back(as_text(chunk.first(length)));
    chunk = chunk.subspan(length);
  }
  return {};
}

Status read_texts(Storage& storage, const ZarrStore& store, const ZarrArray& array, ArrayColumn& column) {
  const uint64_t rows = array.shape[0];
  const uint64_t each = array.shards ? array.shards->inner_rows : array.chunk_rows;
  if (rows / 16 > store.most_chunks())
    return Status(Code::corrupt, "claims to hold " + count_in_words(rows) + " texts");
  for (const ArrayPart& part : column.parts) {
    const uint64_t wanted = std::min(each, rows - column.texts.size());
    if (part.hole) {
      column.texts.resize(column.texts.size() + wanted, array.fill);
      continue;
    }
    const ArrayFile& place = store.files[part.file];
    std::shared_ptr<const File> file = place.file;
    if (file == nullptr) {
      PACKTRAIN_ASSIGN(opened, storage.open(place.path));
      file = std::move(opened);
    }
    std::vector<std::byte> stored(part.stored);
    PACKTRAIN_TRY(storage.read(*file, part.offset, stored));
    if (!matches(part.check_kind, part.check, stored)) {
      return Status(Code::corrupt, "its bytes do not match their check")
          .at("@ " + std::to_string(part.offset));
    }
    PACKTRAIN_ASSIGN(chunk, decode_whole(array.codec.pipeline, std::move(stored)));
    PACKTRAIN_TRY(take_texts(chunk, wanted, column.texts));
  }
  return {};
}

}  // namespace

Result<ArrayColumn> zarr_column(Storage& storage, ZarrStore& store, const std::string& folder,
                                std::string name, const ZarrArray& array) {
  ArrayColumn column;
  column.name = std::move(name);
  column.type = array.type;
  column.shape = array.shape;
  column.word = array.word;
  column.fill = array.fill;
  column.unusable = array.unusable;
  if (!column.unusable.ok() || column.shape.empty()) return column;
  Status status = ChunkFinder(storage, store, folder, array, column).run();
  if (status.ok() && array.codec.texts && column.shape.size() == 1)
    status = read_texts(storage, store, array, column);
  if (status.code() == Code::unsupported)
    column.unusable = status;
  else if (!status.ok())
    return status.at(printable(column.name));
  return column;
}

}  // namespace packtrain
