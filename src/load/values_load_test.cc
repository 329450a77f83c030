// Fields that are decoded on the loader's threads: what lies in the batch, and what becomes of bad values.
#include <gtest/gtest.h>

#include <cstring>

#include "pack/test_dataset.h"
#include "packtrain/load.h"

namespace packtrain {
namespace {

constexpr size_t kValueSamples = 96, kBatch = 16;

std::string numbers(size_t count, uint16_t first) {
  std::string out(count * 2, '\0');
  for (size_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint16_t>(first + i);
    std::memcpy(out.data() + 2 * i, &number, 2);
  }
  return out;
}

// 8-bit WAV; every sample is silence.
std::string wav(uint16_t channels, uint32_t frames) {
  std::string out = "RIFF\xFF\xFF\xFF\xFFWAVEfmt ";
  const auto add = [&](auto number) { out.append(reinterpret_cast<const char*>(&number), sizeof number); };
  add(uint32_t{16});
  add(uint16_t{1});
  add(channels);
  add(uint32_t{8000});
  add(uint32_t{8000U * channels});
  add(channels);
  add(uint16_t{8});
  out += "data";
  add(frames * channels);
  return out + std::string(size_t{frames} * channels, '\x80');
}

// A .npy file of so many zeros of uint8.
std::string npy_of_bytes(size_t count) {
  std::string head = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  head.resize(117, ' ');
  head += '\n';
  std::string out = "\x93NUMPY";
  out += {'\x01', '\0', static_cast<char>(head.size()), '\0'};
  return out + head + std::string(count, '\0');
}

class ValuesLoadTest : public ::testing::Test {
 protected:
  // `value` gives the bytes of each sample's field; none where that is empty.
  template <class Value>
  void put_values(Value value) {
    std::vector<TestSample> samples;
    for (size_t i = 0; i < kValueSamples; ++i) {
      TestSample sample;
      sample.key = "s" + std::to_string(i);
      sample.fields = {{"cls", "0", ""}};
      if (std::string bytes = value(i); !bytes.empty()) sample.fields.push_back({"v", std::move(bytes), ""});
      samples.push_back(std::move(sample));
    }
    put_dataset(storage_, "data", {samples}, {"a"});
    auto dataset = Dataset::open(storage_, "data");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    dataset_ = *dataset;
  }
  LoadSpec spec(const ValueSpec& value) {
    LoadSpec spec;
    LoadPart part;
    part.dataset = dataset_;
    part.samples = dataset_->samples();
    part.fields = {dataset_->manifest().field_id("v")};
    spec.parts = {part};
    spec.values = {value};
    spec.order.global_batch = kBatch;
    spec.order.seed = 3;
    spec.memory = 64 << 20;
    return spec;
  }
  // Hands every batch of two epochs to `look`; the memory of the first serves the second.
  template <class Look>
  static Status each(LoadSpec spec, Look look) {
    PACKTRAIN_ASSIGN(loader, Loader::make(std::move(spec)));
    for (uint64_t epoch = 0; epoch < 2; ++epoch) {
      PACKTRAIN_TRY(loader->start(epoch));
      for (;;) {
        PACKTRAIN_ASSIGN(batch, loader->next());
        if (!batch) break;
        look(*batch);
      }
    }
    return {};
  }

  MemoryStorage storage_;
  std::shared_ptr<Dataset> dataset_;
};

const ValueSpec kTokens{.kind = ValueKind::raw, .type = NumberType::uint16};
const ValueSpec kPaddedTokens{.kind = ValueKind::raw, .type = NumberType::uint16, .pad = true, .pad_with = 7};

TEST_F(ValuesLoadTest, ValuesOfOneShapeLieBehindEachOtherOnAnyNumberOfThreads) {
  put_values([](size_t i) { return numbers(5, static_cast<uint16_t>(i * 10)); });
  for (const uint32_t threads : {1, 7}) {
    LoadSpec wanted = spec(kTokens);
    wanted.threads = threads;
    size_t seen = 0;
    const Status status = each(wanted, [&](const Batch& batch) {
      for (size_t i = 0; i < batch.size(); ++i, ++seen) {
        const BatchArray* array = batch.array(0, i);
        ASSERT_NE(array, nullptr);
        EXPECT_EQ(array->shape.text(), "uint16 (5,)");
        EXPECT_EQ(batch.value(0, i).data(), batch.value(0, 0).data() + i * 10);
        EXPECT_EQ(as_text(batch.value(0, i)), numbers(5, static_cast<uint16_t>(batch.indices()[i] * 10)));
      }
    });
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(seen, 2 * kValueSamples);
  }
}

TEST_F(ValuesLoadTest, ValuesOfManyShapesAreEachRightAndCanBePadded) {
  const auto count = [](size_t i) { return 1 + i % 40; };
  put_values([&](size_t i) { return numbers(count(i), static_cast<uint16_t>(i)); });
  Status status = each(spec(kTokens), [&](const Batch& batch) {
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto index = static_cast<size_t>(batch.indices()[i]);
      EXPECT_EQ(as_text(batch.value(0, i)), numbers(count(index), static_cast<uint16_t>(index)));
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
  status = each(spec(kPaddedTokens), [&](const Batch& batch) {
    size_t longest = 0;
    for (const int64_t index : batch.indices())
      longest = std::max(longest, count(static_cast<size_t>(index)));
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto index = static_cast<size_t>(batch.indices()[i]);
      std::string expected = numbers(count(index), static_cast<uint16_t>(index));
      for (size_t k = count(index); k < longest; ++k) expected += std::string("\x07\x00", 2);
      EXPECT_EQ(as_text(batch.value(0, i)), expected);
      EXPECT_EQ(batch.value(0, i).data(), batch.value(0, 0).data() + i * longest * 2);
      EXPECT_EQ(batch.array(0, i)->lengths[0], count(index));
      EXPECT_EQ(batch.array(0, i)->shape.sizes[0], longest);
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
}

TEST_F(ValuesLoadTest, APadThatTheTypeDoesNotHoldIsRefusedWhateverOnErrorSays) {
  put_values([](size_t i) { return npy_of_bytes(1 + i % 3); });
  LoadSpec wanted = spec({.kind = ValueKind::npy, .pad = true, .pad_with = -1});
  for (const OnError on_error : {OnError::raise, OnError::skip, OnError::replace}) {
    wanted.on_error = on_error;
    wanted.max_errors = kValueSamples;
    const Status status = each(wanted, [](const Batch&) {});
    EXPECT_EQ(status.code(), Code::invalid);
    EXPECT_NE(status.text().find("field 'v': pad=-1 is no number of the type uint8"), std::string::npos)
        << status.text();
  }
}

TEST_F(ValuesLoadTest, ABadValueIsRaisedByNameSkippedOrReplaced) {
  put_values(
      [](size_t i) { return i % 50 == 20 ? std::string("odd") : numbers(4, static_cast<uint16_t>(i)); });
  const auto is_bad = [](int64_t index) { return index % 50 == 20; };
  const Status raised = each(spec(kTokens), [](const Batch&) {});
  EXPECT_EQ(raised.code(), Code::corrupt);
  EXPECT_TRUE(raised.text().find("(s20)") != std::string::npos ||
              raised.text().find("(s70)") != std::string::npos)
      << raised.text();
  EXPECT_NE(raised.text().find("field 'v'"), std::string::npos) << raised.text();
  for (const ValueSpec& value : {kTokens, kPaddedTokens}) {
    LoadSpec skipping = spec(value);
    skipping.on_error = OnError::skip;
    size_t seen = 0;
    Status status = each(skipping, [&](const Batch& batch) {
      for (size_t i = 0; i < batch.size(); ++i, ++seen) {
        EXPECT_FALSE(is_bad(batch.indices()[i]));
        EXPECT_EQ(as_text(batch.value(0, i)), numbers(4, static_cast<uint16_t>(batch.indices()[i])));
        EXPECT_EQ(batch.value(0, i).data(), batch.value(0, 0).data() + i * 8);  // no gap is left
      }
    });
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(seen, 2 * (kValueSamples - 2));
    LoadSpec replacing = spec(value);
    replacing.on_error = OnError::replace;
    size_t replaced = 0;
    status = each(replacing, [&](const Batch& batch) {
      EXPECT_EQ(batch.size(), kBatch);
      for (size_t i = 0; i < batch.size(); ++i) {
        replaced += batch.replaced()[i];
        EXPECT_EQ(as_text(batch.value(0, i)), numbers(4, static_cast<uint16_t>(batch.indices()[i])));
      }
    });
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(replaced, 4u);
  }
}

TEST_F(ValuesLoadTest, AMissingValueHasNoArrayAndThePaddedLengthZero) {
  put_values([](size_t i) { return i == 5 ? std::string() : numbers(3, 1); });
  size_t missing = 0;
  ASSERT_TRUE(each(spec(kTokens), [&](const Batch& batch) {
                for (size_t i = 0; i < batch.size(); ++i) {
                  EXPECT_EQ(batch.has(0, i), batch.indices()[i] != 5);
                  EXPECT_EQ(batch.array(0, i) != nullptr, batch.indices()[i] != 5);
                  missing += batch.has(0, i) ? 0 : 1;
                }
              }).ok());
  EXPECT_EQ(missing, 2u);
  ASSERT_TRUE(each(spec(kPaddedTokens), [&](const Batch& batch) {
                for (size_t i = 0; i < batch.size(); ++i) {
                  EXPECT_EQ(batch.array(0, i)->lengths[0], batch.indices()[i] == 5 ? 0u : 3u);
                  if (batch.indices()[i] == 5) {
                    EXPECT_EQ(as_text(batch.value(0, i)), std::string("\7\0\7\0\7\0", 6));
                  }
                }
              }).ok());
}

TEST_F(ValuesLoadTest, PaddingMakesUpForLengthOnly) {
  put_values([](size_t i) { return wav(i == 30 ? 2 : 1, 100 + static_cast<uint32_t>(i)); });
  LoadSpec wanted = spec({.kind = ValueKind::audio, .type = NumberType::float32, .pad = true});
  const Status raised = each(wanted, [](const Batch&) {});
  EXPECT_EQ(raised.code(), Code::corrupt);
  EXPECT_NE(raised.text().find("s30"), std::string::npos) << raised.text();
  wanted.on_error = OnError::skip;
  size_t seen = 0;
  const Status status = each(wanted, [&](const Batch& batch) {
    for (size_t i = 0; i < batch.size(); ++i, ++seen) {
      EXPECT_NE(batch.indices()[i], 30);
      EXPECT_EQ(batch.array(0, i)->lengths[0], 100 + static_cast<uint64_t>(batch.indices()[i]));
      EXPECT_EQ(batch.array(0, i)->sample_rate, 8000u);
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(seen, 2 * (kValueSamples - 1));
}

TEST_F(ValuesLoadTest, BatchesThatAreKeptEndWithASentenceAndNoSampleIsLost) {
  put_values([](size_t) { return numbers(1 << 19, 1); });  // a batch takes 16 MiB
  LoadSpec wanted = spec(kTokens);
  wanted.on_error = OnError::skip;
  wanted.prefetch = 1;
  wanted.memory = 96 << 20;
  auto loader = Loader::make(wanted);
  ASSERT_TRUE(loader.ok()) << loader.status().text();
  ASSERT_TRUE((*loader)->start(0).ok());
  std::vector<BatchPtr> kept;
  Status status;
  for (;;) {
    auto batch = (*loader)->next();
    status = batch.status();
    if (!batch.ok() || !*batch) break;
    EXPECT_EQ((*batch)->size(), kBatch);
    kept.push_back(std::move(*batch));
  }
  EXPECT_EQ(status.code(), Code::no_room) << status.text();
  EXPECT_NE(status.text().find("kept alive"), std::string::npos) << status.text();
  EXPECT_GE(kept.size(), 3u);
  EXPECT_EQ((*loader)->report().errors, 0u);
  kept.clear();
  auto batch = (*loader)->next();
  ASSERT_TRUE(batch.ok()) << batch.status().text();
  EXPECT_EQ((*batch)->size(), kBatch);
}

TEST_F(ValuesLoadTest, AValueBeyondTheMemoryIsABadOne) {
  put_values([](size_t i) { return wav(1, i == 40 ? 18 << 20 : 64); });  // floats take four times that
  LoadSpec wanted = spec({.kind = ValueKind::audio, .type = NumberType::float32});
  wanted.on_error = OnError::skip;
  wanted.prefetch = 1;
  wanted.order.kind = OrderKind::source;
  size_t seen = 0;
  const Status status = each(wanted, [&](const Batch& batch) {
    for (const int64_t index : batch.indices()) EXPECT_NE(index, 40);
    seen += batch.size();
  });
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(seen, 2 * (kValueSamples - 1));
}

}  // namespace
}  // namespace packtrain
