#include "format/parquet_pages.h"

#include <algorithm>
#include <bit>

#include "base/little_endian.h"
#include "format/merged_reads.h"
#include "format/window.h"

namespace packtrain {
namespace {

constexpr uint64_t kHeadGuess = 128;                  // of a page without statistics; with a first length
constexpr uint64_t kLongestHead = uint64_t{1} << 20;  // statistics hold whole values
constexpr size_t kPagesAtOnce = 4096;

Status unsupported(std::string_view what) {
  return Status(
      Code::unsupported,
      std::string(what) +
          "; only uncompressed plain pages are read in place. Write it again once, in Python as Arrow: "
          "packtrain.arrow_from_parquet('x.parquet', 'x.arrow'), or as such pages: "
          "pyarrow.parquet.write_table(table, 'y.parquet', compression='none', use_dictionary=False)");
}

}  // namespace

// One chunk on its way.
struct ParquetPages::Walk {
  Window window;
  const ParquetLeaf& leaf;
  const uint64_t rows;
  const Bring bring;
  const uint64_t shortest;
  ParquetValues& out;
  // Bytes at hand, from `held_at` on; what lies elsewhere is read through the window.
  Bytes held;
  uint64_t held_at = 0;
  std::vector<bool> present;

  Result<Bytes> at(uint64_t offset, uint64_t bytes) {
    if (offset >= held_at && offset - held_at <= held.size() && bytes <= held.size() - (offset - held_at))
      return held.subspan(static_cast<size_t>(offset - held_at), static_cast<size_t>(bytes));
    return window.at(offset, static_cast<size_t>(bytes));
  }

  // The head of the page at `offset`, which ends before `end`.
  Result<ParquetPage> head(uint64_t offset, uint64_t end) {
    for (uint64_t guess = kHeadGuess;; guess *= 16) {
      const uint64_t bytes = std::min(guess, end - offset);
      PACKTRAIN_ASSIGN(some, at(offset, bytes));
      auto page = parse_parquet_page(some);
      if (page.ok() && page->bytes > end - offset - page->head_bytes)
        return Status(Code::corrupt, "a page is longer than its column");
      if (page.ok() || bytes == end - offset || guess > kLongestHead) return page;
    }
  }

  // Takes the page at `offset`; returns where the next one begins.
  Result<uint64_t> page(uint64_t offset, uint64_t end) {
    PACKTRAIN_ASSIGN(page, head(offset, end));
    uint64_t at_value = offset + page.head_bytes;
    const uint64_t page_end = at_value + page.bytes;
    if (page.kind == ParquetPageKind::dictionary) return unsupported("holds a column with a dictionary");
    if (page.kind == ParquetPageKind::index) return page_end;
    if (page.encoding != kParquetPlain)
      return unsupported("holds a column in " + std::string(parquet_encoding_name(page.encoding)) +
                         " encoding");
    if (page.values > rows - out.rows.size())
      return Status(Code::corrupt, "a column has more values than its row group has rows");
    PACKTRAIN_TRY(levels(page, at_value, page_end));
    for (uint64_t i = 0; i < page.values; ++i) {
      if (!present.empty() && !present[i]) {
        add({}, {});
        continue;
      }
      uint64_t bytes = leaf.width;
      if (leaf.type == ParquetType::byte_array) {
        if (page_end - at_value < sizeof(uint32_t)) return cut_short();
        PACKTRAIN_ASSIGN(length, at(at_value, sizeof(uint32_t)));
        bytes = load_le<uint32_t>(length.data());
        at_value += sizeof(uint32_t);
      }
      if (bytes > page_end - at_value) return cut_short();
      Bytes value;
      if (bring == Bring::all || (bring == Bring::short_values && bytes <= shortest)) {
        PACKTRAIN_ASSIGN(got, at(at_value, bytes));
        value = got;
      }
      add({at_value, static_cast<uint32_t>(bytes), true}, value);
      at_value += bytes;
    }
    return page_end;
  }

  static Status cut_short() { return Status(Code::corrupt, "a page ends within its values"); }

  void add(ParquetValues::Value value, Bytes bytes) {
    out.rows.push_back(value);
    if (bring == Bring::nothing) return;
    out.starts.push_back(out.brought.size());
    out.brought.append(as_text(bytes));
  }

  // Moves `from` behind the levels, and tells which values there are.
  Status levels(const ParquetPage& page, uint64_t& from, uint64_t end) {
    present.clear();
    uint64_t bytes = page.definition_bytes;
    if (page.kind == ParquetPageKind::data_v2) {
      if (page.repetition_bytes > end - from) return cut_short();
      from += page.repetition_bytes;
    } else if (leaf.definition > 0) {
      if (page.level_encoding != kParquetRle) return unsupported("holds levels in an encoding of old");
      if (end - from < sizeof(uint32_t)) return cut_short();
      PACKTRAIN_ASSIGN(length, at(from, sizeof(uint32_t)));
      bytes = load_le<uint32_t>(length.data());
      from += sizeof(uint32_t);
    }
    if (bytes > end - from) return cut_short();
    if (leaf.definition > 0) {
      PACKTRAIN_ASSIGN(encoded, at(from, bytes));
      PACKTRAIN_TRY(parse_parquet_levels(encoded, leaf.definition, page.values, present));
    }
    from += bytes;
    return {};
  }
};

Status ParquetPages::read(const ParquetLeaf& leaf, const ParquetChunk& chunk, uint64_t rows, Bring bring,
                          uint64_t shortest, ParquetValues& out) {
  out = {};
  if (chunk.encrypted)
    return Status(Code::unsupported, "is encrypted; read it with its key and write it again");
  if (chunk.elsewhere)
    return Status(Code::unsupported, "keeps columns in other files; read it with pyarrow and write it again");
  if (chunk.codec != kParquetUncompressed)
    return unsupported("is compressed by " + std::string(parquet_codec_name(chunk.codec)));
  if (chunk.dictionary_page > 0) return unsupported("holds a column with a dictionary");
  Status damaged(Code::corrupt, "a column lies outside of the file, or is not what the schema says");
  if (chunk.type != static_cast<int64_t>(leaf.type) || chunk.values < 0 ||
      static_cast<uint64_t>(chunk.values) != rows || chunk.data_page < 0 || chunk.bytes < 0)
    return damaged;
  const auto start = static_cast<uint64_t>(chunk.data_page), bytes = static_cast<uint64_t>(chunk.bytes);
  if (start > end_ || bytes > end_ - start) return damaged;
  const uint64_t end = start + bytes;
  out.rows.reserve(static_cast<size_t>(rows));
  Walk walk{Window(storage_, file_), leaf, rows, bring, shortest, out, {}, 0, {}};

  std::vector<ParquetPagePlace> places;
  if (chunk.offset_index > 0 && chunk.offset_index_bytes > 0) {
    const auto at = static_cast<uint64_t>(chunk.offset_index),
               length = static_cast<uint64_t>(chunk.offset_index_bytes);
    if (at > end_ || length > end_ - at) return damaged;
    std::vector<std::byte> index(static_cast<size_t>(length));
    PACKTRAIN_TRY(storage_.read(file_, at, index));
    PACKTRAIN_ASSIGN(parsed, parse_parquet_offset_index(index));
    places = std::move(parsed);
  }
  if (places.size() < 2) {
    for (uint64_t at = start; out.rows.size() < rows;) {
      if (at == end) return Status(Code::corrupt, "a column has fewer values than its row group has rows");
      PACKTRAIN_ASSIGN(next, walk.page(at, end));
      at = next;
    }
    return {};
  }
  // The places of the pages are known: their heads come many at a time.
  std::vector<Stretch> stretches;
  std::vector<std::byte> heads(std::min(places.size(), kPagesAtOnce) * kHeadGuess);
  uint64_t expected = start;
  for (size_t first = 0; first < places.size(); first += kPagesAtOnce) {
    const size_t count = std::min(kPagesAtOnce, places.size() - first);
    stretches.clear();
    for (size_t i = first; i < first + count; ++i) {
      if (places[i].offset != expected || places[i].bytes > end - expected || places[i].bytes == 0)
        return damaged;
      expected += places[i].bytes;
      stretches.push_back({places[i].offset, std::min(kHeadGuess, end - places[i].offset)});
    }
    PACKTRAIN_TRY(read_merged(storage_, file_, stretches, [&](size_t position, Bytes got) {
      std::copy(got.begin(), got.end(), heads.begin() + static_cast<ptrdiff_t>(position * kHeadGuess));
      return Status();
    }));
    for (size_t i = 0; i < count; ++i) {
      const ParquetPagePlace& place = places[first + i];
      if (place.first_row != out.rows.size()) return damaged;
      walk.held = Bytes(heads).subspan(i * kHeadGuess, static_cast<size_t>(stretches[i].bytes));
      walk.held_at = place.offset;
      PACKTRAIN_ASSIGN(next, walk.page(place.offset, place.offset + place.bytes));
      (void)next;
    }
  }
  if (out.rows.size() != rows)
    return Status(Code::corrupt, "a column has fewer values than its row group has rows");
  return {};
}

}  // namespace packtrain
