// Arrow IPC: the indexer. Values that lie uncompressed become plain extents, compressed buffers become blocks
// of which samples are slices. Metadata, offsets, labels and keys are read, other values are not.
//
// The file form has a footer that places every batch; the stream form, which Hugging Face datasets keeps its
// caches in, is walked from message to message. A file whose footer is lost is walked too, with `recover`.
#include <algorithm>
#include <exception>
#include <utility>

#include "base/threads.h"
#include "format/arrow_records.h"
#include "format/arrow_samples.h"
#include "format/arrow_write.h"
#include "format/merged_reads.h"
#include "format/pace.h"
#include "format/table.h"
#include "format/window.h"
#include "io/grant.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

// Batches that are taken together: many enough for reads to be on their way together, few enough that what is
// known of them stays in the processor's cache.
constexpr size_t kBatchesAtOnce = 4096;
constexpr uint64_t kMetadataAtOnce = uint64_t{4} << 20;
// Bytes in front of a batch's metadata and behind them that are read along: small buffers lie there, such as
// the label of the batch before, and the offsets of this one.
constexpr uint64_t kBytesBefore = 64, kBytesBehind = 256;
constexpr uint64_t kTailGuess = uint64_t{64} << 10;  // the footer of a file with few batches
constexpr uint64_t kLongestSchema = uint64_t{64} << 20;

struct Prefix {
  uint64_t bytes = 0;           // of the prefix itself
  uint64_t metadata_bytes = 0;  // 0: the end of the stream
};

// `head`: up to 8 bytes. Before Arrow 0.15 a message began with its length.
Result<Prefix> parse_prefix(Bytes head) {
  if (head.size() < 4) return Status(Code::corrupt, "a message is cut short");
  auto bytes = load_le<int32_t>(head.data());
  uint64_t prefix = 4;
  if (static_cast<uint32_t>(bytes) == kArrowContinuation) {
    if (head.size() < 8) return Status(Code::corrupt, "a message is cut short");
    bytes = load_le<int32_t>(head.data() + 4);
    prefix = 8;
  }
  if (bytes < 0) return Status(Code::corrupt, "no message begins here");
  return Prefix{prefix, static_cast<uint64_t>(bytes)};
}

// Indexes one file. One thread at a time. Memory: the footer, and some tens of megabytes.
class ArrowIndexer {
 public:
  ArrowIndexer(Storage& storage, std::string_view path, const File& file, const IndexOptions& options,
               IndexBuilder& out)
      : storage_(storage), path_(path), file_(file), options_(options), out_(out), pace_(options.progress) {}

  Status run() {
    if (file_.size() == 0) return Status(Code::corrupt, "file is empty");
    std::byte head[kArrowHeadBytes] = {};
    PACKTRAIN_TRY(storage_.read(
        file_, 0, std::span(head).first(static_cast<size_t>(std::min<uint64_t>(sizeof head, file_.size())))));
    if (as_text(head).starts_with(kArrowMagic)) return run_file();
    // A file whose first bytes are damaged is whole where it counts.
    if (load_le<uint32_t>(head) != kArrowContinuation) {
      PACKTRAIN_ASSIGN(is_file, ends_with_magic());
      if (is_file) return run_file();
    }
    return walk(0, false);
  }

 private:
  Result<bool> ends_with_magic() {
    if (file_.size() < kArrowHeadBytes + kArrowTailBytes) return false;
    std::byte magic[kArrowMagic.size()];
    PACKTRAIN_TRY(storage_.read(file_, file_.size() - sizeof magic, magic));
    return as_text(magic) == kArrowMagic;
  }

  Status run_file() {
    Status status = read_footer();
    if (status.code() == Code::corrupt && options_.recover) {
      if (options_.damage) options_.damage->push_back({file_.size(), 0, status.message()});
      return walk(std::min(kArrowHeadBytes, file_.size()), true);
    }
    if (status.code() == Code::corrupt) return with_way_out(status);
    PACKTRAIN_TRY(status);
    return read_batches();
  }

  Status read_footer() {
    const uint64_t size = file_.size();
    if (size < kArrowHeadBytes + kArrowTailBytes) return Status(Code::corrupt, "the file is cut short");
    const uint64_t tail_bytes = std::min(size, kTailGuess);
    std::vector<std::byte> tail(static_cast<size_t>(tail_bytes));
    PACKTRAIN_TRY(storage_.read(file_, size - tail_bytes, tail));
    if (!as_text(tail).ends_with(kArrowMagic)) {
      return Status(Code::corrupt, "no footer: the file is cut short, or its writer did not close it")
          .at("@ " + std::to_string(size));
    }
    const auto claimed = load_le<int32_t>(tail.data() + tail.size() - kArrowTailBytes);
    const uint64_t room = size - kArrowHeadBytes - kArrowTailBytes;
    if (claimed <= 0 || static_cast<uint64_t>(claimed) > room)
      return Status(Code::corrupt, "a footer of " + std::to_string(claimed) + " bytes does not fit the file")
          .at("@ " + std::to_string(size - kArrowTailBytes));
    const auto bytes = static_cast<size_t>(claimed);
    footer_at_ = size - kArrowTailBytes - bytes;
    if (bytes + kArrowTailBytes <= tail.size()) {
      metadata_.assign(tail.end() - static_cast<ptrdiff_t>(bytes + kArrowTailBytes),
                       tail.end() - static_cast<ptrdiff_t>(kArrowTailBytes));
    } else {
      metadata_.resize(bytes);
      PACKTRAIN_TRY(storage_.read(file_, footer_at_, metadata_));
    }
    const Status status = take_footer();
    return status.ok() ? status : status.at("footer @ " + std::to_string(footer_at_));
  }

  Status take_footer() {
    PACKTRAIN_ASSIGN(footer, parse_arrow_footer(metadata_));
    PACKTRAIN_ASSIGN(schema, parse_arrow_schema(footer.schema, footer.version));
    schema_ = std::move(schema);
    blocks_.reserve(footer.blocks.count);
    for (size_t i = 0; i < footer.blocks.count; ++i) {
      const auto block =
          parse_arrow_block(footer.blocks.bytes.subspan(i * ArrowBlock::kBytes, ArrowBlock::kBytes));
      if (!block || block->offset > footer_at_ || block->metadata_bytes > footer_at_ - block->offset ||
          block->body_bytes > footer_at_ - block->offset - block->metadata_bytes)
        return Status(Code::corrupt, "batch " + std::to_string(i) + " lies outside of the file");
      blocks_.push_back(*block);
    }
    // No two may share bytes: what is read for all of them is then no more than the file.
    std::vector<size_t> order(blocks_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto before = [&](size_t a, size_t b) { return blocks_[a].offset < blocks_[b].offset; };
    if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
    for (size_t i = 1; i < order.size(); ++i) {
      const ArrowBlock &one = blocks_[order[i - 1]], &next = blocks_[order[i]];
      if (next.offset - one.offset < one.metadata_bytes + one.body_bytes || next.offset == one.offset)
        return Status(Code::corrupt, "batches " + std::to_string(order[i - 1]) + " and " +
                                         std::to_string(order[i]) + " overlap");
    }
    return {};
  }

  // Batches that are taken together.
  struct Batches {
    size_t first = 0, last = 0;  // of blocks_
    std::vector<ArrowPlace> places;
    std::vector<Status> damage;   // of each
    std::vector<std::byte> held;  // of all places
    Status read;
  };

  // While the samples of some batches are added, a second thread reads the metadata of the next ones.
  Status read_batches() {
    ArrowSamples samples = make_samples();
    Batches now, next;
    read(now, 0);
    while (now.first < now.last) {
      next.first = next.last = now.last;
      std::exception_ptr trouble;
      Threads ahead;
      const bool more = now.last < blocks_.size();
      const bool apart = more && affinity_cores() > 1 &&
                         ahead
                             .start("read batches",
                                    [&] {
                                      try {
                                        read(next, now.last);
                                      } catch (...) {
                                        trouble = std::current_exception();
                                      }
                                    })
                             .ok();
      PACKTRAIN_TRY(now.read);
      PACKTRAIN_TRY(add(now, samples));
      ahead.join();
      if (trouble) std::rethrow_exception(trouble);
      PACKTRAIN_TRY(pace_.tell_now(
          {.phase = "index", .items = now.last, .items_total = blocks_.size(), .unit = "batches"}));
      if (more && !apart) read(next, now.last);
      std::swap(now, next);
    }
    return samples.finish();
  }

  void read(Batches& batches, size_t first) {
    batches.first = batches.last = first;
    const size_t most = std::min(kBatchesAtOnce, blocks_.size() - first);
    batches.places.clear();
    batches.places.reserve(most);
    std::vector<Stretch> stretches;
    stretches.reserve(most);
    uint64_t bytes = 0;
    for (size_t& last = batches.last;
         last < blocks_.size() && stretches.size() < kBatchesAtOnce && bytes < kMetadataAtOnce; ++last) {
      const ArrowBlock& block = blocks_[last];
      ArrowPlace& place = batches.places.emplace_back();
      place.offset = block.offset;
      place.held_offset = block.offset - std::min(block.offset, kBytesBefore);
      const uint64_t metadata_end = block.offset + block.metadata_bytes;
      const uint64_t end = metadata_end + std::min(kBytesBehind, footer_at_ - metadata_end);
      stretches.push_back({place.held_offset, end - place.held_offset});
      bytes += stretches.back().bytes;
    }
    // With some room to spare: the next ones may be a little longer, and memory of another length is new
    // memory.
    if (batches.held.size() < bytes)
      batches.held = std::vector<std::byte>(static_cast<size_t>(bytes + bytes / 8));
    batches.damage.assign(stretches.size(), {});
    MutableBytes room = batches.held;
    std::vector<MutableBytes> rooms;
    rooms.reserve(stretches.size());
    for (const Stretch& stretch : stretches) {
      rooms.push_back(room.first(static_cast<size_t>(stretch.bytes)));
      batches.places[rooms.size() - 1].held = rooms.back();
      room = room.subspan(rooms.back().size());
    }
    const auto take = [&](size_t position, Bytes got) {
      std::copy(got.begin(), got.end(), rooms[position].begin());
      batches.damage[position] = take_block(blocks_[first + position], batches.places[position]);
      return Status();
    };
    batches.read = read_merged(storage_, file_, stretches, take, EachCall::side_by_side);
  }

  Status add(Batches& batches, ArrowSamples& samples) {
    size_t sound = 0;
    for (size_t i = 0; i < batches.places.size(); ++i) {
      const ArrowBlock& block = blocks_[batches.first + i];
      if (!batches.damage[i].ok()) {
        PACKTRAIN_TRY(
            samples.pass_over(block.offset, block.metadata_bytes + block.body_bytes, batches.damage[i]));
        continue;
      }
      if (sound != i) batches.places[sound] = std::move(batches.places[i]);
      ++sound;
    }
    return samples.add(std::span(batches.places).first(sound));
  }

  static Status take_block(const ArrowBlock& block, ArrowPlace& place) {
    const Bytes all = place.held.subspan(static_cast<size_t>(block.offset - place.held_offset),
                                         static_cast<size_t>(block.metadata_bytes));
    PACKTRAIN_ASSIGN(prefix, parse_prefix(all));
    if (prefix.metadata_bytes > all.size() - prefix.bytes)
      return Status(Code::corrupt, "a message is longer than the footer says");
    PACKTRAIN_ASSIGN(message, parse_arrow_message(all.subspan(static_cast<size_t>(prefix.bytes),
                                                              static_cast<size_t>(prefix.metadata_bytes))));
    if (message.kind != ArrowMessageKind::batch || message.body_bytes > block.body_bytes)
      return Status(Code::corrupt, "is not the batch that the footer says");
    place.header = message.header;
    place.body_offset = block.offset + block.metadata_bytes;
    place.body_bytes = message.body_bytes;
    return {};
  }

  // A message at `at`; its metadata lie behind `at + prefix.bytes`, its body behind them.
  struct Found {
    Prefix prefix;
    ArrowMessage message;
    uint64_t end = 0;
  };

  // `held` becomes the message up to its body, with some bytes in front and behind.
  Result<Found> find_message(Window& window, uint64_t at, std::vector<std::byte>& held,
                             uint64_t& held_offset) {
    const uint64_t size = file_.size(), room = size - at;
    // The window moves forward: what lies in front is asked for first.
    held_offset = at - std::min(at, kBytesBefore);
    const auto before = static_cast<size_t>(at - held_offset);
    PACKTRAIN_ASSIGN(head, window.at(held_offset, before + static_cast<size_t>(std::min<uint64_t>(room, 8))));
    Found found;
    PACKTRAIN_ASSIGN(prefix, parse_prefix(head.subspan(before)));
    found.prefix = prefix;
    found.end = at + prefix.bytes;
    if (prefix.metadata_bytes == 0) return found;
    if (prefix.metadata_bytes > room - prefix.bytes) return Status(Code::corrupt, "a message is cut short");
    const uint64_t body_at = at + prefix.bytes + prefix.metadata_bytes;
    const uint64_t end = body_at + std::min(kBytesBehind, size - body_at);
    PACKTRAIN_ASSIGN(all, window.at(held_offset, static_cast<size_t>(end - held_offset)));
    held.assign(all.begin(), all.end());
    PACKTRAIN_ASSIGN(message,
                     parse_arrow_message(Bytes(held).subspan(before + static_cast<size_t>(prefix.bytes),
                                                             static_cast<size_t>(prefix.metadata_bytes))));
    if (message.body_bytes > size - body_at) return Status(Code::corrupt, "a batch is cut short");
    found.message = message;
    found.end = body_at + message.body_bytes;
    return found;
  }

  // From message to message to the end mark. `in_file`: the footer, or what is left of it, may follow.
  Status walk(uint64_t at, bool in_file) {
    Window window(storage_, file_);
    uint64_t held_offset = 0;
    auto first = find_message(window, at, metadata_, held_offset);
    if (!first.ok()) return first.status().at("@ " + std::to_string(at));
    if (first->message.kind != ArrowMessageKind::schema)
      return Status(Code::corrupt, "no schema where the messages begin: no Arrow file, or a damaged one")
          .at("@ " + std::to_string(at));
    auto schema = parse_arrow_schema(first->message.header, first->message.version);
    if (!schema.ok()) return schema.status().at("schema @ " + std::to_string(at));
    schema_ = std::move(*schema);
    ArrowSamples samples = make_samples();
    std::vector<ArrowPlace> places;
    uint64_t bytes = 0;
    Status damage;
    for (at = first->end;;) {
      ArrowPlace place;
      if (at == file_.size()) {
        damage =
            Status(Code::corrupt, "no end mark: the stream is cut short, or its writer did not close it");
        break;
      }
      auto found = find_message(window, at, place.own, place.held_offset);
      place.held = place.own;
      damage = found.status();
      if (!damage.ok()) break;
      if (found->prefix.metadata_bytes == 0) {
        at = found->end;
        if (at != file_.size() && !in_file) {
          damage = Status(Code::corrupt,
                          std::to_string(file_.size() - at) + " bytes follow the end mark of the stream");
        }
        break;
      }
      if (found->message.kind == ArrowMessageKind::batch) {
        place.offset = at;
        place.body_offset = found->end - found->message.body_bytes;
        place.body_bytes = found->message.body_bytes;
        place.header = found->message.header;
        bytes += place.held.size();
        places.push_back(std::move(place));
      } else if (found->message.kind != ArrowMessageKind::dictionary) {
        damage = Status(Code::corrupt, "a second schema, or a message of a kind that does not belong here");
        break;
      }
      at = found->end;
      if (places.size() == kBatchesAtOnce || bytes >= kMetadataAtOnce) {
        PACKTRAIN_TRY(samples.add(places));
        places.clear();
        bytes = 0;
      }
      PACKTRAIN_TRY(pace_.tell({.phase = "index",
                                .items = out_.samples(),
                                .bytes = at,
                                .bytes_total = file_.size(),
                                .unit = "samples"}));
    }
    PACKTRAIN_TRY(samples.add(places));
    // In a file without a footer the end mark is missing too, which has been said.
    if (!damage.ok() && !(in_file && at == file_.size()))
      PACKTRAIN_TRY(samples.pass_over(at, file_.size() - at, damage));
    return samples.finish();
  }

  ArrowSamples make_samples() {
    const uint32_t shard = out_.add_shard(shard_spec(kArrow, path_, file_, options_));
    return ArrowSamples(storage_, file_, schema_, options_, shard, out_);
  }

  Storage& storage_;
  const std::string_view path_;
  const File& file_;
  const IndexOptions& options_;
  IndexBuilder& out_;
  Pace pace_;
  std::vector<std::byte> metadata_;  // the footer, or the schema's message
  ArrowSchema schema_;               // views into metadata_
  uint64_t footer_at_ = 0;
  std::vector<ArrowBlock> blocks_;
};

// A stream begins with its schema; before Arrow 0.15 nothing in front of it told that.
bool begins_stream(Storage& storage, const File& file, Bytes head) {
  if (load_le<uint32_t>(head.data()) != kArrowContinuation) return false;
  const auto prefix = parse_prefix(head);
  if (!prefix.ok() || prefix->metadata_bytes > std::min(file.size() - head.size(), kLongestSchema))
    return false;
  std::vector<std::byte> metadata(static_cast<size_t>(prefix->metadata_bytes));
  if (!storage.read(file, head.size(), metadata).ok()) return false;
  const auto message = parse_arrow_message(metadata);
  return message.ok() && message->kind == ArrowMessageKind::schema;
}

bool recognise_arrow(Storage& storage, std::string_view path) {
  const auto file = storage.open(path);
  std::byte head[kArrowHeadBytes];
  if (!file.ok() || (*file)->size() < sizeof head || !storage.read(**file, 0, head).ok()) return false;
  return as_text(head).starts_with(kArrowMagic) || begins_stream(storage, **file, head);
}

Status index_arrow(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  const Status status = ArrowIndexer(storage, path, *file, options, out).run();
  return status.ok() ? status : status.at(path);
}

}  // namespace

const Format kArrow = {
    .name = "arrow",
    .suffix = ".arrow",
    .summary = "Arrow IPC files and streams",
    .recognise = recognise_arrow,
    .index = index_arrow,
    .layout = nullptr,
    .create = create_arrow,
    .cut = Cut::splits,
    .label_column = true,
};

}  // namespace packtrain
