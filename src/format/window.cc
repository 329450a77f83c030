#include "format/window.h"

#include <algorithm>
#include <string>

namespace packtrain {
namespace {

constexpr size_t kSmallWindow = size_t{4} << 10;
constexpr size_t kFirstWindow = size_t{64} << 10;
constexpr size_t kLargeWindow = size_t{4} << 20;
// How fast a read goes on once it has begun, at a guess that is fair to disks and networks alike.
constexpr double kBytesPerSecond = 1e9;
// In a run of large windows one is kept small now and then, so that the cost of a read stays known.
constexpr uint64_t kMeasureEvery = 16;

}  // namespace

size_t Window::next_size(uint64_t offset) {
  if (wanted_ == 0) return wanted_ = kFirstWindow;
  bool forward = offset >= start_ + held_;
  auto gap = static_cast<double>(forward ? offset - (start_ + held_) : 0);
  bool read_through = gap <= read_seconds_ * kBytesPerSecond + kSmallWindow;
  wanted_ = read_through ? std::min(wanted_ * 2, kLargeWindow) : std::max(wanted_ / 4, kSmallWindow);
  return loads_ % kMeasureEvery == 0 ? std::min(wanted_, kFirstWindow) : wanted_;
}

Result<Bytes> Window::load(uint64_t offset, size_t bytes) {
  if (offset > size_ || size_ - offset < bytes) {
    return Status(Code::corrupt, "file ends at byte " + std::to_string(size_));
  }
  size_t take = std::max(next_size(offset), bytes);
  take = static_cast<size_t>(std::min<uint64_t>(take, size_ - offset));
  if (buffer_.size() < take) buffer_.resize(take);
  held_ = 0;
  auto begin = std::chrono::steady_clock::now();
  PACKTRAIN_TRY(storage_.read(file_, offset, MutableBytes(buffer_).first(take)));
  ++loads_;
  if (take <= kFirstWindow) {
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    // The cheapest of late: a busy machine delays reads now and then, storage with a latency delays all.
    read_seconds_ = read_seconds_ < 0 ? seconds : std::min(seconds, read_seconds_ * 1.25);
  }
  start_ = offset;
  held_ = take;
  return Bytes(buffer_).first(bytes);
}

}  // namespace packtrain
