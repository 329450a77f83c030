#include <cstring>

#include "base/hash.h"
#include "format/tar_header.h"
#include "format/zip_records.h"
#include "pack/archive_stream.h"
#include "pack/scan_test_support.h"
#include "pack/test_archives.h"
#include "packtrain/codec.h"

namespace packtrain {
namespace {

using ArchivedFiles = std::vector<ArchivedFile>;

std::string zip_of(const ArchivedFiles& files) {
  std::string zip, directory;
  for (const ArchivedFile& file : files) {
    ZipWritten entry;
    entry.name = file.name;
    entry.crc32 = crc32(as_bytes(file.bytes));
    entry.stored = entry.raw = file.bytes.size();
    entry.local_offset = zip.size();
    std::vector<std::byte> record(zip_local_bytes(entry));
    write_zip_local(entry, record.data());
    zip += std::string(as_text(record)) + file.bytes;
    record.resize(zip_central_bytes(entry));
    write_zip_central(entry, record.data());
    directory += as_text(record);
  }
  std::vector<std::byte> end(zip_end_bytes(files.size(), zip.size(), directory.size()));
  write_zip_end(files.size(), zip.size(), directory.size(), end.data());
  return zip + directory + std::string(as_text(end));
}

// The bytes of every cell that lies in a container.
std::vector<std::string> contents(const Catalog& catalog) {
  std::vector<std::string> all;
  for (const Cell& cell : catalog.cells) {
    if (cell.origin != Origin::container) continue;
    std::vector<std::byte> bytes;
    const Status read = catalog.containers[cell.source]->read(cell.where, cell.inner_field, bytes);
    EXPECT_TRUE(read.ok()) << read.text();
    EXPECT_EQ(bytes.size(), cell.size);
    all.emplace_back(as_text(bytes));
  }
  return all;
}

const ArchivedFiles kTree = {
    {"photos/dog/2.jpg", "two"},       {"photos/cat/1.jpg", "one"},        {"photos/cat/._1.jpg", "no"},
    {"photos/dog/deep/3.seg.png", ""}, {"photos/dog/deep/3.jpg", "three"},
};
const Lines kTreeSamples = {
    "train/0 cat/1: cls='0' jpg=photos/cat/1.jpg",
    "train/1 dog/2: cls='1' jpg=photos/dog/2.jpg",
    "train/1 dog/deep/3: cls='1' jpg=photos/dog/deep/3.jpg seg.png=photos/dog/deep/3.seg.png",
};

TEST(ArchiveSourceTest, ZipOfATree) {
  MemoryStorage storage;
  put(storage, "/photos.zip", zip_of(kTree));
  const Catalog catalog = scan_ok(storage, "/photos.zip");
  EXPECT_EQ(described(catalog), kTreeSamples);
  EXPECT_EQ(contents(catalog), (Lines{"one", "two", "three", ""}));
  EXPECT_EQ(catalog.skipped.hidden, 1U);
}

TEST(ArchiveSourceTest, ZipKeepsFilesThatAreNoSamplesOfItsIndex) {
  MemoryStorage storage;
  put(storage, "/a.zip",
      zip_of({{"c/README", "read me"}, {"c/1.jpg", "one"}, {"c/.hidden", "no"}, {"c/d.", "dot"}}));
  const Catalog catalog = scan_ok(storage, "/a.zip");
  EXPECT_EQ(described(catalog),
            (Lines{"train/0 c/1: cls='0' jpg=c/1.jpg", "train/0 c/README: bin=c/README cls='0'",
                   "train/0 c/d.: bin=c/d. cls='0'"}));
  EXPECT_EQ(contents(catalog), (Lines{"one", "read me", "dot"}));
  EXPECT_EQ(catalog.skipped.hidden, 1U);
  EXPECT_EQ(recorded_path(catalog, catalog.cells[1]), "c/README");
}

TEST(ArchiveSourceTest, ZipOfATreeMayHoldNamesThatDifferInCase) {
  MemoryStorage storage;
  put(storage, "/a.zip", zip_of({{"c/a.JPG", "upper"}, {"c/a.jpg", "lower"}}));
  const Catalog catalog = scan_ok(storage, "/a.zip");
  EXPECT_EQ(catalog.samples.size(), 2U);
  EXPECT_EQ(contents(catalog).size(), 2U);
}

TEST(ArchiveSourceTest, TarWhoseStemsLieApartIsATree) {
  MemoryStorage storage;
  // As a folder's files come, in no order: two of one stem in a row, the third elsewhere.
  put(storage, "/a.tar",
      tar_of({{"c/1.jpg", "one"},
              {"c/1.txt", "text"},
              {"c/2.jpg", "two"},
              {"c/1.json", "{}"},
              {"d/3.jpg", "three"}}));
  const Catalog catalog = scan_ok(storage, "/a.tar");
  EXPECT_EQ(catalog.samples.size(), 3U);
  EXPECT_EQ(catalog.classes, (Lines{"c", "d"}));
}

TEST(ArchiveSourceTest, TarOfATree) {
  MemoryStorage storage;
  ArchivedFiles files = kTree;
  std::swap(files[3], files[1]);  // the two of one stem do not follow each other
  put(storage, "/sub/photos.tar", tar_of(files));
  const Catalog catalog = scan_ok(storage, "/sub/photos.tar");
  EXPECT_EQ(described(catalog), kTreeSamples);
  EXPECT_EQ(contents(catalog), (Lines{"one", "two", "three", ""}));
  EXPECT_EQ(catalog.skipped.hidden, 1U);
  EXPECT_EQ(catalog.files, 1U);
  EXPECT_EQ(recorded_path(catalog, catalog.cells[0]), "photos/cat/1.jpg");
}

TEST(ArchiveSourceTest, CompressedTarsAreStreamed) {
  MemoryStorage storage;
  const std::string tar = tar_of(kTree);
  for (const bool gzip : {true, false}) {
    if (!has_codec("deflate") || !has_codec("gzip") || !has_codec("zstd"))
      GTEST_SKIP() << "built without the libraries";
    put(storage, "/photos.tar.x", gzip ? gzip_of(tar) : zstd_of(tar));
    const Catalog catalog = scan_ok(storage, "/photos.tar.x");
    EXPECT_EQ(described(catalog), kTreeSamples);
    ASSERT_EQ(catalog.streams.size(), 1u);
    EXPECT_EQ(catalog.streams[0].path, "/photos.tar.x");
    EXPECT_EQ(catalog.cells[0].origin, Origin::stream);
    EXPECT_EQ(catalog.cells[0].where, 1U);  // the second file of the archive
    EXPECT_EQ(catalog.cells[0].size, 3U);
  }
}

TEST(ArchiveSourceTest, OddNamesOfATar) {
  MemoryStorage storage;
  const std::string long_name = "c/" + std::string(250, 'n') + ".jpg";
  put(storage, "/odd.tar",
      tar_of({{"./c/A.JPG", "1"},
              {"./c/A.jpg", "2"},
              {"c/none", "3"},
              {"c/\xff\n.jpg", "4"},
              {long_name, "5"},
              {"d/__x__/a.b.c.jpg", "6"},
              {"../up.jpg", "7"},
              {"/abs.jpg", "8"}}));
  const Catalog catalog = scan_ok(storage, "/odd.tar");
  EXPECT_EQ(described(catalog), (Lines{
                                    "train/- abs: jpg=abs.jpg",
                                    "train/0 ../up: cls='0' jpg=../up.jpg",
                                    "train/1 c/A.JPG: cls='1' jpg=c/A.JPG",
                                    "train/1 c/A: cls='1' jpg=c/A.jpg",
                                    "train/1 c/" + std::string(250, 'n') + ": cls='1' jpg=" + long_name,
                                    "train/1 c/none: bin=c/none cls='1'",
                                    "train/1 c/\xff\n: cls='1' jpg=c/\xff\n.jpg",
                                    "train/2 d/__x__/a.b.c: cls='2' jpg=d/__x__/a.b.c.jpg",
                                }));
  EXPECT_EQ(recorded_path(catalog, catalog.cells[1]), "_parent/up.jpg");
}

TEST(ArchiveSourceTest, NamesByPaxLinksAndRepeatedMembers) {
  MemoryStorage storage;
  const std::string pax = "20 path=c/pax/b.jpg\n";
  const std::string tar = tar_member("c/", "", '5') + tar_member("PaxHeaders/x", pax, 'x') +
                          tar_member("c/x", "pax") + tar_member("c/hard.jpg", "", '1') +
                          tar_member("c/soft.jpg", "", '2') + tar_member("c/a.jpg", "old") +
                          tar_member("c/d.jpg", "d") + tar_member("c/a.jpg", "new");
  put(storage, "/a.tar", tar);  // without end blocks
  const Catalog catalog = scan_ok(storage, "/a.tar");
  EXPECT_EQ(contents(catalog), (Lines{"new", "d", "pax"}));
  EXPECT_EQ(catalog.skipped.special, 2U);
  EXPECT_EQ(catalog.warnings.size(), 2U + 1U);  // links, repeated members, one folder of folders
}

TEST(ArchiveSourceTest, OfAMemberTwiceInASampleTheLastIsPacked) {
  MemoryStorage storage;
  const ArchivedFiles shard = {{"a.jpg", "old"}, {"a.jpg", "newer"}, {"a.cls", "3"}, {"b.cls", "1"},
                               {"b.jpg", "b"},   {"b.cls", "2"},     {"c.jpg", "c"}, {"c.cls", "4"}};
  put(storage, "/s.tar", tar_of(shard));
  Lines archives = {"/s.tar"};
  if (has_codec("gzip")) {
    put(storage, "/s.tar.gz", gzip_of(tar_of(shard)));
    archives.emplace_back("/s.tar.gz");
  }
  for (const std::string& archive : archives) {
    const Catalog catalog = scan_ok(storage, archive);
    EXPECT_EQ(described(catalog), (Lines{"train/3 a: cls=a.cls jpg=a.jpg", "train/2 b: cls=b.cls jpg=b.jpg",
                                         "train/4 c: cls=c.cls jpg=c.jpg"}));
    ASSERT_EQ(catalog.warnings.size(), 1U);
    EXPECT_NE(catalog.warnings[0].find("2 members"), std::string::npos) << catalog.warnings[0];
  }
  EXPECT_EQ(contents(scan_ok(storage, "/s.tar")), (Lines{"3", "newer", "2", "b", "4", "c"}));
}

TEST(ArchiveSourceTest, AStrayLabelLeavesATreeATree) {
  MemoryStorage storage;
  const ArchivedFiles tree = {
      {"ant/x.jpg", "x"}, {"ant/x.cls", "7"}, {"ant/y.jpg", "y"}, {"bee/z.jpg", "z"}, {"bee/w.jpg", "w"}};
  for (const ArchivedFile& file : tree) put(storage, "mix/" + file.name, file.bytes);
  const Catalog folder = scan_ok(storage, "mix");
  EXPECT_EQ(folder.classes, (Lines{"ant", "bee"}));
  EXPECT_EQ(folder.warnings.size(), 1U);
  put(storage, "/mix.tar", tar_of(tree));
  put(storage, "/mix.zip", zip_of(tree));
  Lines archives = {"/mix.tar", "/mix.zip"};
  if (has_codec("gzip")) {
    put(storage, "/mix.tar.gz", gzip_of(tar_of(tree)));
    archives.emplace_back("/mix.tar.gz");
  }
  for (const std::string& archive : archives) {
    const Catalog catalog = scan_ok(storage, archive);
    EXPECT_EQ(described(catalog), described(folder)) << archive;
    EXPECT_EQ(catalog.classes, folder.classes) << archive;
    ASSERT_EQ(catalog.warnings.size(), 1U);
    EXPECT_NE(catalog.warnings[0].find("source.cls"), std::string::npos) << catalog.warnings[0];
  }
}

TEST(ArchiveSourceTest, DamageInATarThatIsNotCompressedSaysWhatHelps) {
  MemoryStorage storage;
  std::string tar = tar_of(kTree);
  tar[2 * kTarBlock] = static_cast<char>(tar[2 * kTarBlock] ^ 1);
  put(storage, "/a.tar", tar);
  const Status status = scan(storage, scan_options({{"", "/a.tar"}})).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_NE(status.text().find("@ 1024"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("index --recover"), std::string::npos) << status.text();
}

TEST(ArchiveSourceTest, DamagedTarsAreErrorsWithTheOffset) {
  if (!has_codec("deflate") || !has_codec("gzip")) GTEST_SKIP() << "built without the libraries";
  MemoryStorage storage;
  const std::string tar = tar_of(kTree);
  const auto status = [&](const std::string& bytes) {
    put(storage, "/a.tar.gz", gzip_of(bytes));
    return scan(storage, scan_options({{"", "/a.tar.gz"}})).status();
  };
  std::string flipped = tar;
  flipped[2 * kTarBlock] = static_cast<char>(flipped[2 * kTarBlock] ^ 1);
  EXPECT_EQ(status(flipped).code(), Code::corrupt);
  EXPECT_NE(status(flipped).text().find("@ 1024"), std::string::npos) << status(flipped).text();
  EXPECT_EQ(status(tar.substr(0, kTarBlock + 1)).code(), Code::corrupt);      // inside data
  EXPECT_EQ(status(tar.substr(0, 2 * kTarBlock + 9)).code(), Code::corrupt);  // inside a header
  EXPECT_EQ(status("no archive").code(), Code::corrupt);
  EXPECT_EQ(status("").code(), Code::corrupt);
  EXPECT_EQ(status(tar + tar).code(), Code::corrupt);
  EXPECT_EQ(status(tar_member("s", "", 'S')).code(), Code::unsupported);
  const std::string gzip = gzip_of(tar);
  for (size_t end = 3; end < gzip.size(); end += 7) {
    put(storage, "/a.tar.gz", gzip.substr(0, end));
    EXPECT_EQ(scan(storage, scan_options({{"", "/a.tar.gz"}})).status().code(), Code::corrupt) << end;
  }
}

TEST(ArchiveSourceTest, ShardsKeepTheirSamples) {
  MemoryStorage storage;
  const ArchivedFiles shard = {{"k/1.cls", "7"}, {"k/1.jpg", "one"}, {"k/2.cls", "8"}, {"k/2.jpg", "two"}};
  put(storage, "/s-0.tar", tar_of(shard));
  const Lines samples = {"train/7 k/1: cls=k/1.cls jpg=k/1.jpg", "train/8 k/2: cls=k/2.cls jpg=k/2.jpg"};
  EXPECT_EQ(described(scan_ok(storage, "/s-0.tar")), samples);
  put(storage, "/s-1.tar", tar_of({{"3.jpg", "three"}, {"3.txt", "text"}}));
  const Catalog both = scan_ok(storage, scan_options({{"dev", "/s-{0..1}.tar"}}));
  EXPECT_EQ(described(both), (Lines{"dev/7 k/1: cls=k/1.cls jpg=k/1.jpg",
                                    "dev/8 k/2: cls=k/2.cls jpg=k/2.jpg", "dev/- 3: jpg=3.jpg txt=3.txt"}));
  EXPECT_EQ(contents(both).back(), "text");
  EXPECT_EQ(key_names(both), (Lines{"k/1", "k/2", "3"}));
  put(storage, "/l.zip", zip_of(shard));
  EXPECT_EQ(described(scan_ok(storage, "/l.zip")), samples);
}

TEST(ArchiveSourceTest, DatasetKeepsKeysSplitsClassesAndPaths) {
  MemoryStorage storage;
  IndexBuilder builder;
  put(storage, "/set/0.bin", "abcdef");
  ShardSpec spec;
  spec.path = "0.bin";
  spec.bytes = 6;
  const uint32_t shard = builder.add_shard(spec);
  builder.set_classes({"zebra", "ant"});
  uint64_t offset = 0;
  for (const char* split : {"train", "val"}) {
    builder.begin_split(split);
    builder.begin_sample(std::string("key-") + split);
    builder.add_field("jpg", shard, offset, 2, CheckKind::none, 0, std::string(split) + "/ü.jpg");
    builder.add_field("cls", shard, offset + 2, 1, CheckKind::none, 0, "");
    builder.set_label(offset == 0 ? 1 : 0);
    ASSERT_TRUE(builder.end_sample().ok());
    offset += 3;
  }
  auto finished = builder.finish();
  put(storage, "/set/index.npz", finished.index_npz);
  put(storage, "/set/names.npz", finished.names_npz);
  for (const auto& [name, bytes] :
       {std::pair("index.npz", &finished.index_npz), {"names.npz", &finished.names_npz}})
    finished.manifest.files.push_back({name, bytes->size(), xxh128_hex(as_bytes(*bytes))});
  put(storage, "/set/manifest.json", finished.manifest.encode());
  const Catalog catalog = scan_ok(storage, "/set");
  EXPECT_EQ(catalog.classes, (Lines{"zebra", "ant"}));
  EXPECT_EQ(described(catalog),
            (Lines{"train/1 key-train: cls= jpg=train/ü.jpg", "val/0 key-val: cls= jpg=val/ü.jpg"}));
  EXPECT_EQ(recorded_path(catalog, catalog.cells[0]), "");
  EXPECT_EQ(contents(catalog), (Lines{"c", "ab", "f", "de"}));
  EXPECT_EQ(scan(storage, scan_options({{"train", "/set"}})).status().code(), Code::invalid);

  put(storage, "/tree/bee/1.jpg", "x");
  const Catalog mixed = scan_ok(storage, scan_options({{"", "/set"}, {"", "/tree"}}));
  EXPECT_EQ(mixed.classes, (Lines{"ant", "bee", "zebra"}));
  EXPECT_EQ(mixed.samples[0].label, 0);
  EXPECT_EQ(mixed.samples[1].label, 2);
  EXPECT_EQ(recorded_path(mixed, mixed.cells[1]), "set/train/ü.jpg");
}

TEST(ArchiveStreamTest, ReadsWhatItIsAskedForAndSkipsTheRest) {
  if (!has_codec("deflate") || !has_codec("gzip")) GTEST_SKIP() << "built without the libraries";
  MemoryStorage storage;
  const std::string large(300000, 'L');
  put(storage, "/a.tar.gz", gzip_of(tar_of({{"1", "one"}, {"2", large}, {"3", "three"}})));
  put(storage, "/a.tar", tar_of({{"1", "one"}, {"2", large}, {"3", "three"}}));
  for (const char* path : {"/a.tar.gz", "/a.tar"}) {
    auto archive = ArchiveStream::open(storage, path);
    ASSERT_TRUE(archive.ok()) << archive.status().text();
    ArchiveStream::Member member;
    ASSERT_TRUE(*(*archive)->next(member));
    EXPECT_EQ(member.name, "1");
    ASSERT_TRUE(*(*archive)->next(member));
    std::vector<std::byte> some(1000);
    ASSERT_TRUE((*archive)->read(some).ok());
    EXPECT_EQ(as_text(some), large.substr(0, 1000));
    ASSERT_TRUE(*(*archive)->next(member));
    EXPECT_EQ(member.number, 2U);
    some.resize(5);
    ASSERT_TRUE((*archive)->read(some).ok());
    EXPECT_EQ(as_text(some), "three");
    EXPECT_FALSE(*(*archive)->next(member));
  }
}

}  // namespace
}  // namespace packtrain
