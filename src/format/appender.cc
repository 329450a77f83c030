#include "format/appender.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace packtrain {
namespace {

constexpr size_t kBufferBytes = size_t{4} << 20;

}  // namespace

Appender::Appender(std::unique_ptr<Writer> writer, uint64_t size, uint64_t start)
    : writer_(std::move(writer)), size_(size), written_(start) {
  buffer_.reserve(kBufferBytes);
}

Appender::~Appender() {
  if (!committed_) writer_->discard();
}

Status Appender::append(Bytes data) {
  if (buffer_.size() + data.size() > kBufferBytes) PACKTRAIN_TRY(flush());
  if (data.size() >= kBufferBytes) return write(data);
  buffer_.insert(buffer_.end(), data.begin(), data.end());
  return {};
}

Status Appender::append_zeros(uint64_t bytes) {
  static constexpr std::byte kZeros[4096] = {};
  while (bytes > 0) {
    const auto some = static_cast<size_t>(std::min<uint64_t>(bytes, sizeof kZeros));
    PACKTRAIN_TRY(append(Bytes(kZeros).first(some)));
    bytes -= some;
  }
  return {};
}

Status Appender::settle() {
  PACKTRAIN_TRY(flush());
  if (written_ == size_) return {};
  size_ = written_;
  return writer_->resize(size_);
}

Status Appender::overwrite(uint64_t offset, Bytes data) {
  if (offset >= written_) {
    std::memcpy(buffer_.data() + (offset - written_), data.data(), data.size());
    return {};
  }
  if (offset + data.size() > written_) PACKTRAIN_TRY(flush());
  return writer_->write_at(offset, data);
}

Status Appender::commit() {
  PACKTRAIN_TRY(writer_->commit());
  committed_ = true;
  return {};
}

Status Appender::flush() {
  PACKTRAIN_TRY(write(buffer_));
  buffer_.clear();
  return {};
}

Status Appender::write(Bytes data) {
  const uint64_t end = written_ + data.size();
  if (end > size_) {
    size_ = std::max(end, size_ + size_ / 4);
    PACKTRAIN_TRY(writer_->resize(size_));
  }
  PACKTRAIN_TRY(writer_->write_at(written_, data));
  written_ = end;
  return {};
}

}  // namespace packtrain
