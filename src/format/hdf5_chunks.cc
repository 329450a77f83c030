#include "format/hdf5_chunks.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/hdf5_tree2.h"

namespace packtrain {
namespace {

constexpr uint8_t kDeepestTree = 32;
constexpr uint64_t kAddressBytes = 8, kChecksumBytes = 4;
constexpr uint64_t kHighestRatio = 32768;                     // of any codec here
constexpr uint64_t kElementsForNothing = uint64_t{64} << 20;  // bytes that may be claimed and not stored
constexpr uint64_t kChunksForNothing = 1 << 20;
constexpr uint64_t kLargestCodedChunk = uint64_t{1} << 31;

Status corrupt(std::string what) { return Status(Code::corrupt, std::move(what)); }

// Fills the list of a dataset's chunks from its index. One thread at a time.
class ChunkLister {
 public:
  ChunkLister(Hdf5File& file, const Hdf5Object& dataset, Hdf5Chunks& out)
      : file_(file), dataset_(dataset), out_(out), whole_(out.rows * out.row_bytes) {}

  Status run() {
    const Hdf5Layout& layout = dataset_.layout;
    if (layout.chunk_index == Hdf5Layout::ChunkIndex::other) {
      return Status(Code::unsupported,
                    "has an index of its chunks that packtrain does not read; `h5repack OLD NEW` writes "
                    "the old one");
    }
    if (layout.address == kHdf5Nowhere) return {};  // nothing was ever written
    switch (layout.chunk_index) {
      case Hdf5Layout::ChunkIndex::tree:
        return walk_tree();
      case Hdf5Layout::ChunkIndex::single:
        if (out_.chunks.size() != 1) return corrupt("a single chunk does not hold all rows");
        return set(0, layout.address, layout.single_stored == 0 ? whole_ : layout.single_stored,
                   layout.single_mask);
      case Hdf5Layout::ChunkIndex::implicit:
        for (size_t i = 0; i < out_.chunks.size(); ++i) {
          PACKTRAIN_TRY(set(i, layout.address + i * whole_, whole_, 0));
        }
        return {};
      case Hdf5Layout::ChunkIndex::fixed_array:
        return walk_fixed_array();
      case Hdf5Layout::ChunkIndex::extensible_array:
        return walk_extensible_array();
      case Hdf5Layout::ChunkIndex::tree2:
        return walk_tree2();
      case Hdf5Layout::ChunkIndex::other:
        break;
    }
    return {};
  }

 private:
  Status set(uint64_t number, uint64_t address, uint64_t stored, uint32_t mask) {
    if (number >= out_.chunks.size() || address == kHdf5Nowhere) return {};
    if (!file_.holds(address, stored)) return corrupt("a chunk lies outside of the file");
    const bool edge = number + 1 == out_.chunks.size() && hdf5_rows(dataset_) % out_.rows != 0;
    if (edge && dataset_.layout.plain_edges) mask = UINT32_MAX;
    const uint64_t all =
        dataset_.filters.size() < 32 ? (uint64_t{1} << dataset_.filters.size()) - 1 : UINT32_MAX;
    const bool plain = (mask & all) == all;
    if (plain && stored != whole_) return corrupt("a chunk has a wrong size");
    if (!plain && whole_ / kHighestRatio > stored) return corrupt("a chunk claims to hold too much");
    if (out_.chunks[number].address != kHdf5Nowhere) return corrupt("two chunks hold the same rows");
    out_.chunks[number] = {address, stored, mask};
    return {};
  }

  Status walk_tree() {
    const size_t dimensions = dataset_.layout.chunk.size();
    const uint64_t key_bytes = 8 + 8 * dimensions, entry_bytes = key_bytes + kAddressBytes;
    std::vector<std::pair<uint64_t, uint8_t>> nodes = {{dataset_.layout.address, kDeepestTree}};
    for (size_t n = 0; n < nodes.size(); ++n) {
      auto [address, below] = nodes[n];
      PACKTRAIN_ASSIGN(head, file_.read(address, 24));
      Hdf5Cursor node(head);
      if (!node.starts_with("TREE") || node.u8() != 1) return corrupt("no node of chunks");
      uint8_t level = node.u8();
      uint16_t children = node.u16();
      if (level >= below) return corrupt("a tree of chunks has no order");
      PACKTRAIN_ASSIGN(entries, file_.read(address + 24, entry_bytes * children));
      Hdf5Cursor entry(entries);
      for (size_t i = 0; i < children; ++i) {
        uint32_t stored = entry.u32(), mask = entry.u32();
        uint64_t row = entry.u64();
        entry.skip(8 * (dimensions - 1));
        uint64_t child = entry.u64();
        if (level > 0) {
          // A sound tree has fewer nodes than chunks.
          if (nodes.size() > out_.chunks.size() + kDeepestTree)
            return corrupt("a tree of chunks is too large");
          nodes.emplace_back(child, level);
        } else if (row % out_.rows != 0) {
          return corrupt("a chunk begins between chunks");
        } else {
          PACKTRAIN_TRY(set(row / out_.rows, child, stored, mask));
        }
      }
    }
    return {};
  }

  Status walk_tree2() {
    const bool filtered = !dataset_.filters.empty();
    const size_t dimensions = dataset_.shape.size();
    const uint64_t plain_bytes = kAddressBytes + 8 * dimensions;
    return walk_hdf5_tree2(
        file_, dataset_.layout.address, filtered ? kHdf5TreeOfFilteredChunks : kHdf5TreeOfChunks,
        file_.bytes() / plain_bytes, [&](Bytes record) -> Status {
          // Filtered ones have a size of up to eight bytes, and which filters were left out.
          const uint64_t more = record.size() - std::min<uint64_t>(record.size(), plain_bytes);
          if (record.size() < plain_bytes || (filtered ? more < 5 || more > 12 : more != 0))
            return corrupt("a tree of chunks has records of a wrong size");
          Hdf5Cursor at(record);
          const uint64_t address = at.u64(), stored = filtered ? at.number(more - 4) : whole_;
          const uint32_t mask = filtered ? at.u32() : 0;
          const uint64_t number = at.u64();
          // A chunk beyond the other dimensions would hold nothing of the dataset.
          for (size_t i = 1; i < dimensions; ++i) {
            if (at.u64() != 0) return Status();
          }
          return set(number, address, stored, mask);
        });
  }

  // `count` chunks from `number` on, as the arrays record them.
  Status take_elements(Bytes elements, uint64_t number, uint64_t count, uint8_t element_bytes) {
    Hdf5Cursor at(elements);
    for (uint64_t i = 0; i < count && number + i < out_.chunks.size(); ++i) {
      uint64_t address = at.u64(), stored = whole_;
      uint32_t mask = 0;
      if (element_bytes > kAddressBytes) {
        stored = at.number(element_bytes - kAddressBytes - 4);
        mask = at.u32();
      }
      if (at.failed()) return corrupt("an array of chunks is cut short");
      PACKTRAIN_TRY(set(number + i, address, stored, mask));
    }
    return {};
  }

  Status check_element_bytes(uint8_t element_bytes) const {
    bool filtered = !dataset_.filters.empty();
    bool fits = filtered ? element_bytes > kAddressBytes + 4 && element_bytes <= kAddressBytes + 4 + 8
                         : element_bytes == kAddressBytes;
    return fits ? Status() : corrupt("an array of chunks has elements of a wrong size");
  }

  // `elements` chunks from `number` on, in pages that have a checksum each.
  Status take_pages(uint64_t address, uint64_t number, uint64_t elements, uint64_t page,
                    uint8_t element_bytes, Bytes written) {
    for (uint64_t first = 0; first < elements; first += page) {
      uint64_t count = std::min(page, elements - first);
      if (number + first >= out_.chunks.size()) return {};
      uint64_t p = first / page;
      bool there = (std::to_integer<uint8_t>(written[p / 8]) & (0x80 >> p % 8)) != 0;
      if (there) {
        PACKTRAIN_ASSIGN(data, file_.read(address, count * element_bytes));
        PACKTRAIN_TRY(take_elements(data, number + first, count, element_bytes));
      }
      address += count * element_bytes + kChecksumBytes;
    }
    return {};
  }

  Status walk_fixed_array() {
    PACKTRAIN_ASSIGN(head, file_.read(dataset_.layout.address, 28));
    Hdf5Cursor at(head);
    if (!at.starts_with("FAHD")) return corrupt("no array of chunks");
    at.skip(2);
    uint8_t element_bytes = at.u8(), page_bits = at.u8();
    uint64_t elements = at.u64(), block = at.u64();
    PACKTRAIN_TRY(check_element_bytes(element_bytes));
    if (block == kHdf5Nowhere) return {};
    if (elements > file_.bytes() / element_bytes || page_bits >= 48) {
      return corrupt("an array of chunks does not fit into the file");
    }
    const uint64_t page = uint64_t{1} << page_bits, pages = (elements + page - 1) / page;
    const bool paged = elements > page;
    const uint64_t bitmap = paged ? (pages + 7) / 8 : 0;
    constexpr uint64_t kHead = 4 + 1 + 1 + 8;
    PACKTRAIN_ASSIGN(front, file_.read(block, kHead + bitmap));
    Hdf5Cursor inner(front);
    if (!inner.starts_with("FADB")) return corrupt("no block of chunks");
    inner.skip(kHead - 4);
    if (paged) {
      return take_pages(block + kHead + bitmap + kChecksumBytes, 0, elements, page, element_bytes,
                        inner.take(bitmap));
    }
    PACKTRAIN_ASSIGN(data, file_.read(block + kHead, elements * element_bytes));
    return take_elements(data, 0, elements, element_bytes);
  }

  // What the head of an extensible array says. Elements lie in the index block first, then in data blocks of
  // growing size; the later ones are listed in super blocks.
  struct Extensible {
    uint8_t element_bytes = 0, most_bits = 0, index_elements = 0, block_elements = 0, pointers = 0,
            page_bits = 0;
    uint64_t offset_bytes() const { return (most_bits + 7u) / 8; }
    // Of the super block with this number: how many data blocks it has, and elements each.
    uint64_t blocks(size_t super) const { return uint64_t{1} << (super / 2); }
    uint64_t elements(size_t super) const { return uint64_t{block_elements} << ((super + 1) / 2); }
  };

  Status walk_extensible_array() {
    PACKTRAIN_ASSIGN(head, file_.read(dataset_.layout.address, 12 + 6 * 8 + 8));
    Hdf5Cursor at(head);
    if (!at.starts_with("EAHD")) return corrupt("no array of chunks");
    at.skip(2);
    Extensible array;
    array.element_bytes = at.u8();
    array.most_bits = at.u8();
    array.index_elements = at.u8();
    array.block_elements = at.u8();
    array.pointers = at.u8();
    array.page_bits = at.u8();
    at.skip(6 * 8);  // counts
    uint64_t index = at.u64();
    PACKTRAIN_TRY(check_element_bytes(array.element_bytes));
    const bool sound = array.most_bits <= 48 && array.page_bits <= 48 &&
                       std::has_single_bit(array.block_elements) && std::has_single_bit(array.pointers) &&
                       array.pointers > 1;
    if (!sound) return corrupt("an array of chunks has impossible sizes");
    if (index == kHdf5Nowhere) return {};
    const auto block_bits = static_cast<size_t>(std::countr_zero(array.block_elements));
    if (block_bits > array.most_bits) return corrupt("an array of chunks has impossible sizes");
    const size_t supers = 1 + array.most_bits - block_bits;
    const size_t direct =
        2 * static_cast<size_t>(std::countr_zero(array.pointers));  // super blocks not stored
    const uint64_t data_pointers = 2 * (uint64_t{array.pointers} - 1);
    const uint64_t super_pointers = supers > direct ? supers - direct : 0;
    constexpr uint64_t kHead = 4 + 1 + 1 + 8;
    PACKTRAIN_ASSIGN(bytes, file_.read(index, kHead + uint64_t{array.index_elements} * array.element_bytes +
                                                  kAddressBytes * (data_pointers + super_pointers)));
    Hdf5Cursor inner(bytes);
    if (!inner.starts_with("EAIB")) return corrupt("no index of chunks");
    inner.skip(kHead - 4);
    PACKTRAIN_TRY(take_elements(inner.take(uint64_t{array.index_elements} * array.element_bytes), 0,
                                array.index_elements, array.element_bytes));
    uint64_t number = array.index_elements;
    for (size_t super = 0; super < supers && number < out_.chunks.size(); ++super) {
      if (super < direct) {
        for (uint64_t b = 0; b < array.blocks(super); ++b, number += array.elements(super)) {
          uint64_t address = inner.u64();
          if (inner.failed()) return corrupt("an index of chunks is cut short");
          if (address == kHdf5Nowhere) continue;
          PACKTRAIN_TRY(take_data_block(array, super, address, number, {}));
        }
      } else {
        uint64_t address = inner.u64();
        if (inner.failed()) return corrupt("an index of chunks is cut short");
        if (address != kHdf5Nowhere) PACKTRAIN_TRY(take_super_block(array, super, address, number));
        number += array.blocks(super) * array.elements(super);
      }
    }
    return {};
  }

  Status take_super_block(const Extensible& array, size_t super, uint64_t address, uint64_t number) {
    const uint64_t head = 4 + 1 + 1 + 8 + array.offset_bytes();
    const uint64_t pages = array.elements(super) >> array.page_bits;
    const uint64_t bitmap = pages > 1 ? (pages + 7) / 8 : 0;
    const uint64_t blocks = array.blocks(super);
    if (bitmap > file_.bytes() / blocks) return corrupt("a block of chunks does not fit into the file");
    PACKTRAIN_ASSIGN(bytes, file_.read(address, head + blocks * bitmap + blocks * kAddressBytes));
    Hdf5Cursor at(bytes);
    if (!at.starts_with("EASB")) return corrupt("no block of chunks");
    at.skip(head - 4);
    Hdf5Cursor written(at.take(blocks * bitmap));
    for (uint64_t b = 0; b < blocks && number < out_.chunks.size(); ++b, number += array.elements(super)) {
      uint64_t data = at.u64();
      Bytes mine = written.take(bitmap);
      if (data == kHdf5Nowhere) continue;
      PACKTRAIN_TRY(take_data_block(array, super, data, number, mine));
    }
    return {};
  }

  Status take_data_block(const Extensible& array, size_t super, uint64_t address, uint64_t number,
                         Bytes written) {
    const uint64_t head = 4 + 1 + 1 + 8 + array.offset_bytes(), elements = array.elements(super);
    PACKTRAIN_ASSIGN(front, file_.read(address, head));
    if (!Hdf5Cursor(front).starts_with("EADB")) return corrupt("no block of chunks");
    if (elements > file_.bytes() / array.element_bytes) {
      return corrupt("a block of chunks does not fit into the file");
    }
    const uint64_t page = uint64_t{1} << array.page_bits;
    if (elements > page) {
      if (written.empty()) return corrupt("a block of chunks has pages where it cannot");
      return take_pages(address + head + kChecksumBytes, number, elements, page, array.element_bytes,
                        written);
    }
    PACKTRAIN_ASSIGN(data, file_.read(address + head, elements * array.element_bytes));
    return take_elements(data, number, elements, array.element_bytes);
  }

  Hdf5File& file_;
  const Hdf5Object& dataset_;
  Hdf5Chunks& out_;
  const uint64_t whole_;  // bytes of a chunk that is not filtered
};

// Where the elements of a dataset are not, its fill value is.
void fill_elements(const Hdf5Object& dataset, MutableBytes into) {
  // Decoding a fill fails only without a value.
  if (!dataset.fill.empty()) (void)decode(fill_pipeline(as_text(dataset.fill)), {}, into);
}

}  // namespace

Status check_hdf5_fill(const Hdf5Object& dataset) {
  if (dataset.fill.empty() || dataset.fill.size() == dataset.type.size) return {};
  return corrupt("its fill value does not have the size of an element");
}

uint64_t hdf5_rows(const Hdf5Object& dataset) { return dataset.shape.empty() ? 1 : dataset.shape[0]; }

uint64_t hdf5_row_bytes(const Hdf5Object& dataset) {
  uint64_t bytes = dataset.type.size;
  for (size_t i = 1; i < dataset.shape.size(); ++i) {
    if (__builtin_mul_overflow(bytes, dataset.shape[i], &bytes)) return UINT64_MAX;
  }
  return bytes;
}

Result<Hdf5Chunks> list_hdf5_chunks(Hdf5File& file, const Hdf5Object& dataset) {
  const std::vector<uint64_t>& chunk = dataset.layout.chunk;
  if (chunk.size() != dataset.shape.size() + 1 || chunk.back() != dataset.type.size) {
    return corrupt("its chunks do not fit its shape");
  }
  for (size_t i = 0; i < chunk.size(); ++i) {
    if (chunk[i] == 0) return corrupt("its chunks are empty");
    if (i == 0 || i + 1 == chunk.size() || chunk[i] == dataset.shape[i]) continue;
    return Status(Code::unsupported,
                  "has chunks that cut its rows in pieces; `h5repack -l CONTI OLD NEW` lays it out in one");
  }
  Hdf5Chunks out{.rows = chunk[0], .row_bytes = hdf5_row_bytes(dataset), .chunks = {}};
  const uint64_t rows = hdf5_rows(dataset);
  uint64_t whole = 0;
  if (__builtin_mul_overflow(out.rows, out.row_bytes, &whole)) return corrupt("its chunks are too large");
  if (!dataset.filters.empty() && whole > kLargestCodedChunk)
    return Status(Code::unsupported,
                  "has compressed chunks of more than 2 GiB; `h5repack -f NONE OLD NEW` writes it without");
  const uint64_t count = rows / out.rows + (rows % out.rows != 0 ? 1 : 0);
  // Every chunk that was written has its address somewhere in the file, or is there itself.
  if (count > file.bytes() / kAddressBytes + kChunksForNothing) {
    return corrupt("has more chunks than the file could hold");
  }
  out.chunks.resize(static_cast<size_t>(count));
  PACKTRAIN_TRY(ChunkLister(file, dataset, out).run());
  return out;
}

Result<Pipeline> hdf5_pipeline(const Hdf5Object& dataset, uint32_t skipped_filters) {
  Pipeline pipeline;
  for (size_t i = 0; i < dataset.filters.size(); ++i) {
    const Hdf5Filter& filter = dataset.filters[i];
    if (i < 32 && (skipped_filters >> i & 1) != 0) continue;
    switch (filter.id) {
      case kHdf5Deflate:
        pipeline.push_back({"zlib"});
        break;
      case kHdf5Shuffle:
        pipeline.push_back({"shuffle", filter.first_value == 0 ? dataset.type.size : filter.first_value});
        break;
      case kHdf5Fletcher32:
        pipeline.push_back({"fletcher32"});
        break;
      case kHdf5Lzf:
        pipeline.push_back({"lzf"});
        break;
      case kHdf5Blosc:
        pipeline.push_back({"blosc"});
        break;
      case kHdf5Zstd:
        pipeline.push_back({"zstd"});
        break;
      default:
        return Status(Code::unsupported, "is filtered by number " + std::to_string(filter.id) +
                                             "; `h5repack -f NONE OLD NEW` writes it without");
    }
  }
  return pipeline;
}

Status check_hdf5_claim(const Hdf5File& file, uint64_t bytes) {
  if (bytes <= kElementsForNothing || (bytes - kElementsForNothing) / kHighestRatio <= file.bytes())
    return {};
  return corrupt("has more elements than the file could hold");
}

Result<std::vector<std::byte>> read_hdf5_elements(Hdf5File& file, const Hdf5Object& dataset) {
  PACKTRAIN_TRY(dataset.trouble);
  uint64_t bytes = 0, rows = hdf5_rows(dataset);
  if (__builtin_mul_overflow(rows, hdf5_row_bytes(dataset), &bytes)) {
    return corrupt("has more elements than the file could hold");
  }
  PACKTRAIN_TRY(check_hdf5_claim(file, bytes));
  PACKTRAIN_TRY(check_hdf5_fill(dataset));
  if (bytes == 0) return std::vector<std::byte>();
  switch (dataset.layout.kind) {
    case Hdf5Layout::Kind::compact:
      if (dataset.layout.inside.size() != bytes) return corrupt("its elements do not fit its shape");
      return dataset.layout.inside;
    case Hdf5Layout::Kind::contiguous: {
      const bool written = dataset.layout.address != kHdf5Nowhere;
      if (written && (dataset.layout.bytes < bytes || !file.holds(dataset.layout.address, bytes)))
        return corrupt("its elements do not fit its shape, or the file");
      std::vector<std::byte> data(static_cast<size_t>(bytes));
      if (written) {
        PACKTRAIN_TRY(file.read_elements(dataset.layout.address, data));
      } else {
        fill_elements(dataset, data);
      }
      return data;
    }
    case Hdf5Layout::Kind::chunked: {
      PACKTRAIN_ASSIGN(listed, list_hdf5_chunks(file, dataset));
      const uint64_t whole = listed.rows * listed.row_bytes;
      std::vector<std::byte> data(static_cast<size_t>(bytes)), stored, raw;
      for (size_t i = 0; i < listed.chunks.size(); ++i) {
        const Hdf5Chunk& chunk = listed.chunks[i];
        MutableBytes into = MutableBytes(data).subspan(static_cast<size_t>(i * whole));
        into = into.first(static_cast<size_t>(std::min<uint64_t>(into.size(), whole)));
        if (chunk.address == kHdf5Nowhere) {
          fill_elements(dataset, into);
          continue;
        }
        PACKTRAIN_ASSIGN(pipeline, hdf5_pipeline(dataset, chunk.skipped_filters));
        if (pipeline.empty()) {
          PACKTRAIN_TRY(file.read_elements(chunk.address, into));
          continue;
        }
        stored.resize(static_cast<size_t>(chunk.stored));
        PACKTRAIN_TRY(file.read_elements(chunk.address, stored));
        raw.resize(static_cast<size_t>(whole));
        PACKTRAIN_TRY(decode(pipeline, stored, raw));
        std::memcpy(into.data(), raw.data(), into.size());
      }
      return data;
    }
    case Hdf5Layout::Kind::other:
      break;
  }
  return Status(Code::unsupported, "is a virtual dataset; `h5repack OLD NEW` brings its elements in");
}

}  // namespace packtrain
