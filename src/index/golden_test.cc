// Datasets as every released version wrote them, in tests/golden: what was written once must be read for
// ever, and the same input must still give the same bytes. To add a version, run this program with
// PACKTRAIN_WRITE_GOLDEN=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/hash.h"
#include "packtrain/index.h"

namespace packtrain {
namespace {

const std::string kGolden = std::string(PACKTRAIN_SOURCE_DIR) + "/tests/golden/";

// Payload that needs no file: sample i's text is its number, spelled out in the shard.
std::string shard_bytes() {
  std::string bytes;
  for (int i = 0; i < 10; ++i) bytes += "text of sample " + std::to_string(i) + ";";
  return bytes;
}

IndexBuilder::Finished build(bool general) {
  const std::string shard = shard_bytes();
  constexpr uint64_t kEach = 17;
  IndexBuilder builder;
  const uint32_t number =
      builder.add_shard({.path = "data.bin", .format = "webdataset", .bytes = shard.size()});
  builder.set_block_checks(number, {crc32c(as_bytes(shard))});
  const uint64_t block = builder.add_block({.shard = number,
                                            .check_kind = CheckKind::crc32c,
                                            .stored = shard.size(),
                                            .raw = shard.size(),
                                            .check = crc32c(as_bytes(shard))});
  builder.begin_split("train");
  for (uint64_t i = 0; i < 10; ++i) {
    if (i == 8) builder.begin_split("val");
    builder.begin_sample("class/sample" + std::to_string(i));
    builder.set_label(static_cast<int64_t>(i % 3) - 1);
    if (general) {
      const Slice slices[] = {{block, i * kEach, 8}, {block, i * kEach + 8, kEach - 8}};
      builder.add_field("txt", slices, "original " + std::to_string(i));
    } else {
      const std::string_view text = std::string_view(shard).substr(i * kEach, kEach);
      builder.add_field("txt", number, i * kEach, kEach, CheckKind::crc32c, crc32c(as_bytes(text)),
                        "original " + std::to_string(i));
      if (i != 4)
        builder.add_field("cls", number, i * kEach + 15, 1, CheckKind::crc32c,
                          crc32c(as_bytes(text.substr(15, 1))), "");
    }
    builder.set_image_size(static_cast<uint32_t>(100 + i), 50);
    EXPECT_TRUE(builder.end_sample().ok());
  }
  builder.set_classes({"minus", "zero", "one"});
  IndexBuilder::Finished finished = builder.finish();
  finished.manifest.files = {
      {"index.npz", finished.index_npz.size(), xxh128_hex(as_bytes(finished.index_npz))},
      {"names.npz", finished.names_npz.size(), xxh128_hex(as_bytes(finished.names_npz))}};
  finished.manifest.source_json = R"({"format": "webdataset", "order": "source"})";
  return finished;
}

class GoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTest, IsReadAndWrittenAsEver) {
  const std::string_view version = GetParam();
  const bool general = version.ends_with("general");
  const std::string folder = kGolden + GetParam();
  IndexBuilder::Finished finished = build(general);
  // The first manifests did not bind names.npz.
  if (!version.starts_with("v1-bound")) finished.manifest.names_directory_hash.clear();
  if (std::getenv("PACKTRAIN_WRITE_GOLDEN")) {
    ASSERT_TRUE(posix_storage().make_folder(folder).ok());
    WriteOptions replace;
    replace.replace = true;
    ASSERT_TRUE(write_whole(posix_storage(), folder + "/data.bin", as_bytes(shard_bytes()), replace).ok());
    ASSERT_TRUE(
        write_whole(posix_storage(), folder + "/index.npz", as_bytes(finished.index_npz), replace).ok());
    ASSERT_TRUE(
        write_whole(posix_storage(), folder + "/names.npz", as_bytes(finished.names_npz), replace).ok());
    ASSERT_TRUE(
        write_whole(posix_storage(), folder + "/manifest.json", as_bytes(finished.manifest.encode()), replace)
            .ok());
  }
  auto dataset = Dataset::open(posix_storage(), folder);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().form, general ? "general" : "rows");
  ASSERT_EQ((*dataset)->samples(), 10u);
  EXPECT_EQ((*dataset)->manifest().splits[1].first, 8u);
  SampleBytes bytes;
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE((*dataset)->read(i, bytes).ok()) << i;
    EXPECT_EQ(as_text(bytes.fields.back().bytes), "text of sample " + std::to_string(i) + ";");
    EXPECT_EQ(bytes.fields.size(), general || i == 4 ? 1u : 2u);
    EXPECT_EQ((*dataset)->label(i), static_cast<int64_t>(i % 3) - 1);
    EXPECT_EQ(*(*dataset)->find("class/sample" + std::to_string(i)), i);
    EXPECT_EQ(*(*dataset)->path(i, (*dataset)->manifest().field_id("txt")), "original " + std::to_string(i));
    EXPECT_EQ((*dataset)->image_size(i).first, 100 + i);
  }
  EXPECT_EQ(read_whole(posix_storage(), folder + "/index.npz").value(), finished.index_npz);
  EXPECT_EQ(read_whole(posix_storage(), folder + "/names.npz").value(), finished.names_npz);
  EXPECT_EQ(read_whole(posix_storage(), folder + "/manifest.json").value(), finished.manifest.encode());
}

INSTANTIATE_TEST_SUITE_P(Versions, GoldenTest,
                         testing::Values("v1-rows", "v1-general", "v1-bound-rows", "v1-bound-general"),
                         [](const auto& version) {
                           std::string name = std::string(version.param).substr(3);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace packtrain
