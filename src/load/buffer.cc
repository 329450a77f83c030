#include "load/buffer.h"

#include <sys/mman.h>

namespace packtrain {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t padded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

MutableBytes Buffer::take(size_t bytes) {
  if (bytes > capacity_) {
    // A quarter more than asked for: sizes that vary a little settle after a few batches.
    const size_t wanted = padded(bytes + (capacity_ == 0 ? 0 : bytes / 4));
    data_.reset();
    const bool large = wanted >= 2 * kHugePage;
    const std::align_val_t alignment{large ? kHugePage : kAlignment};
    data_ = {static_cast<std::byte*>(::operator new(wanted, alignment)), FreeAligned{alignment}};
    // Whole huge pages only, so that no more memory is held than was asked for. A refusal costs time alone.
    if (large) (void)madvise(data_.get(), wanted / kHugePage * kHugePage, MADV_HUGEPAGE);
    capacity_ = wanted;
  }
  return {data_.get(), bytes};
}

}  // namespace packtrain
