// Format: how a container is laid out. A format writes and indexes; one engine reads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/codec.h"
#include "packtrain/index.h"
#include "packtrain/progress.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// A stretch of a container that could not be understood.
struct Damage {
  uint64_t offset = 0, bytes = 0;
  std::string what;
};

// Members of containers that become no sample.
struct MembersLeftOut {
  static constexpr size_t kNamed = 20;
  uint64_t count = 0;
  std::vector<std::string> names;  // of the first kNamed
};

struct IndexOptions {
  // Go on behind damage at the next sound place, and say what was lost; otherwise damage is an error.
  bool recover = false;
  std::vector<Damage>* damage = nullptr;  // filled when recover
  // If given, what was left out is added to them: hard and symbolic links, which have no bytes of their own,
  // and files without an extension, which names the field.
  MembersLeftOut *links = nullptr, *without_extension = nullptr;
  // The same for columns of tables that hold no bytes, texts or labels; each name once.
  MembersLeftOut* columns = nullptr;
  // The same for values of `cls` that are no whole number, whose samples have no label.
  MembersLeftOut* without_number = nullptr;
  // If given, what else the user should know is added to them, a sentence each and each once.
  std::vector<std::string>* notes = nullptr;
  Progress progress;
  std::string_view shard_path;  // what the index calls the container; empty: the path it is read from
  // Where no member carries a label, class folders give them. Null: each container numbers its own.
  // Otherwise they are numbered by this list, so that several containers agree; empty: no such labels.
  const std::vector<std::string>* classes = nullptr;
  // If given, becomes the names of the container's class folders, sorted; empty if it is no class tree.
  std::vector<std::string>* class_folders = nullptr;
  // Each member is a sample of its own: its key is the member's name, its one field "data". Nothing is
  // grouped, labelled or left out.
  bool each_member = false;
};

// A member of a container in the making: a name, its bytes' number, and where it will lie.
struct LaidMember {
  std::string_view name;
  uint64_t offset = 0;  // of its head
  uint64_t size = 0;    // of its data, which follow the head
  uint32_t crc32 = 0;   // zip's; known only once the data were read
};

// A layout that follows from names and sizes alone, so that every offset is known before a byte is
// read: a member is head, data, padding; the container ends with a tail.
struct Layout {
  uint64_t (*head_bytes)(std::string_view name, uint64_t size, uint64_t offset);
  uint64_t (*padding)(uint64_t size);  // zero bytes behind the data
  uint64_t (*tail_bytes)(std::span<const LaidMember> members, uint64_t tail_offset);
  void (*write_head)(const LaidMember& member, MutableBytes out);
  void (*write_tail)(std::span<const LaidMember> members, uint64_t tail_offset, MutableBytes out);
  bool needs_crc32;  // in head or tail; without it the tail does not depend on `members`, which may then be
                     // empty
};

struct WriteSpec {
  std::string compress = "none";        // or one of Format::codecs
  std::vector<std::string> compressed;  // the fields that it is for, sorted; empty: all
  uint64_t expected_bytes = 0;          // about how many will be added: for allocation
  uint64_t samples = 0;                 // at most how many will be added
  // Every field that a sample may bring, sorted: formats that keep columns name them before the first sample.
  std::vector<std::string> fields;
  // Fields whose values are arrays without headers, all of one type and shape.
  std::map<std::string, ArrayValue, std::less<>> arrays = {};
  bool labels = false;     // whether samples bring labels as numbers
  bool one_image = false;  // every sample has one field, an image, though not all have the same
  WriteOptions write;
};

struct SampleToWrite {
  std::string_view key;
  int64_t label = kNoLabel;
  struct Field {
    std::string_view name;
    Bytes bytes;
  };
  std::span<const Field> fields;
};

// Writes one container front to back, where the layout cannot be planned. One thread at a time.
struct ContainerWriter {
  virtual ~ContainerWriter() = default;
  // The samples that follow belong to this split. Formats that keep no splits need not know.
  virtual Status begin_split(std::string_view) { return {}; }
  virtual Status add(const SampleToWrite& sample) = 0;
  virtual Status finish() = 0;  // visible afterwards; nothing is before
};

// Bytes of a container that have a check of its own as they are stored, whatever values lie in them.
struct CheckedStretch {
  uint64_t offset = 0, bytes = 0;
  CheckKind kind = CheckKind::none;
  uint32_t check = 0;
  std::string name;  // what it is, in words
};

// How a container compresses a value: what of it, and by what.
struct ValueCoding {
  Pipeline pipeline;
  uint64_t skip = 0;  // bytes in front that are kept apart, and have to be the same in all values of a field
};

// How many containers a dataset of this format is cut into, unless the user says otherwise.
enum class Cut : uint8_t {
  shards,       // of some hundred megabytes
  splits,       // one for each split
  one_for_all,  // one in all, which keeps the splits itself; never more
};

// One constant per file of src/format; formats.cc lists them.
struct Format {
  std::string_view name, suffix, summary;
  bool (*recognise)(Storage&, std::string_view path);  // by content first, by name second
  // Where every field of every sample lies; reads directories, not payload (but for small labels).
  // Adds the container as a shard of its own.
  Status (*index)(Storage&, std::string_view path, const IndexOptions&, IndexBuilder& out);
  const Layout* layout;  // null: cannot be planned
  Result<std::unique_ptr<ContainerWriter>> (*create)(Storage&, std::string_view path,
                                                     const WriteSpec&);  // null: see layout
  Cut cut = Cut::shards;
  // The container keeps labels as numbers: a field "cls" that says no more than that is not written as bytes.
  bool label_column = false;
  // Samples are indexed in the order in which they were added; otherwise they are found by their keys.
  bool keeps_order = true;
  bool folder = false;  // an existing container may be a folder, told by the files in it
  // What is written is a folder: the file within that holds the bytes, such as "data.mdb". Empty: it is a
  // file.
  std::string_view inner_file = {};
  // A second file that may lie in that folder, of no use to the index: "y.npy".
  std::string_view companion = {};
  // Takes one field of arrays, all of one type and shape, and nothing else.
  bool arrays_only = false;
  // What its values can be compressed by, the preferred codec first; empty: they are kept as they are.
  std::span<const std::string_view> codecs = {};
  // How a value of `bytes` bytes is compressed, by its first ones; nothing if it would not be. Null: whole,
  // by the codec.
  std::optional<ValueCoding> (*coding)(std::string_view codec, Bytes head, uint64_t bytes) = nullptr;
  // Adds the checks that a container carries of stretches in which many values lie. They do not overlap.
  // Null: it carries none.
  Status (*own_checks)(Storage&, std::string_view path, std::vector<CheckedStretch>& out) = nullptr;
};

std::span<const Format* const> formats();
const Format* find_format(std::string_view name);  // null if there is none
// The format of an existing file or folder; unsupported if none recognises it, with what would help.
Result<const Format*> recognise_format(Storage& storage, std::string_view path);

// "train-{000000..000127}.tar", "a,b"-lists in braces, globs, "::"-joined lists: to paths, in order.
Result<std::vector<std::string>> expand_paths(Storage& storage, std::string_view pattern);

struct OpenOptions {
  bool cache = true;  // keep the index of bare containers under $XDG_CACHE_HOME/packtrain
  Progress progress;
  std::string* note =
      nullptr;  // filled with what to tell the user ("indexed on the fly; run …"), or left empty
  // If given, what the user should know of bare containers goes here, a sentence each, and not into `note`.
  std::vector<std::string>* found = nullptr;
};
// A dataset folder, a container that has NAME.packtrain/ beside it, or bare containers, indexed now.
Result<std::shared_ptr<Dataset>> open_dataset(Storage& storage, std::string_view path,
                                              const OpenOptions& options = {});

struct MakeIndexOptions {
  std::string out;  // folder; empty: CONTAINER.packtrain (of the first, where there are several)
  // The split that each container is, in their order; empty, or an empty one: it has its own, or none.
  std::vector<std::string> splits = {};
  bool checksum = false;  // read all payload once and record crc32c for every field and block
  IndexOptions index;
};
struct MakeIndexReport {
  std::string folder;
  uint64_t samples = 0, containers = 0, bytes = 0;
  MembersLeftOut links, without_extension, columns;
  std::vector<std::string> notes;   // what else the user should know, a sentence each
  uint64_t unlabelled_folders = 0;  // folders in the containers that pack would have taken as classes
};
// What the user should know of them, or nothing if there are none.
std::string links_in_words(const MembersLeftOut& links);
std::string without_extension_in_words(const MembersLeftOut& files);
std::string columns_in_words(const MembersLeftOut& columns);
std::string without_number_in_words(const MembersLeftOut& labels);
// What names the tables of a folder that Hugging Face's save_to_disk made, for a command:
// "'hf/data-*.arrow'", or one for each split, as NAME='…'. Empty if it is no such folder. Read errors count
// as that.
std::string saved_tables(Storage& storage, std::string_view folder);
// Makes existing containers a dataset in place, without copying them.
Result<MakeIndexReport> make_index(Storage& storage, std::span<const std::string> containers,
                                   const MakeIndexOptions& options);

}  // namespace packtrain
