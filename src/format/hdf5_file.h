// An HDF5 file's objects: groups and datasets, read by packtrain itself.
//
// libhdf5 is not used to read: it has one lock, it reads through its own files rather than a Storage, and it
// may crash on damaged bytes. What training data need of the format is little.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "format/hdf5_records.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// Where the signature is: at the front, or behind a user block of 512, 1024, … bytes. Nothing if nowhere.
Result<std::optional<uint64_t>> find_hdf5_signature(Storage& storage, const File& file);

// A group, a dataset, or something else that is neither.
struct Hdf5Object {
  bool is_group = false, is_dataset = false;
  uint64_t symbol_tree = kHdf5Nowhere, symbol_names = kHdf5Nowhere;  // of a group of the old kind
  std::vector<Hdf5Link> links;                                       // of a group of the new kind
  // Of a new group with many links: they are in a heap, and a tree knows them all.
  uint64_t link_heap = kHdf5Nowhere, link_tree = kHdf5Nowhere;
  std::vector<uint64_t> shape;
  Hdf5Type type;
  Hdf5Layout layout;
  std::vector<Hdf5Filter> filters;
  std::vector<std::byte> fill;  // an element that was never written; empty: zeros
  Status trouble;               // why the dataset cannot be used
};

// One file open for reading. One thread at a time. Keeps what it read of the metadata, up to 32 MiB.
class Hdf5File {
 public:
  // Finds the superblock; corrupt if the file is shorter than it says. `file` must outlive it.
  static Result<Hdf5File> open(Storage& storage, const File& file);

  Storage& storage() const { return *storage_; }
  const File& file() const { return *file_; }
  uint64_t root() const { return root_; }
  // How many bytes there are from address 0 on.
  uint64_t bytes() const { return file_->size() - base_; }
  bool holds(uint64_t address, uint64_t bytes) const {
    return address <= this->bytes() && bytes <= this->bytes() - address;
  }
  uint64_t offset(uint64_t address) const { return base_ + address; }  // in the file

  // Small pieces of metadata.
  Status read(uint64_t address, MutableBytes into);
  Result<std::vector<std::byte>> read(uint64_t address, uint64_t bytes);
  // Elements: as much as it is, in one piece.
  Status read_elements(uint64_t address, MutableBytes into) const;

  Result<Hdf5Object> object(uint64_t address);
  // The links of a group that lead to objects of this file, by name.
  Result<std::vector<Hdf5Link>> links(const Hdf5Object& group);

 private:
  struct Message {
    uint16_t type = 0;
    uint8_t flags = 0;
    Bytes data;
  };
  struct Block {
    uint64_t address = 0, bytes = 0;
  };
  Hdf5File(Storage& storage, const File& file, uint64_t base)
      : storage_(&storage), file_(&file), base_(base) {}

  Result<Hdf5Object> object(uint64_t address, bool type_only);
  Status take_old_header(uint64_t address, bool type_only, Hdf5Object& out);
  Status take_new_header(uint64_t address, bool type_only, Hdf5Object& out);
  Status take_message(const Message& message, bool type_only, std::vector<Block>& blocks, Hdf5Object& out);
  Status take_dataset_message(const Message& message, Hdf5Object& out);
  Result<Hdf5Type> shared_type(Bytes message);
  Status add_symbols(uint64_t node, Bytes names, std::vector<Hdf5Link>& out);
  Status add_dense_links(const Hdf5Object& group, std::vector<Hdf5Link>& out);
  Result<std::vector<std::byte>> read_header(const Block& block);
  Result<const std::vector<std::byte>*> page(uint64_t number);

  Storage* storage_;
  const File* file_;
  uint64_t base_;  // where the superblock is
  uint64_t root_ = 0;
  uint64_t header_bytes_ = 0;  // of all objects so far
  std::unordered_map<uint64_t, std::vector<std::byte>> pages_;
};

}  // namespace packtrain
