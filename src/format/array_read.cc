// Whole arrays into memory: labels, keys and offsets.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/words.h"
#include "format/array_table.h"
#include "io/cached_read.h"

namespace packtrain {
namespace {

constexpr size_t kReadsInFlight = 32;

// One part on its way: read straight to its place, or to a buffer that is then decoded.
struct PartRead {
  const ArrayPart* part = nullptr;
  MutableBytes place;
  std::shared_ptr<const File> file;
  std::vector<std::byte> stored;
  Read read;
};

Result<std::shared_ptr<const File>> open_file(Storage& storage, const ArrayFile& file) {
  if (file.file != nullptr) return file.file;
  PACKTRAIN_ASSIGN(opened, storage.open(file.path));
  return std::shared_ptr<const File>(std::move(opened));
}

Status finish(const ArrayColumn& column, PartRead& one) {
  const ArrayPart& part = *one.part;
  if (column.pipeline.empty() && part.check_kind == CheckKind::none) return {};
  std::vector<std::byte> decoded;
  Bytes raw = one.stored;
  if (!column.pipeline.empty()) {
    decoded.resize(part.raw);
    PACKTRAIN_TRY(decode_checked(column.pipeline, part.check_kind, part.check, one.stored, decoded));
    raw = decoded;
  } else if (!matches(part.check_kind, part.check, raw)) {
    return Status(Code::corrupt, "its bytes do not match their check");
  }
  std::memcpy(one.place.data(), raw.data() + part.start, one.place.size());
  return {};
}

}  // namespace

Result<std::vector<std::byte>> read_array(Storage& storage, const ArrayTable& table,
                                          const ArrayColumn& column) {
  std::vector<std::byte> bytes(column.bytes());
  std::unique_ptr<Reads> reads;  // made for the first that must be waited for
  for (size_t first = 0; first < column.parts.size(); first += kReadsInFlight) {
    const size_t count = std::min(kReadsInFlight, column.parts.size() - first);
    std::vector<PartRead> window(count);
    std::vector<Read*> batch;
    for (size_t i = 0; i < count; ++i) {
      PartRead& one = window[i];
      one.part = &column.parts[first + i];
      const uint64_t at = std::min<uint64_t>((first + i) * column.part_bytes, bytes.size());
      one.place = MutableBytes(bytes).subspan(at, std::min<uint64_t>(column.part_bytes, bytes.size() - at));
      if (one.part->hole && !column.fill.empty())
        PACKTRAIN_TRY(decode(fill_pipeline(column.fill), {}, one.place));
      if (one.part->hole || one.place.empty()) continue;
      PACKTRAIN_ASSIGN(file, open_file(storage, table.files[one.part->file]));
      one.file = std::move(file);
      const bool straight = column.pipeline.empty() && one.part->check_kind == CheckKind::none;
      if (!straight) one.stored.resize(one.part->stored);
      one.read = {.file = one.file.get(),
                  .offset = one.part->offset + (straight ? one.part->start : 0),
                  .into = straight ? one.place : MutableBytes(one.stored),
                  .status = {},
                  .tag = i};
      if (!read_if_cached(*one.file, one.read.offset, one.read.into)) {
        batch.push_back(&one.read);
        continue;
      }
      // What is in flight writes to what is given back here; at this point nothing is.
      if (Status status = finish(column, one); !status.ok())
        return status.at(printable(column.name) + " @ " + std::to_string(one.part->offset));
      one.stored = {};
    }
    if (batch.empty()) continue;
    if (!reads) reads = storage.reads(kReadsInFlight);
    reads->submit(batch);
    std::vector<Read*> finished(batch.size());
    while (reads->in_flight() > 0) {
      const size_t done = reads->wait(finished);
      for (Read* read : std::span(finished).first(done)) {
        PartRead& one = window[read->tag];
        Status status = read->status.ok() ? finish(column, one) : read->status;
        if (status.ok()) continue;
        while (reads->in_flight() > 0) reads->wait(finished);  // they write to what is given back here
        return status.at(printable(column.name) + " @ " + std::to_string(one.part->offset));
      }
    }
  }
  return bytes;
}

}  // namespace packtrain
