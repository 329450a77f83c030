#include <algorithm>
#include <vector>

#include "packtrain/storage.h"

namespace packtrain {
namespace {

constexpr uint64_t kReadBytes = uint64_t{8} << 20;

struct MemoryCopy : Mapping {
  Bytes bytes() const override { return data; }
  std::vector<std::byte> data;
};

}  // namespace

Result<std::unique_ptr<Mapping>> Storage::map(std::string_view path) {
  PACKTRAIN_ASSIGN(file, open(path));
  auto copy = std::make_unique<MemoryCopy>();
  copy->data.resize(file->size());
  for (uint64_t at = 0; at < copy->data.size(); at += kReadBytes) {
    const uint64_t piece = std::min<uint64_t>(kReadBytes, copy->data.size() - at);
    PACKTRAIN_TRY(read(*file, at, MutableBytes(copy->data).subspan(at, piece)));
  }
  return std::unique_ptr<Mapping>(std::move(copy));
}

}  // namespace packtrain
