// Any bytes as a tar, a tar.gz or a tar.zst: an error or members that lie within the archive.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "io/test_storage.h"
#include "pack/archive_stream.h"

using namespace packtrain;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  MemoryStorage storage;
  put(storage, "archive", {reinterpret_cast<const char*>(data), size});
  auto archive = ArchiveStream::open(storage, "archive");
  if (!archive.ok()) return 0;
  std::vector<std::byte> head;
  ArchiveStream::Member member;
  for (uint64_t count = 0;; ++count) {
    const auto more = (*archive)->next(member);
    if (!more.ok() || !*more) return 0;
    if (member.number != count) std::abort();
    head.resize(member.size < 64 ? static_cast<size_t>(member.size) : 64);
    if (!(*archive)->read(head).ok()) return 0;
  }
}
