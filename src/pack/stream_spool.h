// StreamSpool: members of compressed archives, decompressed once and then there in any order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pack/plan.h"
#include "pack/written_fields.h"
#include "packtrain/progress.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// What the shards take out of streams: bytes, each member once.
uint64_t stream_bytes(const Plan& plan, const std::vector<uint32_t>& shards, const WrittenFields& fields);

// One temporary object in OUT.part that holds the members one behind the other. It never gets a name of its
// own (it is a part, streams.tmp-TOKEN) and goes with this; one that a killed process has left is removed by
// the next run, which makes its own anew. Tasks that pack together each have theirs, with the members of
// their own shards. Immutable once made; thread-safe. Memory: 32 bytes for each member, and 4 MiB while it is
// made.
class StreamSpool {
 public:
  static Result<std::unique_ptr<StreamSpool>> make(Storage& storage, const Plan& plan,
                                                   const std::vector<uint32_t>& shards,
                                                   const WrittenFields& fields, const std::string& folder,
                                                   const std::string& token, const Progress& progress);
  ~StreamSpool();
  StreamSpool(const StreamSpool&) = delete;
  StreamSpool& operator=(const StreamSpool&) = delete;

  // Bytes of a cell of Origin::stream from `offset` on.
  Status read(const Cell& cell, uint64_t offset, MutableBytes into) const;

 private:
  struct Member {
    uint32_t source = 0;
    uint64_t number = 0;  // in its archive
    uint64_t size = 0, at = 0;
  };
  StreamSpool(Storage& storage, std::vector<Member> members)
      : storage_(storage), members_(std::move(members)) {}
  static std::vector<Member> members_of(const Plan& plan, const std::vector<uint32_t>& shards,
                                        const WrittenFields& fields);
  friend uint64_t stream_bytes(const Plan& plan, const std::vector<uint32_t>& shards,
                               const WrittenFields& fields);
  friend class SpoolFiller;

  Storage& storage_;
  const std::vector<Member> members_;  // by source and number
  std::unique_ptr<Writer> writer_;     // keeps the part
  std::unique_ptr<File> file_;
};

}  // namespace packtrain
