// Loading from real files: what the kernel has in memory is copied from there, the rest is read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "base/threads.h"
#include "load/shard_views.h"
#include "pack/test_dataset.h"
#include "packtrain/load.h"

namespace packtrain {
namespace {

constexpr uint64_t kFileSamples = 240, kShards = 3;

class FileLoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::vector<TestSample>> shards;
    for (uint64_t i = 0; i < kShards; ++i) shards.push_back(make_samples(kFileSamples / kShards, 20'000, i));
    for (const auto& shard : shards)
      for (const TestSample& sample : shard) bytes_.push_back(sample.fields[1].bytes);
    put_dataset(posix_storage(), folder_ / "data", shards, {"a", "b", "c"});
    auto dataset = Dataset::open(posix_storage(), folder_ / "data");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    dataset_ = *dataset;
  }

  std::unique_ptr<Loader> make(uint32_t threads, OnError on_error = OnError::raise) {
    LoadSpec spec;
    spec.parts.resize(1);
    spec.parts[0].dataset = dataset_;
    spec.parts[0].samples = dataset_->samples();
    spec.parts[0].split = "train";
    spec.parts[0].fields = {dataset_->manifest().field_id("jpg")};
    spec.order.global_batch = 16;
    spec.order.last = LastBatch::keep;
    spec.memory = 256 << 20;
    spec.threads = threads;
    spec.on_error = on_error;
    auto loader = Loader::make(std::move(spec));
    EXPECT_TRUE(loader.ok()) << loader.status().text();
    return loader.ok() ? std::move(*loader) : nullptr;
  }

  // Asks the kernel to forget a shard: what it does forget has to be read.
  void forget(uint32_t shard) {
    const int file = ::open(dataset_->shard_path(shard).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(file, 0);
    EXPECT_EQ(::fsync(file), 0);
    EXPECT_EQ(::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    ::close(file);
  }

  // Goes through an epoch and compares every sample; gives the number of samples.
  size_t go_through(Loader& loader, uint64_t epoch) {
    size_t count = 0;
    EXPECT_TRUE(loader.start(epoch).ok());
    for (;;) {
      auto batch = loader.next();
      EXPECT_TRUE(batch.ok()) << batch.status().text();
      if (!batch.ok() || !*batch) return count;
      for (size_t i = 0; i < (*batch)->size(); ++i)
        EXPECT_EQ(as_text((*batch)->value(0, i)), bytes_[static_cast<size_t>((*batch)->indices()[i])]);
      count += (*batch)->size();
    }
  }

  TemporaryFolder folder_;
  std::shared_ptr<Dataset> dataset_;
  std::vector<std::string> bytes_;
};

TEST_F(FileLoadTest, BytesAreTheSameWhetherCachedOrNot) {
  uint64_t bytes = 0;
  for (const std::string& sample : bytes_) bytes += sample.size();
  for (const uint32_t threads : {1u, 4u}) {
    auto loader = make(threads);
    EXPECT_EQ(go_through(*loader, 0), kFileSamples);
    forget(1);
    EXPECT_EQ(go_through(*loader, 1), kFileSamples);
    for (uint32_t shard = 0; shard < kShards; ++shard) forget(shard);
    EXPECT_EQ(go_through(*loader, 2), kFileSamples);
    EXPECT_GE(loader->report().bytes, 3 * bytes);  // and what was read ahead of the fourth epoch
  }
}

TEST_F(FileLoadTest, ShardsAreMappedOnceAndUpToALimit) {
  std::vector<const File*> files;
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    auto file = dataset_->shard_file(shard);
    ASSERT_TRUE(file.ok());
    files.push_back(*file);
  }
  ShardViews views(files[0]->size() + files[1]->size());
  const CachedView* first = views.of(*files[0]);
  if (!first) GTEST_SKIP() << "this filesystem is not mapped";
  EXPECT_EQ(views.of(*files[0]), first);
  EXPECT_NE(views.of(*files[1]), nullptr);
  EXPECT_EQ(views.of(*files[2]), nullptr) << "beyond the limit";
  EXPECT_EQ(ShardViews(0).of(*files[0]), nullptr);
  // What the loader copies out of it is what the shard holds.
  auto loader = make(2);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(go_through(*loader, epoch), kFileSamples);
}

TEST_F(FileLoadTest, AFailureNamesSampleAndShardOnce) {
  const std::string path = dataset_->shard_path(1);
  ASSERT_TRUE(dataset_->shard_file(1).ok());
  ASSERT_EQ(::truncate(path.c_str(), 512), 0);
  const auto times = [](const std::string& text, std::string_view part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
    return count;
  };
  auto loader = make(1);
  ASSERT_TRUE(loader->start(0).ok());
  uint64_t failures = 0;
  for (;;) {
    auto batch = loader->next();
    if (batch.ok() && !*batch) break;
    if (batch.ok()) continue;
    ++failures;
    const std::string text = batch.status().text();
    EXPECT_EQ(times(text, "sample "), 1u) << text;
    EXPECT_EQ(times(text, path.substr(path.rfind('/') + 1)), 1u) << text;
    EXPECT_EQ(times(text, path), 1u) << text;
  }
  EXPECT_GT(failures, 0u);
}

TEST_F(FileLoadTest, AShardThatIsCutAgainAndAgainGivesNoWrongBytes) {
  const std::string path = dataset_->shard_path(1);
  const auto read = read_whole(posix_storage(), path);
  ASSERT_TRUE(read.ok()) << read.status().text();
  const std::string& whole = *read;
  auto loader = make(2, OnError::skip);
  std::atomic<bool> done = false;
  Threads thread;
  ASSERT_TRUE(thread
                  .start("cuts",
                         [&] {
                           for (size_t round = 0; !done; ++round) {
                             (void)::truncate(path.c_str(),
                                              static_cast<off_t>(whole.size() * (round % 7) / 7));
                             const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
                             EXPECT_EQ(::pwrite(file, whole.data(), whole.size(), 0),
                                       static_cast<ssize_t>(whole.size()));
                             ::close(file);
                           }
                         })
                  .ok());
  for (uint64_t epoch = 0; epoch < 10; ++epoch) {
    const size_t count = go_through(*loader, epoch);  // compares what there is
    EXPECT_LE(count, kFileSamples);
    EXPECT_GE(count, kFileSamples * 2 / 3) << "the other shards are whole";
  }
  done = true;
  thread.join();
}

TEST_F(FileLoadTest, AShardThatIsCutShortIsABadSampleNotACrash) {
  const std::string path = dataset_->shard_path(1);
  const auto size = static_cast<off_t>(dataset_->manifest().shards[1].bytes);
  auto skipping = make(2, OnError::skip), raising = make(2);
  EXPECT_EQ(go_through(*skipping, 0), kFileSamples);
  ASSERT_EQ(::truncate(path.c_str(), size / 2), 0);

  const size_t left = go_through(*skipping, 5);  // another epoch than the one that was read ahead
  EXPECT_LT(left, kFileSamples);
  EXPECT_GT(left, kFileSamples * 2 / 3);
  EXPECT_EQ(skipping->report().errors, kFileSamples - left);

  ASSERT_TRUE(raising->start(0).ok());
  Status failure;
  for (;;) {
    auto batch = raising->next();
    if (!batch.ok()) failure = batch.status();
    if (!batch.ok() || !*batch) break;
  }
  EXPECT_EQ(failure.code(), Code::corrupt);
  EXPECT_NE(failure.text().find("train-000001.tar"), std::string::npos) << failure.text();
}

TEST_F(FileLoadTest, ReadyMeansThatNextDoesNotWait) {
  auto loader = make(2);
  EXPECT_TRUE(loader->is_ready());  // nothing was started: there is nothing to wait for
  ASSERT_TRUE(loader->start(0).ok());
  for (uint64_t step = 0; step < loader->steps(); ++step) {
    while (!loader->is_ready()) ::usleep(100);
    const double waited = loader->report().seconds_waited;
    const auto batch = loader->next();
    ASSERT_TRUE(batch.ok() && *batch);
    EXPECT_EQ(loader->report().seconds_waited, waited);
  }
  EXPECT_TRUE(loader->is_ready());  // to say that the epoch is over
}

}  // namespace
}  // namespace packtrain
