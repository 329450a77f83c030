#include "format/hdf5_tree2.h"

#include <bit>
#include <vector>

namespace packtrain {
namespace {

constexpr uint64_t kTreeHead = 38;              // with its checksum
constexpr uint64_t kNodeFrame = 4 + 1 + 1 + 4;  // signature, version, type, checksum
constexpr uint32_t kLargestNode = 16 << 20;     // libhdf5 uses 512 to 2048 bytes
constexpr uint16_t kDeepestTree2 = 16;

Status corrupt_tree(std::string_view what) { return Status(Code::corrupt, std::string(what)); }

// How many bytes a number up to `most` takes.
uint64_t number_bytes(uint64_t most) {
  return most == 0 ? 1 : (static_cast<uint64_t>(std::bit_width(most)) + 7) / 8;
}

struct Node {
  uint64_t address = 0, records = 0;
  uint16_t level = 0;  // 0: a leaf
};

// What nodes of one level hold at most.
struct Level {
  uint64_t records = 0, below = 0;  // in the node; with all below it
  uint64_t below_bytes = 0;         // that a number of them takes
};

class TreeWalk {
 public:
  TreeWalk(Hdf5File& file, uint64_t most, const std::function<Status(Bytes)>& each)
      : file_(file), most_(most), each_(each) {}

  Status run(uint64_t address, uint8_t type) {
    PACKTRAIN_ASSIGN(head, checked(address, kTreeHead));
    Hdf5Cursor at(head);
    if (!at.starts_with("BTHD") || at.u8() != 0) return corrupt_tree("no tree of records");
    type_ = at.u8();
    if (type_ != type) return corrupt_tree("a tree holds records of another type");
    node_bytes_ = at.u32();
    record_bytes_ = at.u16();
    const uint16_t depth = at.u16();
    at.skip(2);
    Node root{.address = at.u64(), .level = depth};
    root.records = at.u16();
    const uint64_t all = at.u64();
    if (record_bytes_ == 0 || node_bytes_ > kLargestNode || node_bytes_ < kNodeFrame + record_bytes_ ||
        depth > kDeepestTree2 || all > most_)
      return corrupt_tree("a tree of records has impossible sizes");
    if (root.address == kHdf5Nowhere) return {};
    PACKTRAIN_TRY(set_levels(depth));
    nodes_.push_back(root);
    for (size_t i = 0; i < nodes_.size(); ++i) PACKTRAIN_TRY(take(nodes_[i]));
    return taken_ == all ? Status() : corrupt_tree("a tree has another number of records than it says");
  }

 private:
  Result<std::vector<std::byte>> checked(uint64_t address, uint64_t bytes) {
    PACKTRAIN_ASSIGN(data, file_.read(address, bytes));
    if (hdf5_checksum(Bytes(data).first(data.size() - 4)) != Hdf5Cursor(Bytes(data).last(4)).u32())
      return corrupt_tree("a tree of records does not match its checksum");
    return data;
  }

  uint64_t pointer_bytes(uint16_t level) const {
    return 8 + count_bytes_ + (level > 1 ? levels_[level - 1].below_bytes : 0);
  }

  Status set_levels(uint16_t depth) {
    levels_.resize(size_t{depth} + 1);
    levels_[0].records = levels_[0].below = (node_bytes_ - kNodeFrame) / record_bytes_;
    count_bytes_ = number_bytes(levels_[0].records);
    for (uint16_t level = 1; level <= depth; ++level) {
      const uint64_t pointer = pointer_bytes(level);
      if (node_bytes_ < kNodeFrame + 2 * pointer + record_bytes_)
        return corrupt_tree("a tree of records has impossible sizes");
      Level& mine = levels_[level];
      mine.records = (node_bytes_ - kNodeFrame - pointer) / (record_bytes_ + pointer);
      const uint64_t children = mine.records + 1;
      if (levels_[level - 1].below > (UINT64_MAX >> 1) / children) {
        mine.below = UINT64_MAX >> 1;  // more than any file holds
      } else {
        mine.below = children * levels_[level - 1].below + mine.records;
      }
      mine.below_bytes = number_bytes(mine.below);
    }
    return {};
  }

  Status take(Node node) {  // a copy: nodes_ grows
    if (node.records > levels_[node.level].records || node.records > most_ - taken_)
      return corrupt_tree("a node has too many records");
    const uint64_t pointers = node.level == 0 ? 0 : node.records + 1;
    PACKTRAIN_ASSIGN(data, checked(node.address, kNodeFrame + node.records * record_bytes_ +
                                                     pointers * pointer_bytes(node.level)));
    Hdf5Cursor at(data);
    if (!at.starts_with(node.level == 0 ? "BTLF" : "BTIN") || at.u8() != 0 || at.u8() != type_)
      return corrupt_tree("no node of a tree");
    for (uint64_t i = 0; i < node.records; ++i) PACKTRAIN_TRY(each_(at.take(record_bytes_)));
    taken_ += node.records;
    for (uint64_t i = 0; i < pointers; ++i) {
      Node child{.address = at.u64(), .level = static_cast<uint16_t>(node.level - 1)};
      child.records = at.number(count_bytes_);
      if (node.level > 1) at.skip(levels_[node.level - 1].below_bytes);
      // Every node but the root has a record.
      if (child.records == 0 || nodes_.size() > most_) return corrupt_tree("a tree has too many nodes");
      nodes_.push_back(child);
    }
    return {};
  }

  Hdf5File& file_;
  const uint64_t most_;
  const std::function<Status(Bytes)>& each_;
  uint8_t type_ = 0;
  uint32_t node_bytes_ = 0;
  uint64_t record_bytes_ = 0, count_bytes_ = 1, taken_ = 0;
  std::vector<Level> levels_;
  std::vector<Node> nodes_;
};

}  // namespace

Status walk_hdf5_tree2(Hdf5File& file, uint64_t address, uint8_t type, uint64_t most,
                       const std::function<Status(Bytes)>& each) {
  return TreeWalk(file, most, each).run(address, type);
}

}  // namespace packtrain
