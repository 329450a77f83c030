#include <gtest/gtest.h>

#include "base/hash.h"
#include "io/test_storage.h"
#include "packtrain/index.h"

namespace packtrain {
namespace {

// Samples of three fields in one shard: "a" and "b" side by side, "far" a long way behind them.
constexpr size_t kSamples = 100, kFarGap = 1 << 20;

class ReadFieldsTest : public testing::Test {
 protected:
  void SetUp() override {
    IndexBuilder builder;
    std::string shard(kFarGap + kSamples * 10, '.');
    const uint32_t id = builder.add_shard({.path = "s.bin", .format = "test", .bytes = shard.size()});
    for (size_t i = 0; i < kSamples; ++i) {
      builder.begin_sample("k" + std::to_string(i));
      add(builder, shard, id, "a", i * 16, "alpha" + std::to_string(i % 10));
      add(builder, shard, id, "b", i * 16 + 8, "beta" + std::to_string(i % 10));
      add(builder, shard, id, "far", kFarGap + i * 10, std::to_string(i));
      ASSERT_TRUE(builder.end_sample().ok());
    }
    shard[16 * 7 + 8] ^= 1;  // field "b" of sample 7 is damaged
    ASSERT_TRUE(write_whole(memory_, "/s.bin", as_bytes(shard)).ok());
    auto dataset = Dataset::from_memory(counting_, "/", builder.finish());
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    dataset_ = *dataset;
  }

  static void add(IndexBuilder& builder, std::string& shard, uint32_t id, std::string_view name,
                  uint64_t offset, const std::string& text) {
    shard.replace(offset, text.size(), text);
    builder.add_field(name, id, offset, text.size(), CheckKind::crc32c, crc32c(as_bytes(text)), "");
  }

  // Reads (sample, field name) pairs; a failure is given back as its code.
  std::vector<std::string> read(const std::vector<std::pair<uint64_t, std::string>>& wanted,
                                bool check = true) {
    std::vector<std::string> memory(wanted.size());
    std::vector<FieldRead> reads;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const uint32_t field = dataset_->manifest().field_id(wanted[i].second);
      if (wanted[i].first < dataset_->samples())
        memory[i].resize(dataset_->locate(wanted[i].first, field).length);
      reads.push_back({wanted[i].first, field, std::as_writable_bytes(std::span(memory[i])), {}});
    }
    read_fields(*dataset_, reads, check);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!reads[i].status.ok()) memory[i] = code_name(reads[i].status.code());
    }
    return memory;
  }

  MemoryStorage memory_;
  CountingStorage counting_{memory_};
  std::shared_ptr<Dataset> dataset_;
};

TEST_F(ReadFieldsTest, FieldsThatLieTogetherComeByOneRead) {
  read({{3, "a"}});  // the shard is open from here on
  const uint64_t before = counting_.calls(Call::read);
  EXPECT_EQ(read({{3, "a"}, {3, "b"}}), (std::vector<std::string>{"alpha3", "beta3"}));
  EXPECT_EQ(counting_.calls(Call::read), before + 1);
  EXPECT_EQ(read({{3, "b"}, {3, "far"}}), (std::vector<std::string>{"beta3", "3"}));
  EXPECT_EQ(counting_.calls(Call::read), before + 3);
}

TEST_F(ReadFieldsTest, ManyArriveWhereTheyBelong) {
  std::vector<std::pair<uint64_t, std::string>> wanted;
  std::vector<std::string> expected;
  for (size_t i = 0; i < kSamples; ++i) {
    const size_t sample = (i * 37) % kSamples;
    wanted.insert(wanted.end(), {{sample, "a"}, {sample, "b"}, {sample, "far"}});
    expected.insert(expected.end(),
                    {"alpha" + std::to_string(sample % 10),
                     sample == 7 ? "corrupt" : "beta" + std::to_string(sample % 10), std::to_string(sample)});
  }
  EXPECT_EQ(read(wanted), expected);
}

TEST_F(ReadFieldsTest, EachHasItsOwnOutcome) {
  EXPECT_EQ(read({{7, "a"}, {7, "b"}, {kSamples, "a"}, {8, "nothing"}, {8, "a"}}),
            (std::vector<std::string>{"alpha7", "corrupt", "not_found", "not_found", "alpha8"}));
  EXPECT_EQ(read({{7, "a"}, {7, "b"}}, false), (std::vector<std::string>{"alpha7", "ceta7"}));
}

TEST_F(ReadFieldsTest, MemoryOfAnotherLengthIsRefused) {
  std::string memory(3, '?');
  std::vector<FieldRead> reads = {{1, 0, std::as_writable_bytes(std::span(memory)), {}}};
  read_fields(*dataset_, reads);
  EXPECT_EQ(reads[0].status.code(), Code::invalid);
  EXPECT_EQ(memory, "???");
}

}  // namespace
}  // namespace packtrain
