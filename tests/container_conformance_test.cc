#include "tests/container_conformance.h"

#include <algorithm>

#include "base/json.h"
#include "base/little_endian.h"
#include "format/grouping.h"

namespace packtrain {
namespace {

// Tar: the end is marked by zeros that may be missing, so a cut between members shows nothing.
bool tar_still_whole(uint64_t length, const std::vector<uint64_t>& ends) {
  return length >= ends.back() || std::find(ends.begin(), ends.end(), length) != ends.end();
}

ContainerCase tar_case() {
  const Format* tar = find_format("webdataset");
  return {"tar", tar,
          [tar](Storage& storage, const std::string& path, const std::vector<TestSample>& samples) {
            return write_by_layout(*tar->layout, storage, path, samples);
          },
          tar_still_whole};
}

ContainerCase zip_stored_case() {
  const Format* zip = find_format("zip");
  return {"zip_stored", zip,
          [zip](Storage& storage, const std::string& path, const std::vector<TestSample>& samples) {
            return write_by_layout(*zip->layout, storage, path, samples);
          }};
}

// A format that is written front to back, by its own writer.
ContainerCase written_case(const std::string& name, const std::string& compress,
                           bool nameless_images = false) {
  const Format* format = find_format(name);
  ContainerCase made{
      name + "_" + compress, format,
      [format, compress](Storage& storage, const std::string& path, const std::vector<TestSample>& samples) {
        return write_by_writer(*format, compress, storage, path, samples);
      }};
  made.nameless_images = nameless_images;
  return made;
}

// Arrow's file form, and its stream form: the same messages without head and footer.
ContainerCase arrow_case(bool stream) {
  const Format* arrow = find_format("arrow");
  ContainerCase made{stream ? "arrow_stream" : "arrow_file", arrow,
                     [arrow, stream](Storage& storage, const std::string& path,
                                     const std::vector<TestSample>& samples) -> Status {
                       if (!stream) return write_by_writer(*arrow, "none", storage, path, samples);
                       PACKTRAIN_TRY(write_by_writer(*arrow, "none", storage, path + ".file", samples));
                       PACKTRAIN_ASSIGN(file, read_whole(storage, path + ".file"));
                       PACKTRAIN_TRY(storage.remove(path + ".file"));
                       const auto footer = load_le<int32_t>(file.data() + file.size() - 10);
                       return write_whole(
                           storage, path,
                           as_bytes(file).subspan(8, file.size() - 18 - static_cast<size_t>(footer)));
                     }};
  made.nameless_images = true;
  return made;
}

// A container that exists here only, with all that hot rows cannot express: a hundred samples share one
// compressed block, and the fields of one sample lie in two files.
//
//   PATH         blocks: the first field of up to 100 samples each, joined and compressed;
//                directory: JSON; then u64 its length, u64 its XXH3
//   PATH.second  all other fields, one behind the other
constexpr size_t kSamplesPerBlock = 100;
constexpr size_t kTrailerBytes = 16;

Pipeline block_pipeline() {
  for (const CodecInfo& codec : codecs()) {
    bool of_blocks = codec.name == "deflate" || codec.name == "zstd";
    if (codec.compiled_in && of_blocks) return {{std::string(codec.name)}};
  }
  return {};
}

Status write_shared_blocks(Storage& storage, const std::string& path,
                           const std::vector<TestSample>& samples) {
  std::string first, second;
  Json blocks = Json::array(), rows = Json::array();
  for (size_t from = 0; from < samples.size(); from += kSamplesPerBlock) {
    size_t to = std::min(from + kSamplesPerBlock, samples.size());
    std::string raw;
    for (size_t i = from; i < to; ++i) {
      const auto& fields = samples[i].fields;
      Json row = Json::object();
      row.set("key", samples[i].key).set("block", uint64_t{from / kSamplesPerBlock});
      row.set("name", fields[0].first).set("start", uint64_t{raw.size()});
      row.set("length", uint64_t{fields[0].second.size()});
      raw += fields[0].second;
      Json others = Json::array();
      for (size_t f = 1; f < fields.size(); ++f) {
        Json other = Json::object();
        other.set("name", fields[f].first).set("offset", uint64_t{second.size()});
        other.set("length", uint64_t{fields[f].second.size()});
        others.push(std::move(other));
        second += fields[f].second;
      }
      row.set("others", std::move(others));
      if (fields[0].first == "cls") {
        row.set("label", parse_label(as_bytes(fields[0].second)).value_or(kNoLabel));
      }
      rows.push(std::move(row));
    }
    PACKTRAIN_ASSIGN(stored, encode(block_pipeline(), as_bytes(raw)));
    Json block = Json::object();
    block.set("offset", uint64_t{first.size()}).set("stored", uint64_t{stored.size()});
    block.set("raw", uint64_t{raw.size()}).set("check", crc32c(as_bytes(raw)));
    blocks.push(std::move(block));
    first += as_text(stored);
  }
  Json directory = Json::object();
  directory.set("blocks", std::move(blocks)).set("rows", std::move(rows));
  directory.set("second", uint64_t{second.size()}).set("check", crc32c(as_bytes(second)));
  std::string text = directory.dump();
  char trailer[kTrailerBytes];
  store_le<uint64_t>(trailer, text.size());
  store_le<uint64_t>(trailer + 8, xxh64(as_bytes(text)));
  PACKTRAIN_TRY(write_whole(storage, path + ".second", as_bytes(second)));
  return write_whole(storage, path, as_bytes(first + text + std::string(trailer, sizeof trailer)));
}

Result<Json> read_shared_directory(Storage& storage, const File& file) {
  if (file.size() < kTrailerBytes) return Status(Code::corrupt, "trailer is cut short");
  std::byte trailer[kTrailerBytes];
  PACKTRAIN_TRY(storage.read(file, file.size() - kTrailerBytes, trailer));
  auto bytes = load_le<uint64_t>(trailer);
  if (bytes > file.size() - kTrailerBytes) return Status(Code::corrupt, "directory is cut short");
  std::vector<std::byte> text(bytes);
  PACKTRAIN_TRY(storage.read(file, file.size() - kTrailerBytes - bytes, text));
  if (xxh64(text) != load_le<uint64_t>(trailer + 8)) return Status(Code::corrupt, "directory is damaged");
  return Json::parse(as_text(text));
}

Status index_shared_blocks(Storage& storage, std::string_view path, const IndexOptions&, IndexBuilder& out) {
  std::string second_path = std::string(path) + ".second";
  PACKTRAIN_ASSIGN(file, storage.open(path));
  PACKTRAIN_ASSIGN(second_file, storage.open(second_path));
  PACKTRAIN_ASSIGN(directory, read_shared_directory(storage, *file));
  if (second_file->size() != directory["second"].as_uint()) {
    return Status(Code::corrupt, "is not the size its directory says").at(second_path);
  }
  ShardSpec spec{.path = std::string(path), .format = "shared", .bytes = file->size()};
  uint32_t first = out.add_shard(spec);
  spec.path = second_path;
  spec.bytes = second_file->size();
  uint32_t second = out.add_shard(spec);
  uint16_t pipeline = out.add_pipeline(block_pipeline());
  std::vector<uint64_t> blocks;
  for (const Json& block : directory["blocks"].items()) {
    blocks.push_back(out.add_block({.shard = first,
                                    .pipeline = pipeline,
                                    .check_kind = CheckKind::crc32c,
                                    .offset = block["offset"].as_uint(),
                                    .stored = block["stored"].as_uint(),
                                    .raw = block["raw"].as_uint(),
                                    .check = static_cast<uint32_t>(block["check"].as_uint())}));
  }
  for (const Json& row : directory["rows"].items()) {
    const std::string& key = row["key"].as_string();
    out.begin_sample(key);
    Slice slice{blocks.at(row["block"].as_uint()), row["start"].as_uint(), row["length"].as_uint()};
    const std::string& name = row["name"].as_string();
    out.add_field(name, std::span(&slice, 1), key + "." + name);
    for (const Json& other : row["others"].items()) {
      const std::string& other_name = other["name"].as_string();
      out.add_field(other_name, second, other["offset"].as_uint(), other["length"].as_uint(), CheckKind::none,
                    0, key + "." + other_name);
    }
    if (row.has("label")) out.set_label(row["label"].as_int());
    PACKTRAIN_TRY(out.end_sample());
  }
  return {};
}

const Format kSharedBlocks = {
    .name = "shared",
    .suffix = ".shared",
    .summary = "a test container",
    .recognise =
        [](Storage& storage, std::string_view path) {
          auto file = storage.open(path);
          return file.ok() && read_shared_directory(storage, **file).ok();
        },
    .index = index_shared_blocks,
    .layout = nullptr,
    .create = nullptr,
};

INSTANTIATE_TEST_SUITE_P(Arrow, ContainerConformance, testing::Values(arrow_case(false), arrow_case(true)));
INSTANTIATE_TEST_SUITE_P(Parquet, ContainerConformance,
                         testing::Values(written_case("parquet", "none", true)));
INSTANTIATE_TEST_SUITE_P(Tar, ContainerConformance, testing::Values(tar_case()));
INSTANTIATE_TEST_SUITE_P(Npz, ContainerConformance, testing::Values(written_case("npz", "none")));
INSTANTIATE_TEST_SUITE_P(Zarr, ContainerConformance,
                         testing::Values(written_case("zarr", "none"), written_case("zarr", "blosc"),
                                         written_case("zarr", "zstd")));
INSTANTIATE_TEST_SUITE_P(ZipStored, ContainerConformance, testing::Values(zip_stored_case()));
INSTANTIATE_TEST_SUITE_P(ZipWritten, ContainerConformance,
                         testing::Values(written_case("zip", "none"), written_case("zip", "deflate")));
INSTANTIATE_TEST_SUITE_P(Hdf5, ContainerConformance, testing::Values(written_case("hdf5", "none")));
INSTANTIATE_TEST_SUITE_P(Hdf5Vlen, ContainerConformance,
                         testing::Values(written_case("hdf5-vlen", "none", true)));
INSTANTIATE_TEST_SUITE_P(Lmdb, ContainerConformance, testing::Values(written_case("lmdb", "none")));
INSTANTIATE_TEST_SUITE_P(Squashfs, ContainerConformance,
                         testing::Values(written_case("squashfs", "none"), written_case("squashfs", "zstd"),
                                         written_case("squashfs", "deflate")));
INSTANTIATE_TEST_SUITE_P(SharedBlocks, ContainerConformance,
                         testing::Values(ContainerCase{"shared", &kSharedBlocks, write_shared_blocks}));

TEST(SharedBlocksTest, AHundredSamplesAreSlicesOfOneBlock) {
  MemoryStorage storage;
  std::vector<TestSample> samples;
  for (int i = 0; i < 250; ++i) {
    samples.push_back({"s" + std::to_string(i), {{"cls", std::to_string(i)}, {"txt", "t"}}});
  }
  ASSERT_TRUE(write_shared_blocks(storage, "x", samples).ok());
  IndexBuilder builder;
  ASSERT_TRUE(index_shared_blocks(storage, "x", {}, builder).ok());
  auto dataset = Dataset::from_memory(storage, "", builder.finish());
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().form, "general");
  uint32_t cls = (*dataset)->manifest().field_id("cls"), txt = (*dataset)->manifest().field_id("txt");
  std::vector<std::pair<Block, Slice>> first, last, other;
  ASSERT_TRUE((*dataset)->slices(0, cls, first).ok());
  ASSERT_TRUE((*dataset)->slices(99, cls, last).ok());
  ASSERT_TRUE((*dataset)->slices(99, txt, other).ok());
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].second.block, last[0].second.block);
  EXPECT_NE(last[0].first.shard, other[0].first.shard) << "two fields, two files";
}

}  // namespace
}  // namespace packtrain
