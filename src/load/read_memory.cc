#include "load/read_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>

#include "base/forbidden_memory.h"
#include "base/words.h"

namespace packtrain {
namespace {

constexpr uint64_t kStretchAlignment = 64;
constexpr uint64_t kRegionAlignment = uint64_t{2} << 20;  // huge pages

uint64_t aligned(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

ReadMemory::ReadMemory(uint64_t bytes) : size_(aligned(bytes, kStretchAlignment)) {}

ReadMemory::~ReadMemory() {
  if (!region_) return;
  PACKTRAIN_ALLOW_MEMORY(region_, size_);
  ::munmap(region_, size_);
}

Status ReadMemory::map() {
  assert(!region_);
  if (size_ == 0) return {};
  // Nothing is held before it is touched.
  void* const region =
      ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED)
    return Status(Code::no_room, "there is no address space of " + bytes_in_words(size_) +
                                     " for what is read ahead; raise ulimit -v, or give less memory=");
  region_ = static_cast<std::byte*>(region);
  // A refusal costs time alone.
  if (size_ >= 2 * kRegionAlignment) (void)::madvise(region_, size_, MADV_HUGEPAGE);
  PACKTRAIN_FORBID_MEMORY(region_, size_);
  holes_.push_back({0, size_});
  return {};
}

MutableBytes ReadMemory::take(uint64_t bytes) {
  assert(bytes > 0);
  const uint64_t wanted = aligned(bytes, kStretchAlignment);
  if (wanted >= too_much_ || wanted > size_ - in_use_) return {};
  const auto found = std::find_if(holes_.begin(), holes_.end(),
                                  [&](const Hole& hole) { return hole.end - hole.begin >= wanted; });
  if (found == holes_.end()) {
    too_much_ = wanted;
    return {};
  }
  std::byte* const data = region_ + found->begin;
  found->begin += wanted;
  in_use_ += wanted;
  touched_ = std::max(touched_, found->begin);
  if (found->begin == found->end) holes_.erase(found);
  PACKTRAIN_ALLOW_MEMORY(data, bytes);
  return {data, bytes};
}

void ReadMemory::give_back(MutableBytes stretch) {
  const auto begin = static_cast<uint64_t>(stretch.data() - region_);
  const uint64_t end = begin + aligned(stretch.size(), kStretchAlignment);
  assert(end <= size_);
  PACKTRAIN_FORBID_MEMORY(stretch.data(), end - begin);
  in_use_ -= end - begin;
  too_much_ = UINT64_MAX;
  const auto after = std::lower_bound(holes_.begin(), holes_.end(), end,
                                      [](const Hole& hole, uint64_t at) { return hole.begin < at; });
  const bool joins_after = after != holes_.end() && after->begin == end;
  if (after != holes_.begin() && std::prev(after)->end == begin) {
    std::prev(after)->end = joins_after ? after->end : end;
    if (joins_after) holes_.erase(after);
  } else if (joins_after) {
    after->begin = begin;
  } else {
    holes_.insert(after, {begin, end});
  }
}

}  // namespace packtrain
