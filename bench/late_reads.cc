// Whether a few late reads hold up the batches.
//
// `late_reads DATASET FIELD ROUNDS` loads the dataset's photos (random crops of 224 px, batches of 64, every
// default) epoch after epoch, in turns from a storage whose reads take half a millisecond each, and from one
// where, on top of that, one read in a hundred takes a hundred times as long. Prints one JSON object: the
// seconds of the epochs of both, and whether both delivered the same samples in the same order.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/test_storage.h"
#include "packtrain/load.h"

namespace {

using namespace packtrain;

constexpr std::chrono::microseconds kRead{500};
constexpr uint64_t kOneIn = 100, kTimes = 100;

class LateStorage : public StorageWrapper {
 public:
  LateStorage(Storage& inner, bool some_late) : StorageWrapper(inner), some_late_(some_late) {}

 protected:
  Clock::time_point ready_at(uint64_t /*bytes*/) override {
    // Every hundredth read, so that every run has as many; which samples that hits changes with the order.
    const bool late = some_late_ && reads_.fetch_add(1) % kOneIn == 0;
    return Clock::now() + (late ? kTimes : 1) * kRead;
  }

 private:
  const bool some_late_;
  std::atomic<uint64_t> reads_ = 0;
};

[[noreturn]] void fail(const Status& status) {
  std::fprintf(stderr, "late_reads: %s\n", status.text().c_str());
  std::exit(1);
}

template <class T>
T take(Result<T> result) {
  if (!result.ok()) fail(result.status());
  return std::move(*result);
}

// One dataset, loaded from one storage, epoch after epoch.
class Run {
 public:
  Run(bool some_late, const char* path, const char* field) : storage_(posix_storage(), some_late) {
    LoadSpec spec;
    LoadPart part;
    part.dataset = take(Dataset::open(storage_, path));
    part.samples = part.dataset->samples();
    part.image_fields = {part.dataset->manifest().field_id(field)};
    if (part.image_fields.front() >= part.dataset->manifest().fields.size())
      fail(Status(Code::invalid, "the dataset has no field '" + std::string(field) + "'"));
    spec.parts.push_back(std::move(part));
    spec.image = ImageSpec{.flip = 0.5, .type = PixelType::float32};
    spec.order.global_batch = 64;
    loader_ = take(Loader::make(std::move(spec)));
  }
  double epoch(uint64_t number) {
    const auto begun = std::chrono::steady_clock::now();
    if (Status status = loader_->start(number); !status.ok()) fail(status);
    for (;;) {
      const BatchPtr batch = take(loader_->next());
      if (!batch) break;
      for (const int64_t index : batch->indices()) order.push_back(index);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }
  std::vector<int64_t> order;

 private:
  LateStorage storage_;
  std::unique_ptr<Loader> loader_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "late_reads DATASET FIELD ROUNDS\n");
    return 2;
  }
  Run even(false, argv[1], argv[2]), late(true, argv[1], argv[2]);
  Json seconds_even = Json::array(), seconds_late = Json::array();
  const uint64_t rounds = std::strtoull(argv[3], nullptr, 10);
  for (uint64_t round = 0; round <= rounds; ++round) {
    const double first = even.epoch(round), second = late.epoch(round);
    if (round == 0) continue;  // memory is touched for the first time
    seconds_even.push(first);
    seconds_late.push(second);
  }
  Json result = Json::object();
  result.append("even", std::move(seconds_even)).append("late", std::move(seconds_late));
  result.append("same_order", even.order == late.order);
  std::printf("%s\n", result.dump().c_str());
  return 0;
}
