#include "format/parquet_pages.h"

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "base/little_endian.h"
#include "format/merged_reads.h"
#include "format/parquet_page_codec.h"
#include "format/window.h"

namespace packtrain {
namespace {

constexpr uint64_t kHeadGuess = 128;                  // of a page without statistics; with a first length
constexpr uint64_t kLongestHead = uint64_t{1} << 20;  // statistics hold whole values
constexpr size_t kPagesAtOnce = 16384;

Status unsupported(std::string what) { return Status(Code::unsupported, std::move(what)); }
Status cut_short() { return Status(Code::corrupt, "a page ends within its values"); }
Status page_differs() { return Status(Code::corrupt, "a page does not match its CRC-32"); }
Status chunk_outside() {
  return Status(Code::corrupt, "a column lies outside of the file, or is not what the schema says");
}

bool has_dictionary(const ParquetChunk& chunk) {
  return chunk.dictionary_page > 0 && chunk.dictionary_page < chunk.data_page;
}

// The head of the page at `offset`, which ends before `end`. `bytes_at` gives bytes of the file.
template <class BytesAt>
Result<ParquetPage> page_head(uint64_t offset, uint64_t end, BytesAt bytes_at) {
  for (uint64_t guess = kHeadGuess;; guess *= 16) {
    const uint64_t bytes = std::min(guess, end - offset);
    PACKTRAIN_ASSIGN(some, bytes_at(offset, bytes));
    auto page = parse_parquet_page(some);
    if (page.ok() && page->bytes > end - offset - page->head_bytes)
      return Status(Code::corrupt, "a page is longer than its column");
    if (page.ok() || bytes == end - offset || guess > kLongestHead) return page;
  }
}

}  // namespace

// One chunk on its way.
struct ParquetPages::Walk {
  Storage& storage;
  const File& file;
  Window window;
  const ParquetLeaf& leaf;
  const int64_t codec;
  const uint64_t rows;
  const Bring bring;
  const uint64_t shortest;
  ParquetValues& out;
  // Bytes at hand, from `held_at` on; what lies elsewhere is read through the window.
  Bytes held = {};
  uint64_t held_at = 0;
  std::vector<bool> present = {};
  // The page that is being taken, where it had to be decoded.
  std::vector<std::byte> stored = {}, decoded = {};
  bool compares = false;  // its CRC-32
  // The dictionary: where its values are, and their bytes.
  std::vector<ParquetValues::Value> dictionary = {};
  std::vector<std::byte> dictionary_bytes = {};
  uint64_t dictionary_at = 0;  // what the values' offsets count from
  std::vector<uint32_t> numbers = {};

  Result<Bytes> at(uint64_t offset, uint64_t bytes) {
    if (offset >= held_at && offset - held_at <= held.size() && bytes <= held.size() - (offset - held_at))
      return held.subspan(static_cast<size_t>(offset - held_at), static_cast<size_t>(bytes));
    return window.at(offset, static_cast<size_t>(bytes));
  }

  // Takes the page at `offset`; returns where the next one begins.
  Result<uint64_t> page(uint64_t offset, uint64_t end) {
    PACKTRAIN_ASSIGN(
        page, page_head(offset, end, [this](uint64_t from, uint64_t bytes) { return at(from, bytes); }));
    const uint64_t body = offset + page.head_bytes;
    PACKTRAIN_TRY(take(page, body));
    return body + page.bytes;
  }

  // Takes the page at `place`, of which `known` was found, if there is one.
  Status page(const ParquetPagePlace& place, const std::optional<ParquetPage>& known) {
    const bool fits =
        known && known->head_bytes <= place.bytes && known->bytes <= place.bytes - known->head_bytes;
    if (fits) return take(*known, place.offset + known->head_bytes);
    return page(place.offset, place.offset + place.bytes).status();
  }

  Status take(const ParquetPage& page, uint64_t body) {
    if (page.kind == ParquetPageKind::index) return {};
    if (page.kind == ParquetPageKind::dictionary) return take_dictionary(page, body);
    const bool numbered = page.encoding == kParquetDictionary || page.encoding == kParquetOldDictionary;
    if (!numbered && page.encoding != kParquetPlain)
      return unsupported("holds a column in " + std::string(parquet_encoding_name(page.encoding)) +
                         " encoding");
    if (page.values > rows - out.rows.size())
      return Status(Code::corrupt, "a column has more values than its row group has rows");
    PACKTRAIN_ASSIGN(values, open(page, body, numbered));
    if (numbered) return take_numbers(page, values);
    return take_plain(page, values);
  }

  // Where the values of a page begin and end: in the file, or in what was decoded of it.
  struct Values {
    bool in_file = true;
    uint64_t at = 0, end = 0;
    uint32_t block = ParquetValues::kPlain;
  };

  // Decodes the page if it is compressed, and takes its levels. `read_once`: nobody comes back to it.
  Result<Values> open(const ParquetPage& page, uint64_t body, bool read_once) {
    Values values{.at = body, .end = body + page.bytes};
    present.clear();
    compares = page.crc && (read_once || bring != Bring::nothing);
    const bool v2 = page.kind == ParquetPageKind::data_v2;
    if (compares && (codec == kParquetUncompressed || (v2 && !page.compressed))) {
      stored.resize(static_cast<size_t>(page.bytes));
      PACKTRAIN_TRY(storage.read(file, body, stored));
      if (crc32(stored) != *page.crc) return page_differs();
    }
    if (v2) {
      if (page.repetition_bytes > page.bytes || page.definition_bytes > page.bytes - page.repetition_bytes)
        return cut_short();
      values.at += page.repetition_bytes;
      PACKTRAIN_TRY(take_levels(values, page.definition_bytes, page));
      if (codec == kParquetUncompressed || !page.compressed) return values;
      const uint64_t levels = page.repetition_bytes + page.definition_bytes;
      PACKTRAIN_TRY(decode_part(values, page.raw - std::min(page.raw, levels), page, body));
      return values;
    }
    if (codec != kParquetUncompressed) PACKTRAIN_TRY(decode_part(values, page.raw, page, body));
    if (leaf.definition == 0 || page.kind != ParquetPageKind::data) return values;
    if (page.level_encoding != kParquetRle) return unsupported("holds levels in an encoding of old");
    PACKTRAIN_ASSIGN(length, bytes_at(values, sizeof(uint32_t)));
    const uint64_t bytes = load_le<uint32_t>(length.data());
    values.at += sizeof(uint32_t);
    PACKTRAIN_TRY(take_levels(values, bytes, page));
    return values;
  }

  // Decodes the rest of the page, whose body begins at `body`.
  Status decode_part(Values& values, uint64_t raw, const ParquetPage& page, uint64_t body) {
    stored.resize(static_cast<size_t>(values.end - values.at));
    PACKTRAIN_TRY(storage.read(file, values.at, stored));
    PACKTRAIN_ASSIGN(coded, parquet_coded(codec, stored, raw));
    ParquetBlock block{.pipeline = std::move(coded.pipeline),
                       .offset = values.at + coded.front,
                       .stored = stored.size() - coded.front,
                       .raw = raw};
    if (page.crc) {
      // The page's check is of all of it. What it leaves when the check of the part in front is taken away is
      // that of the block.
      uint32_t front = 0;
      if (values.at > body) {
        PACKTRAIN_ASSIGN(levels, at(body, values.at - body));
        front = crc32(levels);
      }
      front = crc32(Bytes(stored).first(coded.front), front);
      block.crc = *page.crc ^ crc32_join(front, 0, block.stored);
      block.pipeline.push_back({std::string(kStoredCheck)});
      if (compares && crc32(Bytes(stored).subspan(coded.front)) != *block.crc) return page_differs();
    }
    decoded.resize(static_cast<size_t>(raw));
    if (raw > 0) {
      PACKTRAIN_TRY(decode(block.pipeline,
                           Bytes(stored).subspan(coded.front, static_cast<size_t>(block.stored)), decoded));
    }
    values = {.in_file = false, .at = 0, .end = raw, .block = static_cast<uint32_t>(out.blocks.size())};
    out.blocks.push_back(std::move(block));
    return {};
  }

  // The next bytes of the values; they stay where they are.
  Result<Bytes> bytes_at(const Values& values, uint64_t bytes) {
    if (bytes > values.end - values.at) return cut_short();
    if (!values.in_file)
      return Bytes(decoded).subspan(static_cast<size_t>(values.at), static_cast<size_t>(bytes));
    return at(values.at, bytes);
  }

  // Tells which values there are.
  Status take_levels(Values& values, uint64_t bytes, const ParquetPage& page) {
    if (leaf.definition > 0) {
      PACKTRAIN_ASSIGN(encoded, bytes_at(values, bytes));
      PACKTRAIN_TRY(parse_parquet_levels(encoded, leaf.definition, page.values, present));
    } else if (bytes > values.end - values.at) {
      return cut_short();
    }
    values.at += bytes;
    return {};
  }

  // The next plain value, of which `values.at` becomes the end.
  Result<ParquetValues::Value> next(Values& values) {
    uint64_t bytes = leaf.width;
    if (leaf.type == ParquetType::byte_array) {
      PACKTRAIN_ASSIGN(length, bytes_at(values, sizeof(uint32_t)));
      bytes = load_le<uint32_t>(length.data());
      values.at += sizeof(uint32_t);
    }
    if (bytes > values.end - values.at) return cut_short();
    ParquetValues::Value value{
        .offset = values.at, .bytes = static_cast<uint32_t>(bytes), .block = values.block, .present = true};
    values.at += bytes;
    return value;
  }

  bool is_brought(uint64_t bytes) const {
    return bring == Bring::all || (bring == Bring::short_values && bytes <= shortest);
  }

  Status take_plain(const ParquetPage& page, Values values) {
    for (uint64_t i = 0; i < page.values; ++i) {
      if (!present.empty() && !present[i]) {
        add({}, {});
        continue;
      }
      PACKTRAIN_ASSIGN(value, next(values));
      Bytes bytes;
      if (is_brought(value.bytes)) {
        PACKTRAIN_ASSIGN(got,
                         bytes_at({values.in_file, value.offset, values.end, values.block}, value.bytes));
        bytes = got;
      }
      add(value, bytes);
    }
    return {};
  }

  Status take_dictionary(const ParquetPage& page, uint64_t body) {
    if (!dictionary.empty()) return Status(Code::corrupt, "a column has two dictionaries");
    if (page.encoding != kParquetPlain && page.encoding != kParquetOldDictionary)
      return unsupported("holds a dictionary in " + std::string(parquet_encoding_name(page.encoding)) +
                         " encoding");
    // Every value takes a byte at least, but for empty ones, of which a dictionary has one.
    if (page.values > page.raw + 1) return Status(Code::corrupt, "a dictionary claims too many values");
    PACKTRAIN_ASSIGN(values, open(page, body, /*read_once=*/false));
    dictionary_at = values.in_file ? values.at : 0;
    if (values.in_file && bring != Bring::nothing) {
      dictionary_bytes.resize(static_cast<size_t>(values.end - values.at));
      PACKTRAIN_TRY(storage.read(file, values.at, dictionary_bytes));
    }
    for (uint64_t i = 0; i < page.values; ++i) {
      PACKTRAIN_ASSIGN(value, next(values));
      dictionary.push_back(value);
    }
    if (!values.in_file) dictionary_bytes = std::move(decoded);
    return {};
  }

  Status take_numbers(const ParquetPage& page, Values values) {
    uint64_t there = page.values;
    if (!present.empty()) there = static_cast<uint64_t>(std::count(present.begin(), present.end(), true));
    numbers.clear();
    if (there > 0) {
      PACKTRAIN_ASSIGN(bits, bytes_at(values, 1));
      const auto width = std::to_integer<uint32_t>(bits[0]);
      ++values.at;
      PACKTRAIN_ASSIGN(runs, bytes_at(values, values.end - values.at));
      PACKTRAIN_TRY(parse_parquet_runs(runs, width, there, numbers));
    }
    // What was decoded of this page holds no values.
    if (!values.in_file) out.blocks.pop_back();
    size_t next_number = 0;
    for (uint64_t i = 0; i < page.values; ++i) {
      if (!present.empty() && !present[i]) {
        add({}, {});
        continue;
      }
      const uint32_t number = numbers[next_number++];
      if (number >= dictionary.size())
        return Status(Code::corrupt, "a page names a value that its dictionary does not have");
      const ParquetValues::Value& value = dictionary[number];
      const bool brought = is_brought(value.bytes);
      add(value, brought ? Bytes(dictionary_bytes)
                               .subspan(static_cast<size_t>(value.offset - dictionary_at), value.bytes)
                         : Bytes());
    }
    return {};
  }

  void add(ParquetValues::Value value, Bytes bytes) {
    out.rows.push_back(value);
    if (bring == Bring::nothing) return;
    out.starts.push_back(out.brought.size());
    out.brought.append(as_text(bytes));
  }
};

Result<std::pair<uint64_t, uint64_t>> ParquetPages::place(const ParquetChunk& chunk) const {
  if (chunk.data_page < 0 || chunk.bytes < 0) return chunk_outside();
  const auto start = static_cast<uint64_t>(has_dictionary(chunk) ? chunk.dictionary_page : chunk.data_page),
             bytes = static_cast<uint64_t>(chunk.bytes);
  if (start > end_ || bytes > end_ - start) return chunk_outside();
  return std::pair(start, start + bytes);
}

Status ParquetPages::own_checks(const ParquetChunk& chunk, std::string_view column,
                                std::vector<CheckedStretch>& out) {
  if (chunk.encrypted || chunk.elsewhere) return {};
  PACKTRAIN_ASSIGN(where, place(chunk));
  const uint64_t end = where.second;
  Window window(storage_, file_);
  for (uint64_t at = where.first; at < end;) {
    PACKTRAIN_ASSIGN(page, page_head(at, end, [&](uint64_t from, uint64_t bytes) {
                       return window.at(from, static_cast<size_t>(bytes));
                     }));
    if (!page.crc) return {};
    out.push_back({.offset = at + page.head_bytes,
                   .bytes = page.bytes,
                   .kind = CheckKind::crc32,
                   .check = *page.crc,
                   .name = "a page of column " + std::string(column)});
    at += page.head_bytes + page.bytes;
  }
  return {};
}

Status ParquetPages::read(const ParquetLeaf& leaf, const ParquetChunk& chunk, uint64_t rows, Bring bring,
                          uint64_t shortest, ParquetValues& out) {
  out = {};
  if (chunk.encrypted) return unsupported("is encrypted");
  if (chunk.elsewhere) return unsupported("keeps columns in other files");
  Status damaged = chunk_outside();
  if (chunk.type != static_cast<int64_t>(leaf.type) || chunk.values < 0 ||
      static_cast<uint64_t>(chunk.values) != rows)
    return damaged;
  PACKTRAIN_ASSIGN(where, place(chunk));
  const auto [start, end] = where;
  out.rows.reserve(static_cast<size_t>(rows));
  Walk walk{storage_, file_, Window(storage_, file_), leaf, chunk.codec, rows, bring, shortest, out};

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
  if (places.size() < 2 || chunk.codec != kParquetUncompressed) {
    for (uint64_t at = start; out.rows.size() < rows;) {
      if (at == end) return Status(Code::corrupt, "a column has fewer values than its row group has rows");
      PACKTRAIN_ASSIGN(next, walk.page(at, end));
      at = next;
    }
    return {};
  }
  // The places of the pages are known: their heads come many at a time. A dictionary is not among them.
  uint64_t expected = start;
  if (has_dictionary(chunk)) {
    PACKTRAIN_ASSIGN(next, walk.page(start, end));
    expected = next;
  }
  std::vector<Stretch> stretches;
  std::vector<std::byte> heads(std::min(places.size(), kPagesAtOnce) * kHeadGuess);
  std::vector<std::optional<ParquetPage>> known(std::min(places.size(), kPagesAtOnce));
  for (size_t first = 0; first < places.size(); first += kPagesAtOnce) {
    const size_t count = std::min(kPagesAtOnce, places.size() - first);
    stretches.clear();
    for (size_t i = first; i < first + count; ++i) {
      if (places[i].offset != expected || places[i].bytes > end - expected || places[i].bytes == 0)
        return damaged;
      expected += places[i].bytes;
      stretches.push_back({places[i].offset, std::min(kHeadGuess, end - places[i].offset)});
    }
    const auto take_head = [&](size_t position, Bytes got) {
      std::copy(got.begin(), got.end(), heads.begin() + static_cast<ptrdiff_t>(position * kHeadGuess));
      auto page = parse_parquet_page(got);
      // Whatever is wrong with a head is told where it is taken.
      known[position] = page.ok() ? std::optional(*page) : std::nullopt;
      return Status();
    };
    PACKTRAIN_TRY(read_merged(storage_, file_, stretches, take_head, EachCall::side_by_side));
    for (size_t i = 0; i < count; ++i) {
      const ParquetPagePlace& place = places[first + i];
      if (place.first_row != out.rows.size()) return damaged;
      walk.held = Bytes(heads).subspan(i * kHeadGuess, static_cast<size_t>(stretches[i].bytes));
      walk.held_at = place.offset;
      PACKTRAIN_TRY(walk.page(place, known[i]));
    }
  }
  if (out.rows.size() != rows)
    return Status(Code::corrupt, "a column has fewer values than its row group has rows");
  return {};
}

}  // namespace packtrain
