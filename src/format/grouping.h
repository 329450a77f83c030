// Grouping: from the named members of a container to samples with fields and labels.
//
// The rule is webdataset's: a member's key is its path up to the first dot of the last component, its field
// the rest, in lower case: "a/b.seg.png" is the field "seg.png" of "a/b". Left out are members without a dot
// or without a stem (hidden files), and those at or below a top-level "__name__". Where that rule gives more
// than kMostFields different fields, the dots belong to the names, and the last dot divides instead.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/big_vector.h"
#include "packtrain/format.h"
#include "packtrain/index.h"
#include "packtrain/status.h"

namespace packtrain {

inline constexpr size_t kMostFields = 256;
inline constexpr uint64_t kLabelBytes = 20;  // a longer "cls" is no number of 64 bits

struct MemberName {
  std::string_view key, field;  // the field in its original case
};
enum class Divider : uint8_t { first_dot, last_dot };
// Nothing if the member belongs to no sample.
std::optional<MemberName> split_member_name(std::string_view name, Divider divider = Divider::first_dot);

// Whether the member belongs to no sample only because its name has nothing behind a dot.
bool lacks_extension(std::string_view name);

// Whether the member is the label of its sample: the field "cls".
bool is_label_member(std::string_view name);
// Decimal digits, a sign in front and white space around allowed; nothing if it is anything else.
std::optional<int64_t> parse_label(Bytes text);

// Where a member's bytes lie, and how they are stored.
struct MemberPlace {
  uint64_t offset = 0, stored = 0, raw = 0;
  uint16_t pipeline = 0;  // of the builder; 0: as they are
  CheckKind check_kind = CheckKind::none;
  uint32_t check = 0;        // of the raw bytes
  int64_t label = kNoLabel;  // what a label member says
};

enum class Adjacency : uint8_t {
  required,    // members of a sample follow each other; a key that comes again is another sample
  irrelevant,  // members with one key are one sample, wherever they lie
};

// Members in the order of the container, about 64 bytes and the name each. One thread at a time.
class MemberList {
 public:
  void reserve(size_t members) { members_.reserve(members); }
  void add(std::string_view name, const MemberPlace& place);
  // A member that is made of slices of blocks; of its place, only the label is looked at.
  void add(std::string_view name, std::span<const Slice> slices, int64_t label);
  size_t size() const { return members_.size(); }
  std::string_view name(size_t member) const;

  // Adds all samples, in the order of their first members, to `out`. Two members for one field of one
  // sample are Code::corrupt. Classes are set as `options` says. Linear in the number of members.
  Status add_samples(Adjacency adjacency, uint32_t shard, const IndexOptions& options, IndexBuilder& out);

 private:
  struct Member {
    MemberPlace place;
    uint64_t name_at;
    uint32_t name_bytes;
    uint32_t key_bytes;  // of the name; kNoSample: the member belongs to none
    uint32_t field;      // into fields_
    uint32_t slices;     // from place.offset on, in slices_; 0: one piece
  };
  static constexpr uint32_t kNoSample = UINT32_MAX;

  bool divide(Divider divider);  // fills key_bytes, field and fields_; false: more than kMostFields
  uint32_t field_id(std::string_view lower_case);
  std::string_view key(const Member& member) const;
  std::string_view name_of(const Member& member) const;
  HugeVector<uint32_t> in_sample_order(Adjacency adjacency) const;
  Status add_sample(const uint32_t* first, const uint32_t* last, uint32_t shard,
                    const std::vector<std::string>& classes, IndexBuilder& out) const;
  bool note_merged(const uint32_t* first, const uint32_t* last, const IndexOptions& options) const;
  void note_without_number(const uint32_t* first, const uint32_t* last, MembersLeftOut& out) const;
  void add_field(std::string_view field, const Member& member, uint32_t shard, IndexBuilder& out) const;
  std::vector<std::string> class_folders() const;

  HugeVector<Member> members_;
  HugeString names_;
  std::vector<std::string> fields_;
  HugeVector<Slice> slices_;
  uint32_t last_field_ = 0;  // most samples have few fields in a fixed order: a look at the next one finds it
};

}  // namespace packtrain
