// What every container format promises, as one suite. A format joins with one line:
//
//   INSTANTIATE_TEST_SUITE_P(MyFormat, ContainerConformance, testing::Values(ContainerCase{…}));
//
// Samples are written by the format, indexed by it, and read back through a Dataset. PACKTRAIN_SOAK asks for
// more flipped bits, PACKTRAIN_FEW for fewer and for fewer truncations.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/test_counts.h"
#include "format/columns.h"
#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {

struct TestSample {
  std::string key;
  std::vector<std::pair<std::string, std::string>> fields;  // name and bytes, sorted by name
};

// Writes `samples` as one container.
using WriteContainer =
    std::function<Status(Storage&, const std::string& path, const std::vector<TestSample>&)>;

struct ContainerCase {
  std::string name;
  const Format* format;
  WriteContainer write;
  // Whether a container cut to its first `length` bytes is a whole one by the rules of the format, which can
  // then not tell that samples are gone. `ends` are the ends of its members, padding included. Null: never.
  bool (*still_whole)(uint64_t length, const std::vector<uint64_t>& ends) = nullptr;
  // Samples of one image each are written as the courses' loaders want them: keys are not kept, and the field
  // is named by what the image's bytes are, which noise does not tell.
  bool nameless_images = false;
};

inline void PrintTo(const ContainerCase& tested, std::ostream* out) { *out << tested.name; }

// Writes by a format's layout, as the packer does.
inline Status write_by_layout(const Layout& layout, Storage& storage, const std::string& path,
                              const std::vector<TestSample>& samples) {
  std::vector<std::string> names;
  std::vector<std::string_view> data;
  for (const TestSample& sample : samples) {
    for (const auto& [field, bytes] : sample.fields) {
      names.push_back(sample.key + "." + field);
      data.push_back(bytes);
    }
  }
  std::vector<LaidMember> members;
  uint64_t at = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    members.push_back({names[i], at, data[i].size(), crc32(as_bytes(data[i]))});
    at += layout.head_bytes(names[i], data[i].size(), at) + data[i].size() + layout.padding(data[i].size());
  }
  uint64_t size = at + layout.tail_bytes(members, at);
  PACKTRAIN_ASSIGN(writer, storage.create(path, size));
  for (size_t i = 0; i < members.size(); ++i) {
    const LaidMember& member = members[i];
    std::vector<std::byte> head(layout.head_bytes(member.name, member.size, member.offset));
    layout.write_head(member, head);
    PACKTRAIN_TRY(writer->write_at(member.offset, head));
    PACKTRAIN_TRY(writer->write_at(member.offset + head.size(), as_bytes(data[i])));
  }
  std::vector<std::byte> tail(size - at);
  layout.write_tail(members, at, tail);
  PACKTRAIN_TRY(writer->write_at(at, tail));
  return writer->commit();
}

// Writes front to back, for formats that offer that.
inline Status write_by_writer(const Format& format, const std::string& compress, Storage& storage,
                              const std::string& path, const std::vector<TestSample>& samples) {
  WriteSpec spec;
  spec.compress = compress;
  spec.samples = samples.size();
  std::set<std::string> names;
  for (const TestSample& sample : samples) {
    spec.expected_bytes += 1024;
    for (const auto& [name, bytes] : sample.fields) {
      names.insert(name);
      spec.expected_bytes += bytes.size();
    }
  }
  spec.fields.assign(names.begin(), names.end());
  PACKTRAIN_ASSIGN(writer, format.create(storage, path, spec));
  for (const TestSample& sample : samples) {
    std::vector<SampleToWrite::Field> fields;
    for (const auto& [name, bytes] : sample.fields) fields.push_back({name, as_bytes(bytes)});
    PACKTRAIN_TRY(writer->add({.key = sample.key, .fields = fields}));
  }
  return writer->finish();
}

class ContainerConformance : public testing::TestWithParam<ContainerCase> {
 protected:
  // A case whose codec is not compiled in says so when it is asked to write.
  void SetUp() override {
    MemoryStorage trial;
    ASSERT_TRUE(trial.make_folder("/set").ok());
    const Status status = GetParam().write(trial, path_, few_samples());
    if (status.code() == Code::unsupported) GTEST_SKIP() << status.text();
  }

  const std::string path_ = "/set/container.bin";  // no suffix: formats go by content
  MemoryStorage storage_;

  static std::string noise(size_t bytes, uint32_t seed) {
    std::mt19937 rng(seed);
    std::string made(bytes, '\0');
    for (char& byte : made) byte = static_cast<char>(rng());
    return made;
  }

  static std::vector<TestSample> few_samples() {
    return {
        {"a/first", {{"cls", "7"}, {"jpg", noise(700, 1)}, {"txt", std::string(600, 'x')}}},
        {"a/second", {{"cls", "-3"}, {"jpg", ""}, {"txt", "y"}}},
        {"b/third", {{"cls", "12\n"}, {"jpg", noise(512, 2)}, {"txt", noise(511, 3)}}},
    };
  }

  void write(const std::vector<TestSample>& samples) {
    ASSERT_TRUE(storage_.make_folder("/set").ok());
    Status status = GetParam().write(storage_, path_, samples);
    ASSERT_TRUE(status.ok()) << status.text();
  }

  Result<IndexBuilder> index(Storage& storage) const {
    IndexBuilder builder;
    PACKTRAIN_TRY(GetParam().format->index(storage, path_, {}, builder));
    return builder;
  }

  Result<std::shared_ptr<Dataset>> open(Storage& storage) const {
    PACKTRAIN_ASSIGN(builder, index(storage));
    return Dataset::from_memory(storage, "", builder.finish());
  }

  static bool are_images(const std::vector<TestSample>& samples) {
    return !samples.empty() && std::all_of(samples.begin(), samples.end(), [](const TestSample& sample) {
      return sample.fields.size() == 1 && sample.fields[0].first == "jpg";
    });
  }

  // Everything that the dataset says, equal to what was written.
  static void expect_same(const Dataset& dataset, const std::vector<TestSample>& samples) {
    ASSERT_EQ(dataset.samples(), samples.size());
    SampleBytes got;
    if (GetParam().nameless_images && are_images(samples)) {
      for (uint64_t i = 0; i < samples.size(); ++i) {
        EXPECT_EQ(std::string(*dataset.key(i)), number_key(i));
        ASSERT_TRUE(dataset.read(i, got).ok());
        ASSERT_EQ(got.fields.size(), 1u);
        EXPECT_TRUE(as_text(got.fields[0].bytes) == samples[i].fields[0].second) << i;
      }
      return;
    }
    for (uint64_t n = 0; n < samples.size(); ++n) {
      const TestSample& sample = samples[n];
      auto found = GetParam().format->keeps_order ? Result<uint64_t>(n) : dataset.find(sample.key);
      ASSERT_TRUE(found.ok()) << found.status().text();
      const uint64_t i = *found;
      EXPECT_EQ(std::string(*dataset.key(i)), sample.key);
      Status status = dataset.read(i, got);
      ASSERT_TRUE(status.ok()) << sample.key << ": " << status.text();
      ASSERT_EQ(got.fields.size(), sample.fields.size()) << sample.key;
      for (const auto& [name, bytes] : sample.fields) {
        uint32_t field = dataset.manifest().field_id(name);
        auto at = std::find_if(got.fields.begin(), got.fields.end(),
                               [&](const SampleBytes::Field& one) { return one.field == field; });
        ASSERT_NE(at, got.fields.end()) << sample.key << "." << name;
        EXPECT_TRUE(as_text(at->bytes) == bytes) << sample.key << "." << name;
        EXPECT_EQ(std::string(*dataset.path(i, field)), sample.key + "." + name);
      }
    }
  }

  // Writes `samples` and reads them back.
  void round_trip(const std::vector<TestSample>& samples) {
    write(samples);
    auto dataset = open(storage_);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    expect_same(**dataset, samples);
  }

  std::vector<std::string> files() { return visible(storage_, "/set"); }
};

TEST_P(ContainerConformance, RoundTripsAllKindsOfFields) {
  round_trip({
      {"text", {{"cls", "1"}, {"json", "{\"a\": 1}"}, {"txt", "grüße\n"}}},
      {"binary", {{"cls", "2"}, {"jpg", noise(100'000, 5)}, {"seg.png", noise(513, 6)}}},
      {"block", {{"bin", std::string(512, '\0')}, {"cls", "3"}, {"npy", std::string(4096, 'z')}}},
  });
}

TEST_P(ContainerConformance, EmptyFieldIsKeptAndEmpty) {
  round_trip({{"a", {{"cls", "0"}, {"txt", ""}}}, {"b", {{"cls", "1"}, {"txt", ""}}}});
}

TEST_P(ContainerConformance, OneSampleIsEnough) { round_trip({{"only", {{"jpg", noise(10, 1)}}}}); }

TEST_P(ContainerConformance, ContainerWithoutSamplesHasNone) { round_trip({}); }

TEST_P(ContainerConformance, SamplesMayLackFields) {
  round_trip({{"a", {{"jpg", "1"}}}, {"b", {{"jpg", "2"}, {"txt", "3"}}}, {"c", {{"txt", "4"}}}});
}

TEST_P(ContainerConformance, KeysMayBeLongAndInAnyLanguage) {
  round_trip({
      {std::string(90, 'k'), {{"jpg", "1"}}},
      {"größe/数据_集/с пробелом", {{"jpg", "2"}}},
      {"d/" + std::string(80, 'e') + "/f", {{"jpg", "3"}}},
  });
}

TEST_P(ContainerConformance, LabelsComeFromClsFields) {
  write(few_samples());
  auto dataset = open(storage_);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  auto labels = (*dataset)->labels();
  EXPECT_EQ(std::vector<int64_t>(labels.begin(), labels.end()), (std::vector<int64_t>{7, -3, 12}));
}

TEST_P(ContainerConformance, TenThousandTinySamplesAreAllThere) {
  std::vector<TestSample> samples;
  for (int i = 0; i < 10'000; ++i) {
    std::string number = std::to_string(i);
    samples.push_back({"s" + number, {{"cls", number}, {"txt", "text of " + number}}});
  }
  round_trip(samples);
}

TEST_P(ContainerConformance, PlainExtentsAreTheBytes) {
  std::vector<TestSample> samples = few_samples();
  write(samples);
  auto dataset = open(storage_);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  for (uint64_t i = 0; i < samples.size(); ++i) {
    for (const auto& [name, bytes] : samples[i].fields) {
      FieldLocation place = (*dataset)->locate(i, (*dataset)->manifest().field_id(name));
      ASSERT_TRUE(place.present);
      EXPECT_EQ(place.length, bytes.size());
      if (!place.plain) continue;
      auto file = (*dataset)->shard_file(place.shard);
      ASSERT_TRUE(file.ok()) << file.status().text();
      std::string got(bytes.size(), '\0');
      ASSERT_TRUE(storage_.read(**file, place.offset, std::as_writable_bytes(std::span(got))).ok());
      EXPECT_TRUE(got == bytes) << samples[i].key << "." << name;
    }
  }
}

TEST_P(ContainerConformance, ManySamplesAtOnceComeInTheOrderAsked) {
  std::vector<TestSample> samples = few_samples();
  write(samples);
  auto dataset = open(storage_);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  std::vector<uint64_t> wanted = {2, 0, 1, 0};
  size_t seen = 0;
  uint32_t field = (*dataset)->manifest().field_id("jpg");
  Status status =
      (*dataset)->read_many(wanted, true, [&](size_t position, const Status& read, const SampleBytes& bytes) {
        EXPECT_EQ(position, seen++);
        EXPECT_TRUE(read.ok()) << read.text();
        for (const auto& one : bytes.fields) {
          if (one.field != field) continue;
          EXPECT_TRUE(as_text(one.bytes) == samples[wanted[position]].fields[1].second);
        }
        return true;
      });
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(seen, wanted.size());
}

TEST_P(ContainerConformance, IsRecognisedByContent) {
  write(few_samples());
  EXPECT_TRUE(GetParam().format->recognise(storage_, path_));
  put(storage_, "/set/other", "no container at all, but long enough to hold some header: " + noise(2000, 9));
  EXPECT_FALSE(GetParam().format->recognise(storage_, "/set/other"));
}

TEST_P(ContainerConformance, TruncationAtAnyByteIsCorruptOrLosesNothingSilently) {
  std::vector<TestSample> samples = few_samples();
  write(samples);
  auto whole = open(storage_);
  ASSERT_TRUE(whole.ok()) << whole.status().text();
  for (const std::string& name : files()) {
    std::string file = "/set/" + name, bytes = get(storage_, file);
    const uint64_t step = few_will_do() ? 7 : 1;
    for (uint64_t length = 0; length < bytes.size(); length += step) {
      MemoryStorage cut;
      for (const std::string& other : files()) put(cut, "/set/" + other, get(storage_, "/set/" + other));
      put(cut, file, bytes.substr(0, length));
      auto dataset = open(cut);
      if (!dataset.ok()) {
        EXPECT_EQ(dataset.status().code(), Code::corrupt) << length << ": " << dataset.status().text();
        continue;
      }
      std::vector<uint64_t> ends;
      std::vector<TestSample> left;
      for (uint64_t i = 0; i < samples.size(); ++i) {
        TestSample still{samples[i].key, {}};
        for (const auto& [field_name, data] : samples[i].fields) {
          FieldLocation place = (*whole)->locate(i, (*whole)->manifest().field_id(field_name));
          uint64_t end = place.offset + place.length;
          if (GetParam().format->layout) end += GetParam().format->layout->padding(place.length);
          ends.push_back(end);
          if (end <= length) still.fields.push_back({field_name, data});
        }
        if (!still.fields.empty()) left.push_back(still);
      }
      ASSERT_TRUE(GetParam().still_whole && GetParam().still_whole(length, ends))
          << name << " cut to " << length << " of " << bytes.size() << " bytes is taken as whole";
      expect_same(**dataset, left);
    }
  }
}

TEST_P(ContainerConformance, FlippedBitsNeverCrash) {
  std::vector<TestSample> samples = few_samples();
  write(samples);
  std::mt19937 rng(11);
  std::vector<std::string> names = files();
  const int rounds = count_of(50, 500, 3000);
  for (int round = 0; round < rounds; ++round) {
    std::string file = "/set/" + names[rng() % names.size()], bytes = get(storage_, file);
    size_t at = rng() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng() % 8));
    MemoryStorage flipped;
    for (const std::string& other : names) put(flipped, "/set/" + other, get(storage_, "/set/" + other));
    put(flipped, file, bytes);
    auto dataset = open(flipped);
    if (!dataset.ok()) continue;
    SampleBytes got;
    for (uint64_t i = 0; i < (*dataset)->samples(); ++i) {
      Status status = (*dataset)->read(i, got);
      EXPECT_TRUE(status.ok() || status.code() == Code::corrupt) << status.text();
    }
  }
}

TEST_P(ContainerConformance, FailureOfTheStorageIsHandedOn) {
  write(few_samples());
  CountingStorage counted(storage_);
  ASSERT_TRUE(index(counted).ok());
  ASSERT_GT(counted.reads_done(), 0u);
  for (uint64_t n = 1; n <= counted.reads_done(); ++n) {
    FaultyStorage faulty(storage_, {.fail_read = n});
    auto indexed = index(faulty);
    ASSERT_FALSE(indexed.ok()) << "read " << n << " of " << counted.reads_done() << " failed unnoticed";
    EXPECT_EQ(indexed.status().code(), Code::io) << indexed.status().text();
  }
}

TEST_P(ContainerConformance, TwoContainersMakeOneDataset) {
  std::vector<TestSample> first = few_samples(), second = {{"c/fourth", {{"cls", "4"}, {"jpg", "j"}}}};
  ASSERT_TRUE(storage_.make_folder("/set").ok());
  ASSERT_TRUE(GetParam().write(storage_, "/set/1", first).ok());
  ASSERT_TRUE(GetParam().write(storage_, "/set/2", second).ok());
  IndexBuilder builder;
  for (const char* path : {"/set/1", "/set/2"}) {
    Status status = GetParam().format->index(storage_, path, {}, builder);
    ASSERT_TRUE(status.ok()) << status.text();
  }
  auto dataset = Dataset::from_memory(storage_, "", builder.finish());
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  first.insert(first.end(), second.begin(), second.end());
  expect_same(**dataset, first);
}

}  // namespace packtrain
