// Where every member of one planned shard lies. Follows from the plan alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/give_back.h"
#include "pack/plan.h"
#include "packtrain/format.h"

namespace packtrain {

struct PlannedMember {
  uint64_t cell = 0;  // of the catalog, or kLabelCell
  uint64_t head_offset = 0, data_offset = 0, size = 0;
  uint64_t name_at = 0;
  uint32_t name_bytes = 0;
  uint32_t sample = 0;  // into ShardLayout::samples
};

// Immutable once made; about 60 bytes and the name for each member.
struct ShardLayout {
  BigVector<uint64_t> samples;       // of the catalog, in the order of the shard, without those left out
  BigVector<uint64_t> first_member;  // per sample; one more at the end
  BigVector<PlannedMember> members;
  BigString names;
  uint64_t tail_offset = 0;
  uint64_t bytes = 0;

  std::string_view name(const PlannedMember& member) const {
    return std::string_view(names).substr(member.name_at, member.name_bytes);
  }
  // Gives back what only those who write members need; the tail of a tar can still be made.
  void forget_members() {
    give_back(samples);
    give_back(first_member);
    give_back(members);
    give_back(names);
  }
  uint64_t sample_begin(size_t i) const {
    return i < samples.size() ? members[first_member[i]].head_offset : tail_offset;
  }
};

// Calls `each` for every member in order, with its name and its sample of the catalog, and keeps none of
// them. Gives the offset of the tail. `left_out`: samples of the catalog, sorted, that could not be read and
// were given up. `sizes`: of every member, where the plan does not know them.
using EachMember = std::function<void(const PlannedMember& member, std::string_view name, uint64_t sample)>;
uint64_t walk_shard(const Plan& plan, const ShardPlan& shard, const Layout& format,
                    const std::vector<uint64_t>& left_out, const EachMember& each,
                    std::span<const uint64_t> sizes = {});
// The same, kept.
ShardLayout lay_out(const Plan& plan, const ShardPlan& shard, const Layout& format,
                    const std::vector<uint64_t>& left_out);
// The tail's bytes; `crc32` per member where the format needs it.
std::string shard_tail(const ShardLayout& layout, const Layout& format, const std::vector<uint32_t>& crc32);

}  // namespace packtrain
