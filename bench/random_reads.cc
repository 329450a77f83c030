// random_reads DATASET READS ROUNDS: whole samples in random order by the index, with and without their
// checks, against a bare pread loop over the same extents. One thread; the contenders take turns in every
// round. Prints one JSON object: seconds of each round.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "packtrain/index.h"

namespace {

using namespace packtrain;

struct Extent {
  uint64_t sample = 0;
  uint32_t shard = 0;
  uint64_t offset = 0, length = 0;  // from the first byte of the sample's first field to the last of its last
};

Result<std::vector<Extent>> choose_extents(const Dataset& dataset, uint64_t reads) {
  std::mt19937_64 random(7);
  std::vector<Extent> extents;
  for (uint64_t i = 0; i < reads; i++) {
    Extent extent{.sample = random() % dataset.samples()};
    uint64_t begin = UINT64_MAX, end = 0;
    for (uint32_t field = 0; field < dataset.manifest().fields.size(); field++) {
      const FieldLocation where = dataset.locate(extent.sample, field);
      if (!where.present) continue;
      if (!where.plain) return Status(Code::invalid, "a bare pread cannot read compressed fields");
      extent.shard = where.shard;
      begin = std::min(begin, where.offset);
      end = std::max(end, where.offset + where.length);
    }
    extent.offset = begin;
    extent.length = end - begin;
    extents.push_back(extent);
  }
  return extents;
}

class BareLoop {
 public:
  Status open(const Dataset& dataset) {
    for (uint32_t shard = 0; shard < dataset.manifest().shards.size(); shard++) {
      handles_.push_back(::open(dataset.shard_path(shard).c_str(), O_RDONLY | O_CLOEXEC));
      if (handles_.back() < 0) return status_from_errno(errno, "cannot open").at(dataset.shard_path(shard));
    }
    return {};
  }
  ~BareLoop() {
    for (const int handle : handles_) close(handle);
  }
  Status read(const Extent& extent) {
    if (buffer_.size() < extent.length) buffer_.resize(extent.length);
    const ssize_t got =
        pread(handles_[extent.shard], buffer_.data(), extent.length, static_cast<off_t>(extent.offset));
    if (got != static_cast<ssize_t>(extent.length)) return Status(Code::io, "pread gave too little");
    return {};
  }

 private:
  std::vector<int> handles_;
  std::vector<std::byte> buffer_;
};

struct Contender {
  std::string name;
  std::function<Status(const Extent&)> read;
  Json seconds = Json::array();
};

Status measure(const std::string& folder, uint64_t reads, uint64_t rounds) {
  PACKTRAIN_ASSIGN(dataset, Dataset::open(posix_storage(), folder));
  PACKTRAIN_ASSIGN(extents, choose_extents(*dataset, reads));
  BareLoop bare;
  PACKTRAIN_TRY(bare.open(*dataset));
  SampleBytes sample;
  std::vector<Contender> contenders(3);
  contenders[0] = {"pread", [&](const Extent& extent) { return bare.read(extent); }};
  contenders[1] = {"unchecked",
                   [&](const Extent& extent) { return dataset->read(extent.sample, sample, false); }};
  contenders[2] = {"checked",
                   [&](const Extent& extent) { return dataset->read(extent.sample, sample, true); }};

  // The round that is not counted brings shards into memory and opens what is opened once.
  for (uint64_t round = 0; round < rounds + 1; round++) {
    for (size_t turn = 0; turn < contenders.size(); turn++) {
      Contender& contender = contenders[(turn + round) % contenders.size()];
      const auto begun = std::chrono::steady_clock::now();
      for (const Extent& extent : extents) PACKTRAIN_TRY(contender.read(extent));
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begun;
      if (round > 0) contender.seconds.push(spent.count());
    }
  }

  uint64_t bytes = 0;
  for (const Extent& extent : extents) bytes += extent.length;
  Json result = Json::object();
  result.set("reads", reads).set("bytes", bytes);
  Json seconds = Json::object();
  for (Contender& contender : contenders) seconds.set(contender.name, std::move(contender.seconds));
  result.set("seconds", std::move(seconds));
  std::puts(result.dump().c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: random_reads DATASET READS ROUNDS\n", stderr);
    return 2;
  }
  const Status status =
      measure(argv[1], std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
  if (!status.ok()) std::fprintf(stderr, "random_reads: %s\n", status.text().c_str());
  return status.ok() ? 0 : 1;
}
