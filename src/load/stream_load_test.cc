// Loading in the order `streams`: pieces are read once, and held within memory=, from wherever a run goes on.
#include <gtest/gtest.h>

#include <algorithm>

#include "pack/test_dataset.h"
#include "packtrain/load.h"

namespace packtrain {
namespace {

class StreamLoadTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kStreamSamples = 1200, kPieceBytes = 64 << 10;

  void SetUp() override {
    std::vector<std::vector<TestSample>> shards;
    for (uint64_t i = 0; i < 4; ++i) shards.push_back(make_samples(kStreamSamples / 4, 20'000, i));
    put_dataset(storage_, "data", shards, {"a", "b", "c"});
    auto dataset = Dataset::open(counting_, "data");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    dataset_ = *dataset;
    for (const ShardSpec& shard : dataset_->manifest().shards) bytes_ += shard.bytes;
  }

  // Windows of 16 pieces over all chains.
  LoadSpec spec(uint32_t chains, uint32_t world = 1, uint32_t rank = 0) {
    LoadSpec spec;
    spec.parts.resize(1);
    spec.parts[0].dataset = dataset_;
    spec.parts[0].samples = kStreamSamples;
    spec.parts[0].fields = {dataset_->manifest().field_id("jpg")};
    spec.order.kind = OrderKind::streams;
    spec.order.chains = chains;
    spec.order.piece_bytes = kPieceBytes;
    spec.order.window_bytes = 16 * kPieceBytes;
    spec.order.global_batch = uint64_t{8} * world;
    spec.order.world = world;
    spec.order.last = LastBatch::keep;
    spec.rank = rank;
    spec.prefetch = 2;
    spec.memory = uint64_t{5} << 20;
    return spec;
  }
  static std::unique_ptr<Loader> make(LoadSpec wanted) {
    auto loader = Loader::make(std::move(wanted));
    EXPECT_TRUE(loader.ok()) << loader.status().text();
    return loader.ok() ? std::move(*loader) : nullptr;
  }
  // The rest of an epoch. What is held is looked at with every batch.
  std::vector<int64_t> rest_of(Loader& loader, uint64_t epoch, uint64_t consumed) {
    std::vector<int64_t> all;
    EXPECT_TRUE(loader.start(epoch, consumed).ok());
    for (;;) {
      auto batch = loader.next();
      EXPECT_TRUE(batch.ok()) << batch.status().text();
      EXPECT_LE(loader.report().memory, loader.spec().memory);
      if (!batch.ok() || !*batch) return all;
      all.insert(all.end(), (*batch)->indices().begin(), (*batch)->indices().end());
    }
  }

  MemoryStorage storage_;
  CountingStorage counting_{storage_};
  std::shared_ptr<Dataset> dataset_;
  uint64_t bytes_ = 0;
};

TEST_F(StreamLoadTest, EachPieceIsReadOnceInAnEpoch) {
  for (const uint32_t chains : {1u, 8u}) {
    auto loader = make(spec(chains));
    ASSERT_NE(loader, nullptr);
    const uint64_t before = counting_.calls(Call::read);
    constexpr uint64_t kEpochs = 5;
    for (uint64_t epoch = 0; epoch < kEpochs; ++epoch)
      EXPECT_EQ(rest_of(*loader, epoch, 0).size(), kStreamSamples);
    // The beginning of the next epoch is read ahead.
    EXPECT_LE(loader->report().bytes, kEpochs * bytes_ + loader->spec().memory);
    EXPECT_GE(loader->report().bytes, kEpochs * bytes_ * 9 / 10);  // without heads of members
    const uint64_t reads = counting_.calls(Call::read) - before;
    EXPECT_LE(reads, (kEpochs * bytes_ + loader->spec().memory) / kPieceBytes * 3 / 2);
  }
}

TEST_F(StreamLoadTest, AResumedEpochReadsAndHoldsNoMoreThanItsRest) {
  for (const uint32_t chains : {1u, 8u}) {
    auto loader = make(spec(chains));
    ASSERT_NE(loader, nullptr);
    const std::vector<int64_t> whole = rest_of(*loader, 0, 0);
    for (const uint64_t consumed : {8u, 40u, 104u, 200u, 400u, 600u, 1000u, 1184u}) {
      const uint64_t before = counting_.calls(Call::read);
      const auto rest = rest_of(*loader, 0, consumed);
      ASSERT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<ptrdiff_t>(consumed),
                             whole.end()));
      // Samples by themselves would be six times as many reads as pieces.
      const uint64_t left = bytes_ * (kStreamSamples - consumed) / kStreamSamples;
      EXPECT_LE(counting_.calls(Call::read) - before,
                (left + spec(chains).order.window_bytes + loader->spec().memory) / kPieceBytes * 3 / 2)
          << consumed;
    }
  }
}

// A rank of many has a chain to itself: nothing evens out the ends of its windows.
TEST_F(StreamLoadTest, ARankWithOneChainReadsItsPiecesOnce) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    LoadSpec wanted = spec(2, 2, rank);
    auto loader = make(wanted);
    ASSERT_NE(loader, nullptr);
    const uint64_t before = counting_.calls(Call::read);
    for (uint64_t epoch = 0; epoch < 5; ++epoch)
      EXPECT_EQ(rest_of(*loader, epoch, 0).size(), kStreamSamples / 2);
    EXPECT_LE(counting_.calls(Call::read) - before,
              (5 * bytes_ / 2 + loader->spec().memory) / kPieceBytes * 3 / 2);
  }
}

// Notes where every read lies.
class ReadMap : public StorageWrapper {
 public:
  using StorageWrapper::StorageWrapper;

  // How often each byte of a shard was read.
  std::vector<uint32_t> reads_of(const std::string& name, uint64_t bytes) const {
    Lock lock(mutex_);
    std::vector<uint32_t> counts(bytes);
    for (const auto& [path, offset, length] : reads_) {
      if (!path.ends_with(name)) continue;
      for (uint64_t i = offset; i < std::min(offset + length, bytes); ++i) ++counts[i];
    }
    return counts;
  }
  // How many bytes each read of a shard asked for, in their order.
  std::vector<uint64_t> sizes() const {
    Lock lock(mutex_);
    std::vector<uint64_t> sizes;
    for (const auto& read : reads_)
      if (read.path.ends_with(".tar")) sizes.push_back(read.length);
    return sizes;
  }
  void reset() {
    Lock lock(mutex_);
    reads_.clear();
  }

 protected:
  Status before_read(std::string_view path, uint64_t offset, uint64_t bytes) override {
    Lock lock(mutex_);
    reads_.push_back({std::string(path), offset, bytes});
    return {};
  }

 private:
  struct NotedRead {
    std::string path;
    uint64_t offset, length;
  };
  mutable Mutex mutex_;
  std::vector<NotedRead> reads_ GUARDED_BY(mutex_);
};

// Over all ranks together, not only on each of them.
TEST_F(StreamLoadTest, EveryByteIsReadOnceInAnEpochOverAllRanks) {
  ReadMap map(storage_);
  auto mapped = Dataset::open(map, "data");
  ASSERT_TRUE(mapped.ok()) << mapped.status().text();
  constexpr uint32_t kChains = 24, kEpochs = 3;
  const uint32_t jpg = (*mapped)->manifest().field_id("jpg");
  for (const uint32_t world : {1u, 2u, 3u, 4u, 8u}) {
    map.reset();
    uint64_t delivered = 0;
    for (uint32_t rank = 0; rank < world; ++rank) {
      LoadSpec wanted = spec(kChains, world, rank);
      wanted.parts[0].dataset = *mapped;
      auto loader = make(wanted);
      ASSERT_NE(loader, nullptr);
      for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) delivered += rest_of(*loader, epoch, 0).size();
    }
    EXPECT_EQ(delivered, kEpochs * kStreamSamples);
    std::vector<std::vector<uint32_t>> counts;
    for (const ShardSpec& shard : (*mapped)->manifest().shards)
      counts.push_back(map.reads_of(shard.path, shard.bytes));
    for (uint64_t sample = 0; sample < kStreamSamples; ++sample) {
      const FieldLocation field = (*mapped)->locate(sample, jpg);
      for (const uint64_t at : {field.offset, field.offset + field.length - 1}) {
        const uint32_t reads = counts[field.shard][at];
        ASSERT_GE(reads, kEpochs) << "sample " << sample << ", " << world << " ranks";
        ASSERT_LE(reads, kEpochs + 1)  // the beginning of the next epoch is read ahead
            << "sample " << sample << ", " << world << " ranks";
      }
    }
  }
}

// A sample here and there of each piece of a window is a small part of it.
TEST_F(StreamLoadTest, AFirstBatchIsReadBeforeTheRestOfItsPieces) {
  constexpr uint64_t kPhotoBytes = 150'000, kShardPhotos = 48, kPhotos = 4 * kShardPhotos, kBatch = 8;
  std::vector<std::vector<TestSample>> shards(4);
  for (uint64_t i = 0; i < kPhotos; ++i)
    shards[i / kShardPhotos].push_back(
        {.key = "s" + std::to_string(i),
         .fields = {{"bin", std::string(kPhotoBytes, static_cast<char>(i)), ""}},
         .label = 0});
  put_dataset(storage_, "photos", shards, {"a"});
  ReadMap map(storage_);
  auto dataset = Dataset::open(map, "photos");
  ASSERT_TRUE(dataset.ok());
  LoadSpec wanted = spec(8);
  wanted.parts[0].dataset = *dataset;
  wanted.parts[0].samples = kPhotos;
  wanted.parts[0].fields = {0};
  wanted.order.piece_bytes = 1 << 20;
  wanted.order.window_bytes = 16 << 20;
  wanted.memory = 80 << 20;
  for (const uint64_t consumed : {uint64_t{0}, 3 * kBatch}) {
    map.reset();
    auto loader = make(wanted);
    ASSERT_NE(loader, nullptr);
    ASSERT_TRUE(loader->start(0, consumed).ok());
    std::vector<bool> seen(kPhotos);
    for (uint64_t count = consumed; count < kPhotos; count += kBatch) {
      auto batch = loader->next();
      ASSERT_TRUE(batch.ok() && *batch);
      for (size_t i = 0; i < kBatch; ++i) {
        const auto index = static_cast<size_t>((*batch)->indices()[i]);
        ASSERT_FALSE(seen[index]);
        seen[index] = true;
        ASSERT_EQ(as_text((*batch)->value(0, i)),
                  shards[index / kShardPhotos][index % kShardPhotos].fields[0].bytes);
      }
    }
    loader->stop();
    // One sample of each chain, or two that lie side by side; then what is left of the pieces that they are
    // of. A gap that is not worth a read comes with them.
    const std::vector<uint64_t> sizes = map.sizes();
    ASSERT_GT(sizes.size(), 2 * kBatch);
    for (size_t i = 0; i < kBatch; ++i) EXPECT_LT(sizes[i], 2 * kPhotoBytes) << i;
    EXPECT_GT(*std::max_element(sizes.begin(), sizes.end()), 4 * kPhotoBytes);
    for (const ShardSpec& shard : (*dataset)->manifest().shards) {
      const std::vector<uint32_t> counts = map.reads_of(shard.path, shard.bytes);
      EXPECT_LE(*std::max_element(counts.begin(), counts.end()), 2u);  // the next epoch's beginning
    }
  }
}

TEST_F(StreamLoadTest, AWindowThatIsLeftOpenFitsMemoryAndIsTheSameOnEveryRank) {
  const auto window_of = [&](uint64_t memory, uint32_t world, uint32_t rank) {
    LoadSpec wanted = spec(8, world, rank);
    wanted.order.window_bytes = 0;
    wanted.memory = memory;
    auto loader = make(wanted);
    if (!loader) return uint64_t{0};
    EXPECT_EQ(rest_of(*loader, 0, 0).size(), kStreamSamples / world);
    return loader->state().window_bytes;
  };
  EXPECT_EQ(window_of(64 << 20, 1, 0), uint64_t{4} << 30);  // all of the set
  const uint64_t alone = window_of(5 << 20, 1, 0);
  EXPECT_EQ(alone, uint64_t{2} << 20);
  // Each rank keeps its part.
  const uint64_t shared = window_of(5 << 20, 4, 0);
  EXPECT_EQ(shared, uint64_t{8} << 20);
  for (uint32_t rank = 1; rank < 4; ++rank) EXPECT_EQ(window_of(5 << 20, 4, rank), shared);
}

TEST_F(StreamLoadTest, TooLittleMemoryIsRefusedWithAdviceThatHelps) {
  const auto advised = [](const Status& status, std::string_view before) {
    const size_t at = status.message().find(before);
    EXPECT_NE(at, std::string::npos) << status.message();
    return at == std::string::npos ? 0 : std::stoull(status.message().substr(at + before.size()));
  };
  LoadSpec wanted = spec(8);
  wanted.order.window_bytes = 0;
  wanted.memory = 600'000;
  Status refused = Loader::make(wanted).status();
  ASSERT_EQ(refused.code(), Code::no_room);
  wanted.memory = advised(refused, "raise memory= to ");
  EXPECT_TRUE(Loader::make(wanted).ok());

  wanted = spec(8, 4, 1);  // a window that is settled, as a state's is
  wanted.order.window_bytes = uint64_t{1} << 30;
  refused = Loader::make(wanted).status();
  ASSERT_EQ(refused.code(), Code::no_room);
  EXPECT_NE(refused.message().find("more ranks"), std::string::npos) << refused.message();
  wanted.memory = advised(refused, "(memory=");
  wanted.order.window_bytes = 0;
  EXPECT_TRUE(Loader::make(wanted).ok());
  wanted.order.window_bytes = uint64_t{1} << 30;
  wanted.memory = advised(refused, "raise memory= to ");
  EXPECT_TRUE(Loader::make(wanted).ok());

  // What happens to be available on a node says nothing about the others.
  wanted.order.window_bytes = 0;
  wanted.memory = 0;
  wanted.processes_here = 1'000'000;
  refused = Loader::make(wanted).status();
  ASSERT_EQ(refused.code(), Code::no_room);
  EXPECT_NE(refused.message().find("the same memory= or window= on every rank"), std::string::npos)
      << refused.message();
}

// Sizes may differ so much that the pieces of a window take far more than others do.
TEST_F(StreamLoadTest, WherePiecesDoNotFitSamplesAreReadByThemselves) {
  std::vector<std::vector<TestSample>> shards(1);
  for (uint64_t i = 0; i < 400; ++i)
    shards[0].push_back(
        {.key = "s" + std::to_string(i),
         .fields = {{"bin", std::string(i % 16 == 0 ? 150'000 : 500, static_cast<char>(i)), ""}},
         .label = 0});
  put_dataset(storage_, "odd", shards, {"a"});
  auto dataset = Dataset::open(counting_, "odd");
  ASSERT_TRUE(dataset.ok());
  LoadSpec wanted = spec(1);
  wanted.parts[0].dataset = *dataset;
  wanted.parts[0].samples = 400;
  wanted.parts[0].fields = {0};
  wanted.order.window_bytes = 3 * kPieceBytes;
  auto loader = make(wanted);
  ASSERT_NE(loader, nullptr);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    ASSERT_TRUE(loader->start(epoch).ok());
    uint64_t seen = 0;
    for (;;) {
      auto batch = loader->next();
      ASSERT_TRUE(batch.ok()) << batch.status().text();
      EXPECT_LE(loader->report().memory, wanted.memory);
      if (!*batch) break;
      for (size_t i = 0; i < (*batch)->size(); ++i, ++seen) {
        const auto index = static_cast<size_t>((*batch)->indices()[i]);
        ASSERT_EQ(as_text((*batch)->value(0, i)), shards[0][index].fields[0].bytes);
      }
    }
    EXPECT_EQ(seen, 400u);
  }
}

}  // namespace
}  // namespace packtrain
