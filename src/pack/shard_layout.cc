#include "pack/shard_layout.h"

#include <algorithm>

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

ShardLayout lay_out(const Plan& plan, const ShardPlan& shard, const Layout& format,
                    const std::vector<uint64_t>& left_out) {
  ShardLayout layout;
  uint64_t at = 0;
  for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
    const uint64_t sample = plan.order[i];
    if (std::binary_search(left_out.begin(), left_out.end(), sample)) continue;
    layout.first_member.push_back(layout.members.size());
    for (uint64_t cell = plan.catalog.samples[sample].first_cell; cell < plan.catalog.end_cell(sample);
         ++cell) {
      const uint64_t name_at = layout.names.size();
      layout.names.append(plan.key(sample))
          .append(1, '.')
          .append(plan.catalog.fields[plan.catalog.cells[cell].field]);
      const auto name_bytes = static_cast<uint32_t>(layout.names.size() - name_at);
      const uint64_t size = plan.catalog.cells[cell].size;
      const uint64_t head = format.head_bytes(std::string_view(layout.names).substr(name_at), size, at);
      layout.members.push_back(
          {cell, at, at + head, size, name_at, name_bytes, static_cast<uint32_t>(layout.samples.size())});
      at += head + size + format.padding(size);
    }
    layout.samples.push_back(sample);
  }
  layout.first_member.push_back(layout.members.size());
  layout.tail_offset = at;
  layout.bytes = at + format.tail_bytes(laid_members(layout, format, {}), at);
  return layout;
}

std::string shard_tail(const ShardLayout& layout, const Layout& format, const std::vector<uint32_t>& crc32) {
  std::string tail(layout.bytes - layout.tail_offset, '\0');
  format.write_tail(laid_members(layout, format, crc32), layout.tail_offset,
                    std::as_writable_bytes(std::span(tail)));
  return tail;
}

}  // namespace packtrain
