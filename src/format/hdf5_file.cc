#include "format/hdf5_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/words.h"
#include "format/hdf5_fractal_heap.h"
#include "format/hdf5_tree2.h"

namespace packtrain {
namespace {

constexpr uint64_t kPageBytes = uint64_t{8} << 10, kMostPages = 4096;
constexpr uint64_t kPastPages = uint64_t{64} << 10;  // pieces from this size on are read by themselves
constexpr size_t kMostBlocks = 256;                  // of one object's header
constexpr size_t kMostLinks = 10'000;                // of one group
constexpr size_t kLongestName = 1024;
constexpr uint64_t kLongestUserBlock = uint64_t{1} << 20;  // longer ones are possible, and never seen
constexpr uint8_t kDeepestGroupTree = 32;
constexpr size_t kSymbolBytes = 40, kTreeHeadBytes = 24, kSymbolHeadBytes = 8;

// Types of messages.
enum : uint16_t {
  kSpace = 1,
  kLinkInfo = 2,
  kType = 3,
  kOldFill = 4,
  kFill = 5,
  kLink = 6,
  kExternalFiles = 7,
  kLayout = 8,
  kGroupInfo = 10,
  kFilters = 11,
  kContinuation = 16,
  kSymbolTable = 17,
};
constexpr uint8_t kShared = 2;  // flag of a message that lies elsewhere

Status at_address(const Status& status, uint64_t offset) { return status.at("@ " + std::to_string(offset)); }
Status corrupt_file(std::string what) { return Status(Code::corrupt, std::move(what)); }
Status too_many_links() {
  return Status(Code::unsupported, "has more than " + count_in_words(kMostLinks) +
                                       " links in one group; packtrain takes a dataset for a column, not for "
                                       "a sample: read it by h5py and pack the samples");
}
Status outside(uint64_t address) {
  return corrupt_file("metadata at address " + std::to_string(address) + " lie outside of the file");
}

}  // namespace

Result<std::optional<uint64_t>> find_hdf5_signature(Storage& storage, const File& file) {
  std::byte head[kHdf5Signature.size()];
  const uint64_t end = std::min(file.size(), kLongestUserBlock + sizeof head);
  for (uint64_t base = 0; base <= end && end - base >= sizeof head; base = base == 0 ? 512 : base * 2) {
    PACKTRAIN_TRY(storage.read(file, base, head));
    if (as_text(head) == kHdf5Signature) return std::optional(base);
  }
  return std::optional<uint64_t>();
}

Result<Hdf5File> Hdf5File::open(Storage& storage, const File& file) {
  PACKTRAIN_ASSIGN(base, find_hdf5_signature(storage, file));
  if (!base) return corrupt_file("has no HDF5 signature: it is cut short, or no HDF5 file");
  Hdf5File opened(storage, file, *base);
  PACKTRAIN_ASSIGN(block, opened.read(0, std::min<uint64_t>(kHdf5SuperblockBytes, opened.bytes())));
  auto super = parse_hdf5_superblock(block);
  if (!super.ok()) return at_address(super.status(), *base);
  if (super->end < super->base || super->end - super->base > opened.bytes()) {
    return corrupt_file(
        "has " + std::to_string(file.size()) + " bytes where " + std::to_string(super->end) +
        " are recorded: it is cut short, or its writer did not finish; copy or write it again");
  }
  opened.root_ = super->root;
  return opened;
}

Result<const std::vector<std::byte>*> Hdf5File::page(uint64_t number) {
  if (auto found = pages_.find(number); found != pages_.end()) return &found->second;
  if (pages_.size() >= kMostPages) pages_.clear();
  uint64_t start = number * kPageBytes;
  std::vector<std::byte> bytes(static_cast<size_t>(std::min(kPageBytes, file_->size() - start)));
  PACKTRAIN_TRY(storage_->read(*file_, start, bytes));
  return &pages_.emplace(number, std::move(bytes)).first->second;
}

Status Hdf5File::read(uint64_t address, MutableBytes into) {
  if (!holds(address, into.size())) return outside(address);
  if (into.size() >= kPastPages) return storage_->read(*file_, offset(address), into);
  uint64_t at = offset(address);
  while (!into.empty()) {
    PACKTRAIN_ASSIGN(bytes, page(at / kPageBytes));
    size_t skip = at % kPageBytes, take = std::min(into.size(), bytes->size() - skip);
    std::memcpy(into.data(), bytes->data() + skip, take);
    into = into.subspan(take);
    at += take;
  }
  return {};
}

Result<std::vector<std::byte>> Hdf5File::read(uint64_t address, uint64_t bytes) {
  if (!holds(address, bytes)) return outside(address);
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  PACKTRAIN_TRY(read(address, MutableBytes(data)));
  return data;
}

Status Hdf5File::read_elements(uint64_t address, MutableBytes into) const {
  if (!holds(address, into.size())) return corrupt_file("its elements lie outside of the file");
  return into.empty() ? Status() : storage_->read(*file_, offset(address), into);
}

Result<Hdf5Object> Hdf5File::object(uint64_t address) { return object(address, false); }

Result<Hdf5Object> Hdf5File::object(uint64_t address, bool type_only) {
  Hdf5Object made;
  std::byte head[4] = {};
  Status status = read(address, head);
  if (status.ok()) {
    status = as_text(head) == "OHDR" ? take_new_header(address, type_only, made)
                                     : take_old_header(address, type_only, made);
  }
  if (!status.ok()) return at_address(status, offset(address));
  return made;
}

// Headers that share their blocks could be read without end.
Result<std::vector<std::byte>> Hdf5File::read_header(const Block& block) {
  constexpr uint64_t kAtLeast = uint64_t{1} << 20;
  header_bytes_ += std::min(block.bytes, bytes());
  if (header_bytes_ > 4 * bytes() + kAtLeast) return corrupt_file("objects' headers overlap");
  return read(block.address, block.bytes);
}

Status Hdf5File::take_old_header(uint64_t address, bool type_only, Hdf5Object& out) {
  constexpr size_t kHeaderHeadBytes = 16;
  PACKTRAIN_ASSIGN(head, read(address, kHeaderHeadBytes));
  Hdf5Cursor at(head);
  uint8_t version = at.u8();
  at.skip(1);
  uint16_t messages = at.u16();
  at.skip(4);
  uint32_t bytes = at.u32();
  if (version != 1) return corrupt_file("no object's header");
  std::vector<Block> blocks = {{address + kHeaderHeadBytes, bytes}};
  for (size_t b = 0; b < blocks.size(); ++b) {
    PACKTRAIN_ASSIGN(data, read_header(blocks[b]));
    Hdf5Cursor block(data);
    for (; messages > 0 && block.left() >= 8; --messages) {
      Message message;
      message.type = block.u16();
      uint16_t size = block.u16();
      message.flags = block.u8();
      block.skip(3);
      message.data = block.take(size);
      if (block.failed()) return corrupt_file("a message is cut short");
      PACKTRAIN_TRY(take_message(message, type_only, blocks, out));
    }
  }
  return messages == 0 ? Status() : corrupt_file("an object's header holds too few messages");
}

Status Hdf5File::take_new_header(uint64_t address, bool type_only, Hdf5Object& out) {
  constexpr uint8_t kOrderKept = 4, kPhasesKept = 16, kTimesKept = 32;
  constexpr size_t kLongestHead = 4 + 1 + 1 + 16 + 4 + 8;
  PACKTRAIN_ASSIGN(head, read(address, std::min<uint64_t>(kLongestHead, bytes() - address)));
  Hdf5Cursor at(head);
  at.skip(4);
  uint8_t version = at.u8(), flags = at.u8();
  if (version != 2)
    return corrupt_file("an object's header has the unknown version " + std::to_string(version));
  if ((flags & kTimesKept) != 0) at.skip(16);
  if ((flags & kPhasesKept) != 0) at.skip(4);
  uint64_t inner = at.number(size_t{1} << (flags & 3));
  if (at.failed()) return corrupt_file("an object's header is cut short");
  uint64_t head_bytes = head.size() - at.left();
  if (inner > bytes()) return corrupt_file("an object's header does not fit into the file");
  // The checksum closes every block and covers all of it.
  std::vector<Block> blocks = {{address, head_bytes + inner + 4}};
  for (size_t b = 0; b < blocks.size(); ++b) {
    PACKTRAIN_ASSIGN(data, read_header(blocks[b]));
    size_t skip = b == 0 ? static_cast<size_t>(head_bytes) : 4;
    if (data.size() < skip + 4) return corrupt_file("a block of an object's header is too short");
    if (b > 0 && as_text(Bytes(data).first(4)) != "OCHK")
      return corrupt_file("no block of an object's header");
    Bytes checked = Bytes(data).first(data.size() - 4);
    if (hdf5_checksum(checked) != Hdf5Cursor(Bytes(data).last(4)).u32()) {
      return corrupt_file("an object's header does not match its checksum");
    }
    Hdf5Cursor block(checked.subspan(skip));
    const size_t message_head = (flags & kOrderKept) != 0 ? 6 : 4;
    while (block.left() >= message_head) {
      Message message;
      message.type = block.u8();
      uint16_t size = block.u16();
      message.flags = block.u8();
      if ((flags & kOrderKept) != 0) block.skip(2);
      message.data = block.take(size);
      if (block.failed()) return corrupt_file("a message is cut short");
      PACKTRAIN_TRY(take_message(message, type_only, blocks, out));
    }
  }
  return {};
}

Status Hdf5File::take_message(const Message& message, bool type_only, std::vector<Block>& blocks,
                              Hdf5Object& out) {
  if (message.type == kContinuation) {
    Hdf5Cursor at(message.data);
    Block block{at.u64(), at.u64()};
    if (at.failed()) return corrupt_file("a continuation is cut short");
    // Blocks that lead to each other in a circle would never end.
    if (blocks.size() >= kMostBlocks) return corrupt_file("an object's header has too many blocks");
    blocks.push_back(block);
    return {};
  }
  if (type_only && message.type != kType) return {};
  if (type_only && (message.flags & kShared) != 0) return corrupt_file("a named type is another one's name");
  Status status = take_dataset_message(message, out);
  // A feature that packtrain does not know spoils the dataset that has it, not the file.
  if (status.code() != Code::unsupported) return status;
  if (out.trouble.ok()) out.trouble = status;
  return {};
}

Status Hdf5File::take_dataset_message(const Message& message, Hdf5Object& out) {
  const bool shared = (message.flags & kShared) != 0;
  switch (message.type) {
    case kType: {
      auto type = shared ? shared_type(message.data) : parse_hdf5_type(message.data);
      if (!type.ok()) return type.status();
      out.type = *type;
      return {};
    }
    case kExternalFiles:
      return Status(Code::unsupported, "its elements lie in other files; `h5repack OLD NEW` brings them in");
    case kSpace:
    case kOldFill:
    case kFill:
    case kLayout:
    case kFilters:
    case kLink:
    case kLinkInfo:
    case kSymbolTable:
      if (shared) return Status(Code::unsupported, "shares parts of its description; `h5repack OLD NEW`");
      break;
    default:
      out.is_group = out.is_group || message.type == kGroupInfo;
      return {};
  }
  Hdf5Cursor at(message.data);
  if (message.type == kSpace) {
    PACKTRAIN_ASSIGN(shape, parse_hdf5_space(message.data));
    out.shape = std::move(shape);
  } else if (message.type == kLayout) {
    out.is_dataset = true;
    PACKTRAIN_ASSIGN(layout, parse_hdf5_layout(message.data));
    out.layout = std::move(layout);
  } else if (message.type == kFill) {
    PACKTRAIN_ASSIGN(fill, parse_hdf5_fill(message.data));
    out.fill = std::move(fill);
  } else if (message.type == kOldFill) {
    // Kept for old readers; where both are there they say the same, but for the old one being there at all.
    PACKTRAIN_ASSIGN(fill, parse_old_hdf5_fill(message.data));
    if (out.fill.empty()) out.fill = std::move(fill);
  } else if (message.type == kFilters) {
    PACKTRAIN_ASSIGN(filters, parse_hdf5_filters(message.data));
    out.filters = std::move(filters);
  } else if (message.type == kLink) {
    out.is_group = true;
    PACKTRAIN_ASSIGN(link, parse_hdf5_link(message.data));
    if (out.links.size() >= kMostLinks) return too_many_links();
    if (link.address != kHdf5Nowhere) out.links.push_back(std::move(link));
  } else if (message.type == kLinkInfo) {
    out.is_group = true;
    at.skip(1);
    if ((at.u8() & 1) != 0) at.skip(8);
    out.link_heap = at.u64();
    out.link_tree = at.u64();
  } else {
    out.is_group = true;
    out.symbol_tree = at.u64();
    out.symbol_names = at.u64();
  }
  return at.failed() ? corrupt_file("a message is cut short") : Status();
}

// A type with a name of its own: the message says which object is that type.
Result<Hdf5Type> Hdf5File::shared_type(Bytes message) {
  constexpr uint8_t kInHeap = 1;
  Hdf5Cursor at(message);
  uint8_t version = at.u8(), kind = at.u8();
  if (version == 1) at.skip(6);
  uint64_t address = at.u64();
  if (at.failed()) return corrupt_file("a shared message is cut short");
  if (version > 3 || (version == 3 && kind == kInHeap)) {
    return Status(Code::unsupported,
                  "its type is shared through a heap; `h5repack OLD NEW` writes it plainly");
  }
  PACKTRAIN_ASSIGN(named, object(address, true));
  return named.type;
}

Result<std::vector<Hdf5Link>> Hdf5File::links(const Hdf5Object& group) {
  std::vector<Hdf5Link> found = group.links;
  if (group.link_heap != kHdf5Nowhere && group.link_tree != kHdf5Nowhere) {
    const Status status = add_dense_links(group, found);
    if (!status.ok()) return at_address(status, offset(group.link_heap));
  }
  if (group.symbol_tree != kHdf5Nowhere) {
    // Names lie in a heap, entries in the leaves of a tree.
    PACKTRAIN_ASSIGN(heap, read(group.symbol_names, 32));
    Hdf5Cursor at(heap);
    if (!at.starts_with("HEAP"))
      return at_address(corrupt_file("no heap of names"), offset(group.symbol_names));
    at.skip(4);
    uint64_t names_bytes = at.u64();
    at.skip(8);
    PACKTRAIN_ASSIGN(names, read(at.u64(), names_bytes));
    std::vector<std::pair<uint64_t, uint8_t>> nodes = {{group.symbol_tree, kDeepestGroupTree}};
    for (size_t n = 0; n < nodes.size(); ++n) {
      auto [address, below] = nodes[n];
      PACKTRAIN_ASSIGN(head, read(address, kTreeHeadBytes));
      Hdf5Cursor node(head);
      if (!node.starts_with("TREE") || node.u8() != 0) {
        return at_address(corrupt_file("no node of a group"), offset(address));
      }
      uint8_t level = node.u8();
      uint16_t children = node.u16();
      // Levels count down to the leaves, so that no circle is followed.
      if (level >= below) return at_address(corrupt_file("a group's tree has no order"), offset(address));
      PACKTRAIN_ASSIGN(entries, read(address + kTreeHeadBytes, uint64_t{16} * children));
      Hdf5Cursor entry(entries);
      for (size_t i = 0; i < children; ++i) {
        entry.skip(8);
        uint64_t child = entry.u64();
        if (level > 0) {
          if (nodes.size() >= kMostLinks) return too_many_links();
          nodes.emplace_back(child, level);
        } else {
          PACKTRAIN_TRY(add_symbols(child, names, found));
        }
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const Hdf5Link& a, const Hdf5Link& b) { return a.name < b.name; });
  for (size_t i = 1; i < found.size(); ++i) {
    if (found[i].name == found[i - 1].name) {
      return corrupt_file("a group has two links named " + printable(found[i].name));
    }
  }
  return found;
}

Status Hdf5File::add_dense_links(const Hdf5Object& group, std::vector<Hdf5Link>& out) {
  PACKTRAIN_ASSIGN(heap, Hdf5FractalHeap::open(*this, group.link_heap));
  constexpr size_t kHashBytes = 4;  // of the name, in front of the identity
  return walk_hdf5_tree2(*this, group.link_tree, kHdf5TreeOfLinks, bytes(), [&](Bytes record) -> Status {
    if (out.size() >= kMostLinks) return too_many_links();
    if (record.size() <= kHashBytes) return corrupt_file("a link is cut short");
    PACKTRAIN_ASSIGN(message, heap.object(record.subspan(kHashBytes)));
    PACKTRAIN_ASSIGN(link, parse_hdf5_link(message));
    if (link.address != kHdf5Nowhere) out.push_back(std::move(link));
    return {};
  });
}

Status Hdf5File::add_symbols(uint64_t node, Bytes names, std::vector<Hdf5Link>& out) {
  constexpr uint32_t kSoftLink = 2;
  PACKTRAIN_ASSIGN(head, read(node, kSymbolHeadBytes));
  Hdf5Cursor at(head);
  if (!at.starts_with("SNOD")) return at_address(corrupt_file("no symbols of a group"), offset(node));
  at.skip(2);
  uint16_t symbols = at.u16();
  PACKTRAIN_ASSIGN(entries, read(node + kSymbolHeadBytes, uint64_t{kSymbolBytes} * symbols));
  Hdf5Cursor entry(entries);
  for (size_t i = 0; i < symbols; ++i) {
    uint64_t name_at = entry.u64(), address = entry.u64();
    uint32_t kind = entry.u32();
    entry.skip(4 + 16);
    if (kind == kSoftLink) continue;
    std::string_view rest = as_text(names);
    if (name_at > rest.size())
      return at_address(corrupt_file("a name lies outside of its heap"), offset(node));
    rest.remove_prefix(static_cast<size_t>(name_at));
    size_t end = rest.find('\0');
    if (end > kLongestName) return at_address(corrupt_file("a name has no end"), offset(node));
    if (out.size() >= kMostLinks) return too_many_links();
    out.push_back({std::string(rest.substr(0, end)), address});
  }
  return {};
}

}  // namespace packtrain
