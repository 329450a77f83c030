#include "format/hdf5_metadata.h"

#include <algorithm>

#include "packtrain/storage.h"

namespace packtrain {
namespace {

constexpr uint16_t kLeafHalf = 4, kNodeHalf = 16;  // the usual ones; a node has room for twice as many
constexpr uint16_t kSpaceMessage = 1, kTypeMessage = 3, kFillMessage = 5, kLayoutMessage = 8,
                   kSymbolTableMessage = 17;
constexpr uint8_t kConstant = 1;  // flag of a message that never changes
constexpr uint64_t kNoFreeSpace = 1;

// Bytes that grow at the end.
class Out {
 public:
  size_t size() const { return bytes_.size(); }
  Out& number(uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }
  Out& u8(uint64_t value) { return number(value, 1); }
  Out& u16(uint64_t value) { return number(value, 2); }
  Out& u32(uint64_t value) { return number(value, 4); }
  Out& u64(uint64_t value) { return number(value, 8); }
  Out& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  Out& align() { return zeros((8 - bytes_.size() % 8) % 8); }
  Out& add(Bytes bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Out& add(std::string_view text) { return add(as_bytes(text)); }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

void add_integer_type(uint8_t bytes, bool is_signed, Out& out) {
  out.u8(0x10).u8(is_signed ? 8 : 0).u16(0).u32(bytes).u16(0).u16(8 * bytes);
}

// What IEEE says of a real number of so many bytes.
struct Real {
  uint8_t exponent_bits, mantissa_bits;
  uint32_t bias;
};
constexpr Real real_of(uint64_t bytes) {
  return bytes == 2 ? Real{5, 10, 15} : bytes == 4 ? Real{8, 23, 127} : Real{11, 52, 1023};
}

void add_real_type(uint8_t bytes, Out& out) {
  constexpr uint8_t kReal = 0x11, kHighestBitImplied = 0x20;
  const Real real = real_of(bytes);
  out.u8(kReal).u8(kHighestBitImplied).u8(8 * bytes - 1u).u8(0).u32(bytes).u16(0).u16(8 * bytes);
  out.u8(real.mantissa_bits).u8(real.exponent_bits).u8(0).u8(real.mantissa_bits).u32(real.bias);
}

// As h5py has it: an enumeration of FALSE and TRUE.
void add_truth_type(Out& out) {
  constexpr uint8_t kEnumeration = 0x18;
  out.u8(kEnumeration).u8(2).u16(0).u32(1);
  add_integer_type(1, true, out);
  out.add(std::string_view("FALSE\0\0\0TRUE\0\0\0\0", 16)).u8(0).u8(1);
}

void add_number_type(std::string_view type, Out& out) {
  const auto bytes = static_cast<uint8_t>(type[2] - '0');
  if (type[1] == 'b') return add_truth_type(out);
  if (type[1] == 'f') return add_real_type(bytes, out);
  add_integer_type(bytes, type[1] == 'i', out);
}

void add_type(const Hdf5DatasetToWrite& dataset, Out& out) {
  constexpr uint8_t kText = 0x13, kVariable = 0x19, kPaddedUtf8 = 0x11;
  switch (dataset.element) {
    case Hdf5Element::u8:
      return add_integer_type(1, false, out);
    case Hdf5Element::i16:
      return add_integer_type(2, true, out);
    case Hdf5Element::i32:
      return add_integer_type(4, true, out);
    case Hdf5Element::i64:
      return add_integer_type(8, true, out);
    case Hdf5Element::text:
      out.u8(kText).u8(kPaddedUtf8).u16(0).u32(dataset.text_bytes);
      return;
    case Hdf5Element::bytes:
      out.u8(kVariable).u8(0).u16(0).u32(16);
      return add_integer_type(1, false, out);
    case Hdf5Element::string:
      out.u8(kVariable).u8(1).u16(1).u32(16);  // a string, in UTF-8
      return add_integer_type(1, false, out);
    case Hdf5Element::number:
      return add_number_type(dataset.number, out);
  }
}

// An object's header of the given messages.
class Header {
 public:
  Out& begin(uint16_t type, uint8_t flags) {
    end();
    type_ = type;
    flags_ = flags;
    open_ = true;
    return data_ = Out();
  }
  std::vector<std::byte> finish() {
    end();
    Out out;
    out.u8(1).u8(0).u16(count_).u32(1).u32(messages_.size()).u32(0).add(messages_.bytes());
    return out.take();
  }

 private:
  void end() {
    if (!open_) return;
    data_.align();
    messages_.u16(type_).u16(data_.size()).u8(flags_).zeros(3).add(data_.bytes());
    ++count_;
    open_ = false;
  }
  Out messages_, data_;
  uint16_t type_ = 0, count_ = 0;
  uint8_t flags_ = 0;
  bool open_ = false;
};

struct GroupPlace {
  uint64_t header = 0, tree = 0, names = 0;
};

class Encoder {
 public:
  Encoder(uint64_t address, uint16_t leaf_half) : start_(address), leaf_half_(leaf_half) {}

  uint64_t add_dataset(const Hdf5DatasetToWrite& dataset) {
    const bool variable = dataset.element == Hdf5Element::bytes || dataset.element == Hdf5Element::string;
    Header header;
    Out& space = header.begin(kSpaceMessage, 0);
    space.u8(1).u8(1 + dataset.row_shape.size()).u8(1).zeros(5);
    for (int limits = 0; limits < 2; ++limits) {  // the shape, and how far it may grow
      space.u64(dataset.rows);
      for (const uint64_t size : dataset.row_shape) space.u64(size);
    }
    add_type(dataset, header.begin(kTypeMessage, kConstant));
    header.begin(kFillMessage, kConstant).u8(2).u8(2).u8(variable ? 0 : 2).u8(1).u32(0);
    header.begin(kLayoutMessage, 0)
        .u8(3)
        .u8(1)
        .u64(dataset.bytes == 0 ? kHdf5Nowhere : dataset.address)
        .u64(dataset.bytes);
    const uint64_t at = address();
    out_.add(header.finish()).align();
    return at;
  }

  // Its objects come first.
  GroupPlace add_group(const Hdf5GroupToWrite& group) {
    struct Entry {
      std::string_view name;
      uint64_t header = 0;
      const Hdf5GroupToWrite* group = nullptr;
      GroupPlace place;
      uint64_t name_at = 0;
    };
    std::vector<Entry> entries;
    for (const Hdf5DatasetToWrite& dataset : group.datasets) {
      entries.push_back({.name = dataset.name, .header = add_dataset(dataset), .place = {}});
    }
    for (const Hdf5GroupToWrite& inner : group.groups) {
      const GroupPlace place = add_group(inner);
      entries.push_back({.name = inner.name, .header = place.header, .group = &inner, .place = place});
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
    Out names;
    names.zeros(8);  // the empty name
    for (Entry& entry : entries) {
      entry.name_at = names.size();
      names.add(entry.name).u8(0).align();
    }
    const uint64_t leaf = address();
    out_.add("SNOD").u8(1).u8(0).u16(entries.size());
    for (const Entry& entry : entries) {
      // The entry of a group repeats where its parts lie.
      out_.u64(entry.name_at).u64(entry.header).u32(entry.group ? 1 : 0).u32(0);
      out_.u64(entry.place.tree).u64(entry.place.names);
    }
    out_.zeros(40 * (2 * size_t{leaf_half_} - entries.size()));
    GroupPlace place;
    place.tree = address();
    out_.add("TREE").u8(0).u8(0).u16(entries.empty() ? 0 : 1).u64(kHdf5Nowhere).u64(kHdf5Nowhere);
    out_.u64(0).u64(entries.empty() ? 0 : leaf).u64(entries.empty() ? 0 : entries.back().name_at);
    out_.zeros(16 * (2 * size_t{kNodeHalf} - 1));
    place.names = address();
    out_.add("HEAP").u32(0).u64(names.size()).u64(kNoFreeSpace).u64(place.names + 32).add(names.bytes());
    place.header = address();
    Header header;
    header.begin(kSymbolTableMessage, 0).u64(place.tree).u64(place.names);
    out_.add(header.finish()).align();
    return place;
  }

  uint64_t address() const { return start_ + out_.size(); }
  std::vector<std::byte> take() { return out_.take(); }

 private:
  Out out_;
  const uint64_t start_;
  const uint16_t leaf_half_;
};

size_t most_links(const Hdf5GroupToWrite& group) {
  size_t most = group.datasets.size() + group.groups.size();
  for (const Hdf5GroupToWrite& inner : group.groups) most = std::max(most, most_links(inner));
  return most;
}

}  // namespace

bool is_hdf5_number(std::string_view type) {
  constexpr std::string_view kNumbers[] = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4",
                                           "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"};
  return std::find(std::begin(kNumbers), std::end(kNumbers), type) != std::end(kNumbers);
}

Hdf5Metadata encode_hdf5_metadata(const Hdf5GroupToWrite& root, uint64_t address) {
  // One leaf holds all names of a group, however many they are.
  const auto leaf_half = static_cast<uint16_t>(std::max<size_t>(kLeafHalf, (most_links(root) + 1) / 2));
  Encoder encoder(address, leaf_half);
  const GroupPlace place = encoder.add_group(root);
  const uint64_t end = encoder.address();
  Out super;
  super.add(kHdf5Signature).u32(0).u8(0).u8(8).u8(8).u8(0).u16(leaf_half).u16(kNodeHalf).u32(0);
  super.u64(0).u64(kHdf5Nowhere).u64(end).u64(kHdf5Nowhere);
  super.u64(0).u64(place.header).u32(1).u32(0).u64(place.tree).u64(place.names);
  Hdf5Metadata made;
  made.superblock = super.take();
  made.objects = encoder.take();
  return made;
}

}  // namespace packtrain
