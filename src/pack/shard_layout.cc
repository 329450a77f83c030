#include "pack/shard_layout.h"

#include <algorithm>

#include "pack/look_ahead.h"

namespace packtrain {
namespace {

// What a tail is made of. A tar's does not look at its members, and a million of them need not be listed for
// it.
std::vector<LaidMember> laid_members(const ShardLayout& layout, const Layout& format,
                                     const std::vector<uint32_t>& crc32) {
  std::vector<LaidMember> laid;
  if (!format.needs_crc32) return laid;
  laid.reserve(layout.members.size());
  for (size_t i = 0; i < layout.members.size(); ++i) {
    const PlannedMember& member = layout.members[i];
    laid.push_back({layout.name(member), member.head_offset, member.size, crc32.empty() ? 0 : crc32[i]});
  }
  return laid;
}

}  // namespace

uint64_t walk_shard(const Plan& plan, const ShardPlan& shard, const Layout& format,
                    const std::vector<uint64_t>& left_out, const EachMember& each,
                    std::span<const uint64_t> sizes) {
  const Catalog& catalog = plan.catalog;
  uint64_t at = 0;
  uint32_t number = 0;  // of the sample in the shard
  size_t member = 0;
  std::string name;
  for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
    look_ahead(plan, i, shard.first + shard.count);
    const uint64_t sample = plan.order[i];
    if (std::binary_search(left_out.begin(), left_out.end(), sample)) continue;
    const SampleCells cells(catalog, sample);
    for (auto cell = cells.begin(); cell != cells.end(); ++cell) {
      name.assign(plan.key(sample)).append(1, '.').append(catalog.fields[cell->field]);
      const uint64_t size = member < sizes.size() ? sizes[member] : cell->size;
      ++member;
      const uint64_t head = format.head_bytes(name, size, at);
      each({.cell = cell.number(),
            .head_offset = at,
            .data_offset = at + head,
            .size = size,
            .sample = number},
           name, sample);
      at += head + size + format.padding(size);
    }
    ++number;
  }
  return at;
}

ShardLayout lay_out(const Plan& plan, const ShardPlan& shard, const Layout& format,
                    const std::vector<uint64_t>& left_out) {
  ShardLayout layout;
  layout.tail_offset = walk_shard(plan, shard, format, left_out,
                                  [&](PlannedMember member, std::string_view name, uint64_t sample) {
                                    if (member.sample == layout.samples.size()) {
                                      layout.samples.push_back(sample);
                                      layout.first_member.push_back(layout.members.size());
                                    }
                                    member.name_at = layout.names.size();
                                    member.name_bytes = static_cast<uint32_t>(name.size());
                                    layout.names.append(name);
                                    layout.members.push_back(member);
                                  });
  layout.first_member.push_back(layout.members.size());
  layout.bytes = layout.tail_offset + format.tail_bytes(laid_members(layout, format, {}), layout.tail_offset);
  return layout;
}

std::string shard_tail(const ShardLayout& layout, const Layout& format, const std::vector<uint32_t>& crc32) {
  std::string tail(layout.bytes - layout.tail_offset, '\0');
  format.write_tail(laid_members(layout, format, crc32), layout.tail_offset,
                    std::as_writable_bytes(std::span(tail)));
  return tail;
}

}  // namespace packtrain
