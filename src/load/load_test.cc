#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "base/hash.h"
#include "pack/test_dataset.h"
#include "packtrain/load.h"

namespace packtrain {
namespace {

constexpr uint64_t kSamples = 300;

class LoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::vector<TestSample>> shards;
    for (uint64_t i = 0; i < 3; ++i) shards.push_back(make_samples(kSamples / 3, 3000, i));
    for (const auto& shard : shards)
      for (const TestSample& sample : shard) bytes_.push_back(sample.fields[1].bytes);
    put_dataset(storage_, "data", shards, {"a", "b", "c"});
    reopen();
  }
  void reopen() {
    auto dataset = Dataset::open(storage_, "data");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    dataset_ = *dataset;
  }
  // Changes a byte of a sample's photo where it lies.
  void damage(uint64_t sample) {
    const FieldLocation location = dataset_->locate(sample, dataset_->manifest().field_id("jpg"));
    const std::string path = dataset_->shard_path(location.shard);
    std::string whole = read_whole(storage_, path).value();
    whole[location.offset] ^= 1;
    ASSERT_TRUE(storage_.remove(path).ok());
    put(storage_, path, whole);
    reopen();
  }
  LoadSpec spec(uint64_t batch = 16) {
    LoadSpec spec;
    spec.parts.resize(1);
    spec.parts[0].dataset = dataset_;
    spec.parts[0].samples = dataset_->samples();
    spec.parts[0].split = "train";
    spec.parts[0].fields = {dataset_->manifest().field_id("jpg")};
    spec.order.global_batch = batch;
    spec.order.seed = 7;
    spec.memory = 256 << 20;
    return spec;
  }
  static std::unique_ptr<Loader> make(LoadSpec spec) {
    auto loader = Loader::make(std::move(spec));
    EXPECT_TRUE(loader.ok()) << loader.status().text();
    return loader.ok() ? std::move(*loader) : nullptr;
  }
  // Every byte of every batch of an epoch, in order.
  static std::string stream(Loader& loader, uint64_t epoch, uint64_t consumed = 0) {
    std::string all;
    EXPECT_TRUE(loader.start(epoch, consumed).ok());
    for (;;) {
      auto batch = loader.next();
      EXPECT_TRUE(batch.ok()) << batch.status().text();
      if (!batch.ok() || !*batch) return all;
      for (size_t i = 0; i < (*batch)->size(); ++i) {
        all += std::to_string((*batch)->indices()[i]) + ":" + std::to_string((*batch)->labels()[i]) + ":";
        all += as_text((*batch)->value(0, i));
      }
    }
  }
  static std::vector<int64_t> indices(Loader& loader, uint64_t epoch, uint64_t consumed = 0) {
    std::vector<int64_t> all;
    EXPECT_TRUE(loader.start(epoch, consumed).ok());
    for (;;) {
      auto batch = loader.next();
      EXPECT_TRUE(batch.ok()) << batch.status().text();
      if (!batch.ok() || !*batch) return all;
      all.insert(all.end(), (*batch)->indices().begin(), (*batch)->indices().end());
    }
  }

  MemoryStorage storage_;
  std::shared_ptr<Dataset> dataset_;
  std::vector<std::string> bytes_;
};

TEST_F(LoadTest, EverySampleComesOnceWithItsOwnBytes) {
  LoadSpec wanted = spec();
  wanted.order.last = LastBatch::keep;
  auto loader = make(wanted);
  ASSERT_TRUE(loader->start(0).ok());
  std::set<int64_t> seen;
  for (;;) {
    auto batch = loader->next();
    ASSERT_TRUE(batch.ok()) << batch.status().text();
    if (!*batch) break;
    for (size_t i = 0; i < (*batch)->size(); ++i) {
      const int64_t index = (*batch)->indices()[i];
      EXPECT_TRUE(seen.insert(index).second);
      EXPECT_EQ(as_text((*batch)->value(0, i)), bytes_[static_cast<size_t>(index)]);
      EXPECT_EQ((*batch)->labels()[i], dataset_->label(static_cast<uint64_t>(index)));
    }
  }
  EXPECT_EQ(seen.size(), kSamples);
}

TEST_F(LoadTest, ThreadsPrefetchAndStorageDoNotChangeTheStream) {
  auto one = make(spec());
  const std::string expected = stream(*one, 3);
  EXPECT_FALSE(expected.empty());
  for (const auto& [threads, prefetch] :
       std::vector<std::pair<uint32_t, uint32_t>>{{16, 1}, {3, 9}, {2, 2}}) {
    LoadSpec other = spec();
    other.threads = threads;
    other.prefetch = prefetch;
    auto loader = make(other);
    EXPECT_EQ(stream(*loader, 3), expected) << threads << " threads";
  }
  EXPECT_NE(stream(*one, 4), expected);
}

TEST_F(LoadTest, SeveralFieldsComeTogether) {
  LoadSpec wanted = spec();
  wanted.parts[0].fields = {dataset_->manifest().field_id("cls"), dataset_->manifest().field_id("jpg")};
  auto loader = make(wanted);
  ASSERT_TRUE(loader->start(0).ok());
  auto batch = loader->next();
  ASSERT_TRUE(batch.ok() && *batch);
  for (size_t i = 0; i < (*batch)->size(); ++i) {
    const auto index = static_cast<size_t>((*batch)->indices()[i]);
    EXPECT_EQ(as_text((*batch)->value(0, i)), std::to_string(dataset_->label(index)));
    EXPECT_EQ(as_text((*batch)->value(1, i)), bytes_[index]);
  }
}

TEST_F(LoadTest, StreamsBringEverySampleOnce) {
  LoadSpec wanted = spec();
  wanted.order.kind = OrderKind::streams;
  wanted.order.chains = 4;
  wanted.order.piece_bytes = 16 << 10;
  wanted.order.last = LastBatch::keep;
  auto loader = make(wanted);
  ASSERT_NE(loader, nullptr);
  for (uint64_t epoch : {0, 1}) {
    std::vector<int64_t> all = indices(*loader, epoch);
    std::sort(all.begin(), all.end());
    std::vector<int64_t> expected(kSamples);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

// An index need not list samples in the order in which they lie; then a piece has no stretch of its own.
TEST_F(LoadTest, StreamsOfRowsOutOfOrderBringTheirOwnBytes) {
  constexpr uint64_t kCount = 40, kBytes = 1000;
  std::string shard;
  for (uint64_t i = 0; i < kCount; ++i) shard.append(kBytes, static_cast<char>('A' + i));
  put(storage_, "odd/x.tar", shard);
  IndexBuilder builder;
  const uint32_t number = builder.add_shard({.path = "x.tar", .format = "webdataset", .bytes = shard.size()});
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t at = i * 7 % kCount;
    builder.begin_sample("s" + std::to_string(i));
    builder.add_field("bin", number, at * kBytes, kBytes, CheckKind::none, 0, "");
    ASSERT_TRUE(builder.end_sample().ok());
  }
  put_index(storage_, "odd", builder);
  auto dataset = Dataset::open(storage_, "odd");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  LoadSpec wanted = spec(8);
  wanted.parts[0].dataset = *dataset;
  wanted.parts[0].samples = kCount;
  wanted.parts[0].fields = {0};
  wanted.order.kind = OrderKind::streams;
  wanted.order.chains = 1;
  wanted.order.piece_bytes = 8 << 10;
  auto loader = make(wanted);
  ASSERT_TRUE(loader->start(0).ok());
  size_t seen = 0;
  for (;;) {
    auto batch = loader->next();
    ASSERT_TRUE(batch.ok()) << batch.status().text();
    if (!*batch) break;
    for (size_t i = 0; i < (*batch)->size(); ++i, ++seen) {
      const auto at = static_cast<uint64_t>((*batch)->indices()[i]) * 7 % kCount;
      EXPECT_EQ(as_text((*batch)->value(0, i)), shard.substr(at * kBytes, kBytes));
    }
  }
  EXPECT_EQ(seen, kCount);
}

TEST_F(LoadTest, TheWindowOfStreamsCountsAsMemory) {
  LoadSpec wanted = spec();
  wanted.order.kind = OrderKind::streams;
  wanted.order.chains = 4;
  wanted.order.piece_bytes = 8 << 10;
  wanted.order.window_bytes = 32 << 10;
  wanted.prefetch = 1;
  wanted.memory = 512 << 10;  // three batches of 16 samples of at most 3 kB
  EXPECT_TRUE(Loader::make(wanted).ok());
  wanted.order.window_bytes = uint64_t{1} << 40;  // all of the set, half a megabyte
  EXPECT_EQ(Loader::make(wanted).status().code(), Code::no_room);
}

TEST_F(LoadTest, GoesOnFromAnyStep) {
  LoadSpec wanted = spec();
  wanted.order.last = LastBatch::keep;
  auto loader = make(wanted);
  const std::vector<int64_t> whole = indices(*loader, 2);
  for (const uint64_t consumed : {16U, 64U, 160U}) {
    const std::vector<int64_t> rest = indices(*loader, 2, consumed);
    EXPECT_TRUE(
        std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<ptrdiff_t>(consumed), whole.end()));
  }
}

TEST_F(LoadTest, TheNextEpochIsThereAlready) {
  auto loader = make(spec());
  uint64_t delivered = 0;
  for (const int64_t index : indices(*loader, 0)) delivered += bytes_[static_cast<size_t>(index)].size();
  for (int i = 0; i < 100 && loader->report().bytes <= delivered; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GT(loader->report().bytes, delivered);
  EXPECT_EQ(indices(*loader, 1).size(), kSamples / 16 * 16);
}

// Without shuffling every way through the set is the same epoch.
TEST_F(LoadTest, TheSameEpochAgainIsThereAlready) {
  LoadSpec wanted = spec();
  wanted.order.kind = OrderKind::source;
  auto loader = make(wanted);
  const auto whole_epoch = [&](uint64_t epoch, uint64_t consumed, uint64_t then) {
    uint64_t delivered = 0;
    EXPECT_TRUE(loader->start(epoch, consumed, then).ok());
    for (uint64_t step = consumed / 16;; ++step) {
      auto batch = loader->next();
      EXPECT_TRUE(batch.ok());
      if (!*batch) return delivered;
      EXPECT_EQ((*batch)->epoch(), epoch);
      EXPECT_EQ((*batch)->indices()[0], static_cast<int64_t>(step * 16));
      for (const int64_t index : (*batch)->indices()) delivered += bytes_[static_cast<size_t>(index)].size();
    }
  };
  uint64_t delivered = whole_epoch(3, 32, 0);  // as a state says
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 100 && loader->report().bytes <= delivered; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const uint64_t read = loader->report().bytes;
    EXPECT_GT(read, delivered);
    delivered += whole_epoch(0, 0, 0);
  }
  // Nothing was read twice: no engine was thrown away with what it had read.
  EXPECT_LE(loader->report().bytes, delivered + 20 * 16 * 3000);
  EXPECT_GT(whole_epoch(5, 0, 5), 0u);  // another one: what was read ahead is dropped
}

TEST_F(LoadTest, WhatIsNotUsedIsGivenBackWhenItStops) {
  auto loader = make(spec());
  ASSERT_TRUE(loader->start(0).ok());
  BatchPtr kept = std::move(*loader->next());
  { auto dropped = loader->next(); }
  EXPECT_GT(loader->report().memory, 0u);
  loader->stop();
  const uint64_t of_one = loader->report().memory;
  EXPECT_GT(of_one, 0u);
  EXPECT_LT(of_one, 16u * 3000 * 2);
  EXPECT_EQ(as_text(kept->value(0, 0)), bytes_[static_cast<size_t>(kept->indices()[0])]);
  kept = nullptr;  // after the stop
  EXPECT_EQ(loader->report().memory, 0u);
  EXPECT_EQ(indices(*loader, 1).size(), kSamples / 16 * 16);  // and begins anew
}

TEST_F(LoadTest, ABadSampleIsRaisedWithItsName) {
  damage(37);
  auto loader = make(spec());
  ASSERT_TRUE(loader->start(0).ok());
  int failures = 0, batches = 0;
  for (;;) {
    auto batch = loader->next();
    if (batch.ok() && !*batch) break;
    if (batch.ok()) {
      ++batches;
      continue;
    }
    ++failures;
    EXPECT_EQ(batch.status().code(), Code::corrupt);
    EXPECT_NE(batch.status().text().find("sample 37 ("), std::string::npos) << batch.status().text();
  }
  // The stream goes on behind it.
  EXPECT_LE(failures, 1);
  EXPECT_EQ(failures + batches, static_cast<int>(kSamples / 16));
}

TEST_F(LoadTest, ABadSampleIsSkippedOrReplaced) {
  damage(37);
  LoadSpec wanted = spec(20);
  wanted.on_error = OnError::skip;
  auto skipping = make(wanted);
  std::vector<int64_t> all = indices(*skipping, 0);
  EXPECT_EQ(all.size(), kSamples - 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), 37), 0);
  EXPECT_EQ(skipping->report().errors, 1U);
  EXPECT_EQ(skipping->report().bad.at(0).index, 37U);

  wanted.on_error = OnError::replace;
  auto replacing = make(wanted);
  std::vector<std::vector<int64_t>> runs;
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(replacing->start(0).ok());
    runs.emplace_back();
    int replaced = 0;
    for (;;) {
      auto batch = replacing->next();
      ASSERT_TRUE(batch.ok()) << batch.status().text();
      if (!*batch) break;
      for (size_t i = 0; i < (*batch)->size(); ++i) {
        const auto index = (*batch)->indices()[i];
        runs.back().push_back(index);
        replaced += (*batch)->replaced()[i];
        EXPECT_EQ(as_text((*batch)->value(0, i)), bytes_[static_cast<size_t>(index)]);
      }
    }
    EXPECT_EQ(replaced, 1);
    EXPECT_EQ(runs.back().size(), kSamples);
  }
  EXPECT_EQ(runs[0], runs[1]);

  wanted.on_error = OnError::skip;
  wanted.max_errors = 0;
  auto strict = make(wanted);
  ASSERT_TRUE(strict->start(0).ok());
  bool refused = false;
  for (;;) {
    auto batch = strict->next();
    if (batch.ok() && !*batch) break;
    if (!batch.ok()) refused = batch.status().text().find("max_errors") != std::string::npos;
  }
  EXPECT_TRUE(refused);
}

TEST_F(LoadTest, BatchesLiveLongerThanTheLoader) {
  auto loader = make(spec());
  ASSERT_TRUE(loader->start(0).ok());
  std::vector<BatchPtr> kept;
  for (int i = 0; i < 5; ++i) kept.push_back(std::move(*loader->next()));
  loader = nullptr;
  for (const BatchPtr& batch : kept) {
    for (size_t i = 0; i < batch->size(); ++i)
      EXPECT_EQ(as_text(batch->value(0, i)), bytes_[static_cast<size_t>(batch->indices()[i])]);
  }
}

TEST_F(LoadTest, KeepingTooManyBatchesIsAClearError) {
  LoadSpec wanted = spec(100);
  wanted.prefetch = 1;
  wanted.memory = 65 << 20;
  auto loader = make(wanted);
  ASSERT_NE(loader, nullptr);
  std::vector<BatchPtr> kept;
  Status failure;
  for (uint64_t epoch = 0; epoch < 1000 && failure.ok(); ++epoch) {
    ASSERT_TRUE(loader->start(epoch).ok());
    for (;;) {
      auto batch = loader->next();
      if (!batch.ok()) {
        failure = batch.status();
        break;
      }
      if (!*batch) break;
      kept.push_back(std::move(*batch));
    }
  }
  EXPECT_EQ(failure.code(), Code::no_room);
  EXPECT_NE(failure.message().find("memory="), std::string::npos);
  kept.clear();
  auto again = loader->next();  // what was given back is used again
  EXPECT_TRUE(again.ok()) << again.status().text();
  for (uint64_t epoch = 0; epoch < 3; ++epoch) indices(*loader, epoch);
  EXPECT_LE(loader->report().memory, wanted.memory);
}

TEST_F(LoadTest, TooLittleMemoryIsRefusedAtOnce) {
  LoadSpec wanted = spec(100);
  wanted.memory = 1 << 20;
  const auto loader = Loader::make(wanted);
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.status().code(), Code::no_room);
}

TEST_F(LoadTest, AmountsThatMustBeASlipAreRefusedAtOnce) {
  LoadSpec wanted = spec();
  for (const uint32_t threads : {200'000u, 1u << 31, UINT32_MAX}) {
    wanted.threads = threads;
    const auto refused = Loader::make(wanted);
    EXPECT_EQ(refused.status().code(), Code::invalid);
    EXPECT_NE(refused.status().message().find("threads="), std::string::npos);
  }
  wanted.threads = 1;
  wanted.prefetch = UINT32_MAX;
  EXPECT_EQ(Loader::make(wanted).status().code(), Code::invalid);
}

TEST_F(LoadTest, StopsAtAnyMoment) {
  for (int i = 0; i < 50; ++i) {
    auto loader = make(spec());
    ASSERT_TRUE(loader->start(static_cast<uint64_t>(i)).ok());
    for (int taken = 0; taken < i % 4; ++taken) ASSERT_TRUE(loader->next().ok());
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i * 50));
  }
}

TEST_F(LoadTest, TwoLoadersSideBySide) {
  auto a = make(spec()), b = make(spec());
  ASSERT_TRUE(a->start(0).ok());
  ASSERT_TRUE(b->start(0).ok());
  for (;;) {
    auto x = a->next(), y = b->next();
    ASSERT_TRUE(x.ok() && y.ok());
    ASSERT_EQ(*x == nullptr, *y == nullptr);
    if (!*x) break;
    EXPECT_TRUE(std::equal((*x)->indices().begin(), (*x)->indices().end(), (*y)->indices().begin()));
  }
}

TEST_F(LoadTest, RanksShareTheEpoch) {
  std::vector<int64_t> all;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    LoadSpec wanted = spec(20);
    wanted.order.world = 4;
    wanted.rank = rank;
    auto loader = make(wanted);
    const std::vector<int64_t> own = indices(*loader, 1);
    EXPECT_EQ(own.size(), kSamples / 4);
    all.insert(all.end(), own.begin(), own.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()) - all.begin(), static_cast<ptrdiff_t>(kSamples));
}

TEST_F(LoadTest, OnlyTheIndicesAskedFor) {
  LoadSpec wanted = spec(5);
  const std::vector<uint64_t> chosen = {5, 250, 17, 99, 3, 8, 100, 200, 1, 2}, beyond = {3, kSamples, 7};
  wanted.parts[0].selection = Selection::make(chosen);
  auto loader = make(wanted);
  std::vector<int64_t> all = indices(*loader, 0);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<int64_t>{1, 2, 3, 5, 8, 17, 99, 100, 200, 250}));
  wanted.parts[0].selection = Selection::make(beyond);
  EXPECT_EQ(Loader::make(wanted).status().code(), Code::invalid);
}

TEST_F(LoadTest, NothingToLoad) {
  LoadSpec wanted = spec(kSamples + 1);
  auto loader = make(wanted);
  ASSERT_TRUE(loader->start(0).ok());
  EXPECT_EQ(loader->steps(), 0U);
  auto batch = loader->next();
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(*batch, nullptr);
}

// One read in fifty comes very late.
class SometimesSlow : public StorageWrapper {
 public:
  explicit SometimesSlow(Storage& inner) : StorageWrapper(inner) {}

 protected:
  Clock::time_point ready_at(uint64_t) override {
    return Clock::now() + std::chrono::milliseconds(++reads_ % 50 == 0 ? 20 : 0);
  }

 private:
  std::atomic<uint64_t> reads_ = 0;
};

TEST_F(LoadTest, SlowReadsDoNotChangeTheOrder) {
  auto quick = make(spec());
  const std::string expected = stream(*quick, 5);
  SometimesSlow slow(storage_);
  auto dataset = Dataset::open(slow, "data");
  ASSERT_TRUE(dataset.ok());
  LoadSpec wanted = spec();
  wanted.parts[0].dataset = *dataset;
  auto loader = make(wanted);
  EXPECT_EQ(stream(*loader, 5), expected);
}

TEST_F(LoadTest, AReadThatFailsOnceIsTriedAgain) {
  Faults faults;
  faults.fail_read = 40;
  faults.on = [](std::string_view path) { return path.ends_with(".tar"); };
  FaultyStorage faulty(storage_, faults);
  auto dataset = Dataset::open(faulty, "data");
  ASSERT_TRUE(dataset.ok());
  LoadSpec wanted = spec();
  wanted.parts[0].dataset = *dataset;
  auto loader = make(wanted);
  auto sound = make(spec());
  EXPECT_EQ(stream(*loader, 0), stream(*sound, 0));
  EXPECT_EQ(faulty.failures(), 1U);
}

TEST_F(LoadTest, ALackOfDescriptorsIsAnErrorAndNoBadSample) {
  for (const OnError on_error : {OnError::skip, OnError::replace}) {
    Faults faults;
    faults.fail_open = 2;
    faults.code = Code::limit;
    faults.on = [](std::string_view path) { return path.ends_with(".tar"); };
    faults.from_then_on = true;
    FaultyStorage lacking(storage_, faults);
    auto dataset = Dataset::open(lacking, "data");
    ASSERT_TRUE(dataset.ok());
    LoadSpec wanted = spec();
    wanted.parts[0].dataset = *dataset;
    wanted.on_error = on_error;
    auto loader = make(wanted);
    ASSERT_TRUE(loader->start(0).ok());
    int failures = 0;
    for (;;) {
      auto batch = loader->next();
      if (batch.ok() && !*batch) break;
      if (batch.ok()) {
        EXPECT_EQ((*batch)->size(), wanted.order.global_batch);
        continue;
      }
      ++failures;
      EXPECT_EQ(batch.status().code(), Code::limit) << batch.status().text();
    }
    EXPECT_GT(failures, 0);
    EXPECT_EQ(loader->report().errors, 0u);
  }
}

TEST_F(LoadTest, AfterForkItIsAnError) {
  auto loader = make(spec());
  ASSERT_TRUE(loader->start(0).ok());
  ASSERT_TRUE(loader->next().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto batch = loader->next();
    ::_exit(!batch.ok() && batch.status().code() == Code::invalid ? 0 : 1);
  }
  int result = 0;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace packtrain
