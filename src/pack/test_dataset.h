// A small dataset for tests, laid out as packtrain writes one, without packing anything. For tests alone,
// hence all in the header.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "io/test_storage.h"
#include "packtrain/format.h"
#include "packtrain/index.h"
#include "packtrain/storage.h"

namespace packtrain {

struct TestField {
  std::string name, bytes;
  std::string path;  // as recorded; empty: made by packtrain
};
struct TestSample {
  std::string key;
  std::vector<TestField> fields;
  int64_t label = 0;
};

// The bytes of a WebDataset shard, and its samples added to `builder`.
inline std::string lay_out_shard(IndexBuilder& builder, const std::string& name,
                                 const std::vector<TestSample>& samples) {
  const Layout& layout = *find_format("webdataset")->layout;
  std::string bytes;
  std::vector<LaidMember> members;
  std::vector<std::string> names;
  for (const TestSample& sample : samples) {
    for (const TestField& field : sample.fields) names.push_back(sample.key + "." + field.name);
  }
  size_t next_name = 0;
  std::vector<std::vector<uint64_t>> offsets;
  const auto extend = [&](uint64_t by) {
    bytes.resize(bytes.size() + by);
    return std::as_writable_bytes(std::span(bytes.data() + bytes.size() - by, by));
  };
  for (const TestSample& sample : samples) {
    offsets.emplace_back();
    for (const TestField& field : sample.fields) {
      const LaidMember member{names[next_name++], bytes.size(), field.bytes.size(),
                              crc32(as_bytes(field.bytes))};
      layout.write_head(member, extend(layout.head_bytes(member.name, member.size, member.offset)));
      offsets.back().push_back(bytes.size());
      bytes += field.bytes;
      bytes.append(layout.padding(field.bytes.size()), '\0');
      members.push_back(member);
    }
  }
  const uint64_t tail = bytes.size();
  layout.write_tail(members, tail, extend(layout.tail_bytes(members, tail)));

  ShardSpec spec;
  spec.path = name;
  spec.format = "webdataset";
  spec.bytes = bytes.size();
  const uint32_t shard = builder.add_shard(spec);
  for (size_t i = 0; i < samples.size(); ++i) {
    builder.begin_sample(samples[i].key);
    for (size_t j = 0; j < samples[i].fields.size(); ++j) {
      const TestField& field = samples[i].fields[j];
      builder.add_field(field.name, shard, offsets[i][j], field.bytes.size(), CheckKind::crc32c,
                        crc32c(as_bytes(field.bytes)), field.path);
    }
    builder.set_label(samples[i].label);
    EXPECT_TRUE(builder.end_sample().ok());
  }
  std::vector<uint32_t> checks;
  for (uint64_t at = 0; at < bytes.size(); at += kBlockBytes) {
    checks.push_back(crc32c(as_bytes(std::string_view(bytes).substr(at, kBlockBytes))));
  }
  builder.set_block_checks(shard, std::move(checks));
  return bytes;
}

// Writes what a builder made, with its manifest, into `folder`.
inline void put_index(Storage& storage, const std::string& folder, IndexBuilder& builder) {
  IndexBuilder::Finished finished = builder.finish();
  for (const auto& [name, bytes] :
       {std::pair<std::string, const std::string&>("index.npz", finished.index_npz),
        {"names.npz", finished.names_npz}}) {
    finished.manifest.files.push_back({name, bytes.size(), xxh128_hex(as_bytes(bytes))});
    put(storage, folder + "/" + name, bytes);
  }
  put(storage, folder + "/manifest.json", finished.manifest.encode());
}

// Shards, index, names, manifest and log in `folder`.
inline void put_dataset(Storage& storage, const std::string& folder,
                        const std::vector<std::vector<TestSample>>& shards,
                        std::vector<std::string> classes = {}) {
  IndexBuilder builder;
  builder.begin_split("train");
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = "train-00000" + std::to_string(i) + ".tar";
    put(storage, folder + "/" + name, lay_out_shard(builder, name, shards[i]));
  }
  builder.set_classes(std::move(classes));
  put_index(storage, folder, builder);
  put(storage, folder + "/pack.log.json", "{\"command\": \"none\"}\n");
}

// Samples with a photo of up to `bytes` bytes and a cls field, the same for the same seed.
inline std::vector<TestSample> make_samples(uint64_t count, uint64_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TestSample> samples;
  for (uint64_t i = 0; i < count; ++i) {
    TestSample sample;
    sample.label = static_cast<int64_t>(random() % 3);
    const std::string label = std::to_string(sample.label);
    sample.key = "class" + label + "/img" + std::to_string(seed) + "_" + std::to_string(i);
    std::string photo(random() % (bytes + 1), '\0');
    for (char& byte : photo) byte = static_cast<char>(random());
    sample.fields = {{"cls", label, ""}, {"jpg", std::move(photo), sample.key + ".JPG"}};
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace packtrain
