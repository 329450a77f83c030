#include <sys/mman.h>
#include <sys/vfs.h>

#include "io/mounts.h"
#include "io/posix_file.h"
#include "io/posix_mapping.h"

namespace packtrain {
namespace {

class FileMapping final : public Mapping {
 public:
  FileMapping(void* address, size_t size) : address_(address), size_(size) {}
  ~FileMapping() override { ::munmap(address_, size_); }
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;
  Bytes bytes() const override { return {static_cast<const std::byte*>(address_), size_}; }

 private:
  void* const address_;
  const size_t size_;
};

}  // namespace

std::unique_ptr<Mapping> map_if_local(const PosixFile& file) {
  struct statfs found;
  if (file.size() == 0 || ::fstatfs(file.descriptor(), &found) != 0) return nullptr;
  const PlaceKind kind = filesystem_kind(static_cast<uint32_t>(found.f_type), "");
  if (kind != PlaceKind::local && kind != PlaceKind::memory) return nullptr;
  void* address = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (address == MAP_FAILED) return nullptr;
  return std::make_unique<FileMapping>(address, file.size());
}

}  // namespace packtrain
