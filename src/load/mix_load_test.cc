#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "pack/test_dataset.h"
#include "packtrain/load.h"

namespace packtrain {
namespace {

constexpr uint64_t kSizes[] = {90, 40, 7};
constexpr double kFractions[] = {0.5, 0.3, 0.2};

// What a batch says of one sample: part, index within it, label, bytes.
// bytes.
using Seen = std::tuple<int64_t, int64_t, int64_t, std::string>;

class MixLoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (uint64_t part = 0; part < 3; ++part) {
      const std::vector<TestSample> samples = make_samples(kSizes[part], 500, 10 + part);
      for (const TestSample& sample : samples) bytes_[part].push_back(sample.fields[1].bytes);
      put_dataset(storage_, name(part), {samples}, {"a", "b", "c"});
      open(part);
    }
  }
  static std::string name(uint64_t part) { return "part" + std::to_string(part); }
  void open(uint64_t part) {
    auto dataset = Dataset::open(storage_, name(part));
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    datasets_[part] = *dataset;
  }
  void damage(uint64_t part, uint64_t sample) {
    const FieldLocation location = datasets_[part]->locate(sample, jpg(part));
    const std::string path = datasets_[part]->shard_path(location.shard);
    std::string whole = read_whole(storage_, path).value();
    whole[location.offset] ^= 1;
    ASSERT_TRUE(storage_.remove(path).ok());
    put(storage_, path, whole);
    open(part);
  }
  uint32_t jpg(uint64_t part) const { return datasets_[part]->manifest().field_id("jpg"); }

  LoadSpec spec(uint64_t batch = 12, uint64_t epoch_length = 240) const {
    LoadSpec spec;
    spec.mixed = true;
    spec.epoch_length = epoch_length;
    for (uint64_t i = 0; i < 3; ++i) {
      LoadPart part;
      part.dataset = datasets_[i];
      part.samples = kSizes[i];
      part.split = "train";
      part.fields = {jpg(i)};
      part.fraction = kFractions[i];
      spec.parts.push_back(std::move(part));
    }
    spec.order.global_batch = batch;
    spec.order.seed = 7;
    spec.order.last = LastBatch::keep;
    spec.memory = 256 << 20;
    return spec;
  }
  static std::unique_ptr<Loader> make(LoadSpec spec) {
    auto loader = Loader::make(std::move(spec));
    EXPECT_TRUE(loader.ok()) << loader.status().text();
    return loader.ok() ? std::move(*loader) : nullptr;
  }
  static std::vector<Seen> seen_in(const Batch& batch) {
    std::vector<Seen> seen;
    for (size_t i = 0; i < batch.size(); ++i)
      seen.emplace_back(batch.sources()[i], batch.indices()[i], batch.labels()[i],
                        as_text(batch.value(0, i)));
    return seen;
  }
  // Step by step, what the rest of an epoch brings.
  static std::vector<std::vector<Seen>> steps(Loader& loader, uint64_t epoch, uint64_t consumed = 0) {
    std::vector<std::vector<Seen>> all;
    EXPECT_TRUE(loader.start(epoch, consumed).ok());
    for (;;) {
      auto batch = loader.next();
      EXPECT_TRUE(batch.ok()) << batch.status().text();
      if (!batch.ok() || !*batch) return all;
      all.push_back(seen_in(**batch));
    }
  }
  static std::vector<Seen> joined(const std::vector<std::vector<Seen>>& steps) {
    std::vector<Seen> all;
    for (const auto& step : steps) all.insert(all.end(), step.begin(), step.end());
    return all;
  }

  MemoryStorage storage_;
  std::shared_ptr<Dataset> datasets_[3];
  std::vector<std::string> bytes_[3];
};

TEST_F(MixLoadTest, EachPartComesInItsFractionAndItsOwnEpochs) {
  auto loader = make(spec());
  std::vector<int64_t> drawn[3];
  for (uint64_t epoch = 0; epoch < 4; ++epoch) {
    for (const auto& step : steps(*loader, epoch)) {
      for (const auto& [source, index, label, bytes] : step) {
        const auto part = static_cast<size_t>(source);
        ASSERT_LT(part, 3U);
        EXPECT_EQ(bytes, bytes_[part][static_cast<size_t>(index)]);
        EXPECT_EQ(label, datasets_[part]->label(static_cast<uint64_t>(index)));
        drawn[part].push_back(index);
      }
    }
    for (int part = 0; part < 3; ++part)
      EXPECT_NEAR(static_cast<double>(drawn[part].size()), 240 * kFractions[part] * (1.0 + epoch), 1.0);
  }
  for (int part = 0; part < 3; ++part) {
    const auto size = static_cast<ptrdiff_t>(kSizes[part]);
    ASSERT_GE(drawn[part].size(), kSizes[part]);
    for (auto at = drawn[part].begin(); drawn[part].end() - at >= size; at += size)
      EXPECT_EQ(std::set<int64_t>(at, at + size).size(), kSizes[part]);
  }
}

TEST_F(MixLoadTest, TheSameStepsOnAnyNumberOfRanksAndThreads) {
  auto alone = make(spec());
  const auto expected = steps(*alone, 2);
  ASSERT_EQ(expected.size(), 20U);
  for (const uint32_t world : {1, 2, 3, 4}) {
    std::vector<std::vector<Seen>> shared(expected.size());
    for (uint32_t rank = 0; rank < world; ++rank) {
      LoadSpec wanted = spec();
      wanted.order.world = world;
      wanted.rank = rank;
      wanted.threads = 1 + rank * 3;
      auto loader = make(wanted);
      const auto own = steps(*loader, 2);
      ASSERT_EQ(own.size(), expected.size());
      for (size_t i = 0; i < own.size(); ++i) shared[i].insert(shared[i].end(), own[i].begin(), own[i].end());
    }
    EXPECT_EQ(shared, expected) << world << " ranks";
  }
}

TEST_F(MixLoadTest, GoesOnFromAnyStepOnAnotherNumberOfRanks) {
  auto alone = make(spec());
  const std::vector<Seen> whole = joined(steps(*alone, 5));
  for (uint64_t consumed = 12; consumed < 240; consumed += 36) {
    std::map<uint32_t, std::vector<std::vector<Seen>>> ranks;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      LoadSpec wanted = spec(9);
      wanted.order.world = 3;
      wanted.rank = rank;
      auto loader = make(wanted);
      ranks[rank] = steps(*loader, 5, consumed);
    }
    std::vector<Seen> rest;
    for (size_t step = 0; step < ranks[0].size(); ++step)
      for (const auto& [rank, own] : ranks)
        if (step < own.size()) rest.insert(rest.end(), own[step].begin(), own[step].end());
    EXPECT_EQ(rest, std::vector<Seen>(whole.begin() + static_cast<ptrdiff_t>(consumed), whole.end()));
  }
}

TEST_F(MixLoadTest, OnlyTheIndicesOfAPart) {
  LoadSpec wanted = spec();
  const std::vector<uint64_t> chosen = {31, 2, 17};
  wanted.parts[1].selection = Selection::make(chosen);
  auto loader = make(wanted);
  std::map<int64_t, int> counts;
  for (const auto& [source, index, label, bytes] : joined(steps(*loader, 0))) {
    if (source != 1) continue;
    ++counts[index];
    EXPECT_EQ(bytes, bytes_[1][static_cast<size_t>(index)]);
  }
  EXPECT_EQ(counts, (std::map<int64_t, int>{{2, 24}, {17, 24}, {31, 24}}));
}

TEST_F(MixLoadTest, ClassesOfAPartComeByItsWeights) {
  LoadSpec wanted = spec(12, 2400);
  wanted.parts[0].weights = {3, 0, 1};
  auto loader = make(wanted);
  const std::vector<Seen> whole = joined(steps(*loader, 1));
  std::map<int64_t, int> labels[3];
  for (const auto& [source, index, label, bytes] : whole) {
    EXPECT_EQ(bytes, bytes_[source][static_cast<size_t>(index)]);
    ++labels[source][label];
  }
  EXPECT_EQ(labels[0].count(1), 0U);
  EXPECT_EQ(labels[0][0] + labels[0][2], 1200);
  EXPECT_NEAR(labels[0][0], 900, 75);  // five standard deviations
  EXPECT_EQ(labels[1].size(), 3U);
  EXPECT_EQ(joined(steps(*loader, 1, 1200)), std::vector<Seen>(whole.begin() + 1200, whole.end()));
  EXPECT_FALSE(make(spec(12, 2400))->state().check(loader->state()).ok());
}

TEST_F(MixLoadTest, PartsWithAnotherFieldNumberBringTheirOwnBytes) {
  constexpr uint64_t kCount = 20;
  std::vector<TestSample> samples = make_samples(kCount, 300, 5);
  std::vector<std::string> bytes;
  for (TestSample& sample : samples) {
    bytes.push_back(sample.fields[1].bytes);
    sample.fields.insert(sample.fields.begin(), {"a.json", "{}", ""});
  }
  put_dataset(storage_, "other", {samples});
  auto other = Dataset::open(storage_, "other");
  ASSERT_TRUE(other.ok()) << other.status().text();
  LoadSpec wanted = spec();
  wanted.parts[2].dataset = *other;
  wanted.parts[2].samples = kCount;
  wanted.parts[2].fields = {(*other)->manifest().field_id("jpg")};
  ASSERT_NE(wanted.parts[2].fields, wanted.parts[0].fields);
  auto loader = make(wanted);
  size_t from_other = 0;
  for (const auto& [source, index, label, value] : joined(steps(*loader, 0))) {
    EXPECT_EQ(value, (source == 2 ? bytes : bytes_[source])[static_cast<size_t>(index)]);
    from_other += source == 2;
  }
  EXPECT_EQ(from_other, 48U);
}

TEST_F(MixLoadTest, ABadSampleIsNamedWithItsPartAndReplacedFromIt) {
  damage(1, 5);
  LoadSpec wanted = spec();
  wanted.on_error = OnError::replace;
  auto replacing = make(wanted);
  const std::vector<Seen> all = joined(steps(*replacing, 0));
  ASSERT_EQ(all.size(), 240U);
  size_t of_part = 0;
  for (const auto& [source, index, label, bytes] : all) {
    EXPECT_EQ(bytes, bytes_[source][static_cast<size_t>(index)]);
    EXPECT_FALSE(source == 1 && index == 5);
    of_part += source == 1;
  }
  EXPECT_EQ(of_part, 72U);
  ASSERT_GE(replacing->report().bad.size(), 1U);
  EXPECT_EQ(replacing->report().bad[0].source, 1U);
  EXPECT_EQ(replacing->report().bad[0].index, 5U);

  wanted.on_error = OnError::skip;
  auto skipping = make(wanted);
  const std::vector<Seen> rest = joined(steps(*skipping, 0));
  EXPECT_EQ(rest.size(), 240 - skipping->report().errors);

  wanted.on_error = OnError::raise;
  auto raising = make(wanted);
  ASSERT_TRUE(raising->start(0).ok());
  Status failure;
  for (;;) {
    auto batch = raising->next();
    if (!batch.ok()) failure = batch.status();
    if (batch.ok() && !*batch) break;
  }
  EXPECT_EQ(failure.code(), Code::corrupt);
  EXPECT_NE(failure.text().find("sample 5 ("), std::string::npos) << failure.text();
  EXPECT_NE(failure.text().find("of part1"), std::string::npos) << failure.text();
}

TEST_F(MixLoadTest, WhatItsUserNotesAsBadIsCountedWithTheRest) {
  LoadSpec wanted = spec();
  wanted.on_error = OnError::skip;
  wanted.max_errors = 1;
  auto loader = make(wanted);
  ASSERT_TRUE(loader->start(0).ok());
  ASSERT_TRUE(loader->next().ok());
  const Status why(Code::corrupt, "no good");
  EXPECT_TRUE(loader->note_bad(2, 3, why).ok());
  const LoadReport report = loader->report();
  EXPECT_EQ(report.samples, 11U);
  EXPECT_EQ(report.errors, 1U);
  EXPECT_EQ(report.bad.at(0).source, 2U);
  EXPECT_EQ(report.bad.at(0).index, 3U);
  EXPECT_EQ(report.bad.at(0).what, "no good");
  const Status one_too_many = loader->note_bad(0, 1, why);
  EXPECT_NE(one_too_many.text().find("max_errors"), std::string::npos) << one_too_many.text();
  EXPECT_EQ(loader->note_bad(2, kSizes[2], why).code(), Code::invalid);
  EXPECT_EQ(loader->note_bad(3, 0, why).code(), Code::invalid);
}

TEST_F(MixLoadTest, AStateOfAnotherMixtureIsRefused) {
  const OrderState state = make(spec())->state();
  EXPECT_LT(state.encode().size(), 1000U);
  const auto check = [&](const LoadSpec& other) { return state.check(make(other)->state()); };
  EXPECT_TRUE(check(spec(24)).ok());
  LoadSpec scaled = spec();
  for (LoadPart& part : scaled.parts) part.fraction *= 2;
  EXPECT_TRUE(check(scaled).ok());

  EXPECT_FALSE(check(spec(12, 241)).ok());
  LoadSpec fractions = spec();
  fractions.parts[0].fraction = 0.4;
  EXPECT_FALSE(check(fractions).ok());
  LoadSpec reordered = spec();
  std::swap(reordered.parts[0], reordered.parts[1]);
  EXPECT_FALSE(check(reordered).ok());
  LoadSpec fewer = spec();
  fewer.parts.pop_back();
  EXPECT_FALSE(check(fewer).ok());
  LoadSpec selected = spec();
  const std::vector<uint64_t> few = {1, 2, 3};
  selected.parts[0].selection = Selection::make(few);
  EXPECT_FALSE(check(selected).ok());
  LoadSpec split = spec();
  split.parts[0].split = "val";
  EXPECT_FALSE(check(split).ok());
  LoadSpec alone = spec();
  alone.parts.resize(1);
  alone.mixed = false;
  EXPECT_FALSE(check(alone).ok());
}

TEST_F(MixLoadTest, WhatCannotBeLoadedIsRefused) {
  const auto refused = [](const LoadSpec& wanted) { return Loader::make(wanted).status().message(); };
  EXPECT_EQ(refused(spec()), "");
  LoadSpec plain = spec();
  plain.mixed = false;
  EXPECT_NE(refused(plain).find("mixture"), std::string::npos);
  LoadSpec none = spec();
  none.parts.clear();
  EXPECT_NE(refused(none).find("needs a dataset"), std::string::npos);
  LoadSpec empty = spec();
  empty.parts[2].samples = 0;
  EXPECT_NE(refused(empty).find("no samples"), std::string::npos);
  LoadSpec fields = spec();
  fields.parts[1].fields.clear();
  EXPECT_NE(refused(fields).find("same fields"), std::string::npos);
  LoadSpec weights = spec();
  weights.parts[1].weights = {1, 2};  // of three classes
  EXPECT_NE(refused(weights).find("weight for every class"), std::string::npos);
  weights.parts[1].weights = {1, 2, 3};
  EXPECT_EQ(refused(weights), "");
  weights.order.kind = OrderKind::source;
  EXPECT_NE(refused(weights).find("'global'"), std::string::npos);
  LoadSpec streams = spec();
  streams.order.kind = OrderKind::streams;
  EXPECT_NE(refused(streams).find("'streams'"), std::string::npos);
  MemoryStorage elsewhere;
  put_dataset(elsewhere, "part", {make_samples(5, 10, 1)});
  LoadSpec storages = spec();
  storages.parts[1].dataset = Dataset::open(elsewhere, "part").value();
  storages.parts[1].samples = 5;
  EXPECT_NE(refused(storages).find("one storage"), std::string::npos);
}

}  // namespace
}  // namespace packtrain
