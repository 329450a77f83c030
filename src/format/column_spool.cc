#include "format/column_spool.h"

#include <algorithm>
#include <utility>

namespace packtrain {
namespace {

constexpr uint64_t kReadBytes = uint64_t{4} << 20;

}  // namespace

ColumnSpool::ColumnSpool(Storage& storage, std::string_view path, const WriteOptions& options, size_t columns,
                         uint64_t memory_bytes)
    : storage_(storage),
      path_(std::string(path) + ".columns"),
      options_(options),
      memory_bytes_(memory_bytes),
      columns_(columns) {
  options_.resume = false;
  options_.durable = false;
}

ColumnSpool::~ColumnSpool() {
  if (writer_ != nullptr) writer_->discard();
}

Status ColumnSpool::append(size_t column, Bytes data) {
  if (held_ + data.size() > memory_bytes_) PACKTRAIN_TRY(put_out());
  Column& mine = columns_[column];
  mine.newest.insert(mine.newest.end(), data.begin(), data.end());
  mine.bytes += data.size();
  held_ += data.size();
  return {};
}

Status ColumnSpool::put_out() {
  const uint64_t end = written_ + held_;
  if (end > size_) {
    size_ = std::max(end, 2 * size_);
    if (writer_ == nullptr) {
      PACKTRAIN_ASSIGN(writer, storage_.create(path_, size_, options_));
      writer_ = std::move(writer);
    } else {
      PACKTRAIN_TRY(writer_->resize(size_));
    }
  }
  for (Column& column : columns_) {
    if (column.newest.empty()) continue;
    PACKTRAIN_TRY(writer_->write_at(written_, column.newest));
    column.pieces.push_back({written_, column.newest.size()});
    written_ += column.newest.size();
    column.newest.clear();
  }
  held_ = 0;
  return {};
}

Status ColumnSpool::take(size_t column, const std::function<Status(Bytes)>& each) {
  Column mine = std::exchange(columns_[column], {});
  held_ -= mine.newest.size();
  if (!mine.pieces.empty()) {
    PACKTRAIN_ASSIGN(file, storage_.open(path_ + ".tmp-" + options_.token));
    std::vector<std::byte> buffer;
    for (const Piece& piece : mine.pieces) {
      for (uint64_t at = 0; at < piece.length; at += kReadBytes) {
        buffer.resize(std::min(kReadBytes, piece.length - at));
        PACKTRAIN_TRY(storage_.read(*file, piece.offset + at, buffer));
        PACKTRAIN_TRY(each(buffer));
      }
    }
  }
  for (uint64_t at = 0; at < mine.newest.size(); at += kReadBytes)
    PACKTRAIN_TRY(
        each(Bytes(mine.newest).subspan(at, std::min<uint64_t>(kReadBytes, mine.newest.size() - at))));
  return {};
}

}  // namespace packtrain
