#include <gtest/gtest.h>

#include <algorithm>

#include "base/hash.h"
#include "base/little_endian.h"
#include "format/zip_records.h"
#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

struct MadeEntry {
  std::string name, data;
  std::string local_extra = {};
  uint16_t method = 0;
  uint32_t mode = 0100644;
  uint32_t raw = UINT32_MAX;  // instead of the data's size
};

// Offsets within a local header and a directory entry.
constexpr size_t kLocalExtraLength = 28, kLocalMethod = 8, kCentralFlags = 8, kCentralMethod = 10,
                 kCentralRaw = 24, kCentralDisk = 34, kCentralMode = 40, kCentralOffset = 42;

// An archive with stored entries, then changed as the entries ask for.
std::string make_zip(const std::vector<MadeEntry>& entries, const std::string& comment = "") {
  std::string bytes, directory;
  for (const MadeEntry& entry : entries) {
    ZipWritten written{.name = entry.name,
                       .crc32 = crc32(as_bytes(entry.data)),
                       .stored = entry.data.size(),
                       .raw = entry.data.size(),
                       .local_offset = bytes.size()};
    std::string local(zip_local_bytes(written), '\0'), central(zip_central_bytes(written), '\0');
    write_zip_local(written, reinterpret_cast<std::byte*>(local.data()));
    write_zip_central(written, reinterpret_cast<std::byte*>(central.data()));
    store_le<uint16_t>(local.data() + kLocalExtraLength, static_cast<uint16_t>(entry.local_extra.size()));
    store_le<uint16_t>(local.data() + kLocalMethod, entry.method);
    store_le<uint16_t>(central.data() + kCentralMethod, entry.method);
    store_le<uint16_t>(central.data() + kCentralMode, static_cast<uint16_t>(entry.mode));
    if (entry.raw != UINT32_MAX) store_le<uint32_t>(central.data() + kCentralRaw, entry.raw);
    bytes += local + entry.local_extra + entry.data;
    directory += central;
  }
  std::string end(zip_end_bytes(entries.size(), bytes.size(), directory.size()), '\0');
  write_zip_end(entries.size(), bytes.size(), directory.size(), reinterpret_cast<std::byte*>(end.data()));
  store_le<uint16_t>(end.data() + end.size() - 2, static_cast<uint16_t>(comment.size()));
  return bytes + directory + end + comment;
}

class ZipTest : public testing::Test {
 protected:
  Result<std::shared_ptr<Dataset>> index(const std::string& bytes, std::vector<Damage>* damage = nullptr) {
    put(storage_, "x.zip", bytes);
    IndexBuilder builder;
    IndexOptions options;
    options.recover = damage != nullptr;
    options.damage = damage;
    PACKTRAIN_TRY(find_format("zip")->index(storage_, "x.zip", options, builder));
    return Dataset::from_memory(storage_, "", builder.finish());
  }

  std::string told(const std::string& bytes, std::vector<Damage>* damage = nullptr) {
    auto dataset = index(bytes, damage);
    if (!dataset.ok()) return dataset.status().text();
    std::string text;
    for (uint64_t i = 0; i < (*dataset)->samples(); ++i) {
      text.append(*(*dataset)->key(i)).append(":");
      SampleBytes got;
      Status status = (*dataset)->read(i, got);
      if (!status.ok()) return status.text();
      for (const auto& field : got.fields) {
        text +=
            " " + (*dataset)->manifest().fields[field.field].name + "=" + std::string(as_text(field.bytes));
      }
      text += "\n";
    }
    return text;
  }

  Code code_of(const std::string& bytes) { return index(bytes).status().code(); }

  // The bytes of the directory entry with running number `entry`.
  static char* central(std::string& bytes, int entry) {
    size_t at = 0;
    for (int i = 0; i <= entry; ++i) at = bytes.find("PK\1\2", at + 1);
    return bytes.data() + at;
  }

  MemoryStorage storage_;
};

TEST_F(ZipTest, LocalExtraFieldMayDifferFromTheDirectory) {
  EXPECT_EQ(told(make_zip({{"a.txt", "one", std::string("XX\5\0abcde", 9)}, {"b.txt", "two"}})),
            "a: txt=one\nb: txt=two\n");
}

TEST_F(ZipTest, MembersOfASampleMayLieApart) {
  EXPECT_EQ(told(make_zip({{"a.jpg", "1"}, {"b.jpg", "2"}, {"a.cls", "3"}, {"b.cls", "4"}})),
            "a: cls=3 jpg=1\nb: cls=4 jpg=2\n");
}

TEST_F(ZipTest, FoldersAndLinksAreSkipped) {
  EXPECT_EQ(told(make_zip({{"d/", ""}, {"d/link.txt", "a.txt", "", 0, 0120777}, {"d/a.txt", "1"}})),
            "d/a: txt=1\n");
}

TEST_F(ZipTest, LinksAreNamedAndWhatHasBytesIsAFileWhateverItsModeSays) {
  put(storage_, "x.zip", make_zip({{"d/link.txt", "a.txt", "", 0, 0120777}, {"d/a.txt", "1"}}));
  IndexBuilder builder;
  MembersLeftOut links;
  IndexOptions options;
  options.links = &links;
  ASSERT_TRUE(find_format("zip")->index(storage_, "x.zip", options, builder).ok());
  EXPECT_EQ(links.count, 1u);
  EXPECT_EQ(links.names, std::vector<std::string>{"d/link.txt"});
  EXPECT_EQ(told(make_zip({{"pipe", "", "", 0, 0010644},
                           {"folder", "", "", 0, 0040755},
                           {"a.txt", "1", "", 0, 0020644},
                           {"b.txt", "2", "", 0, 0177777},
                           {"c.txt", "", "", 0, 0177777}})),
            "a: txt=1\nb: txt=2\nc: txt=\n");
}

TEST_F(ZipTest, CommentAndDataInFrontAreTolerated) {
  std::string zip = make_zip({{"a.txt", "one"}, {"b.txt", "two"}}, "a comment with PK\5\6 in it");
  EXPECT_EQ(told(zip), "a: txt=one\nb: txt=two\n");
  EXPECT_EQ(told("#!/bin/sh\nexit 0\n" + zip), "a: txt=one\nb: txt=two\n");
}

TEST_F(ZipTest, ClassFoldersBecomeLabels) {
  auto dataset = index(make_zip({{"set/dog/1.jpg", "1"}, {"set/cat/1.jpg", "2"}}));
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->manifest().classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ((*dataset)->label(0), 1);
  EXPECT_EQ((*dataset)->label(1), 0);
}

TEST_F(ZipTest, WrongCrcIsFoundWhenRead) {
  std::string zip = make_zip({{"a.txt", "one"}});
  zip[zip.find("one")] = 'O';
  auto dataset = index(zip);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  SampleBytes got;
  EXPECT_EQ((*dataset)->read(0, got).code(), Code::corrupt);
}

TEST_F(ZipTest, DamagedLabelIsCorrupt) {
  std::string zip = make_zip({{"a.cls", "123"}});
  zip[zip.find("123")] = '9';
  EXPECT_EQ(code_of(zip), Code::corrupt);
}

TEST_F(ZipTest, EncryptedSplitAndStrangeEntriesAreUnsupportedAndNamed) {
  std::string encrypted = make_zip({{"a.txt", "one"}, {"secret.txt", "two"}});
  central(encrypted, 1)[kCentralFlags] |= 1;
  std::string split = make_zip({{"secret.txt", "one"}});
  central(split, 0)[kCentralDisk] = 1;
  std::string strange = make_zip({{"secret.txt", "one", "", 14}});
  for (const std::string& zip : {encrypted, split, strange}) {
    auto dataset = index(zip);
    EXPECT_EQ(dataset.status().code(), Code::unsupported);
    EXPECT_NE(dataset.status().text().find("secret.txt"), std::string::npos) << dataset.status().text();
  }
}

TEST_F(ZipTest, SplitArchiveIsUnsupported) {
  std::string zip = make_zip({{"a.txt", "one"}});
  zip[zip.size() - kZipEndBytes + 4] = 1;
  EXPECT_EQ(code_of(zip), Code::unsupported);
}

TEST_F(ZipTest, LocalHeaderThatDisagreesIsCorrupt) {
  for (size_t at : {size_t{0}, kLocalMethod, kZipLocalBytes}) {  // signature, method, name
    std::string zip = make_zip({{"a.txt", "one"}, {"b.txt", "two"}});
    zip[at] ^= 4;
    EXPECT_EQ(code_of(zip), Code::corrupt) << at;
    std::vector<Damage> damage;
    EXPECT_EQ(told(zip, &damage), "b: txt=two\n");
    EXPECT_EQ(damage.size(), 1u);
  }
}

TEST_F(ZipTest, OverlapsAndWaysOutAreCorrupt) {
  std::string overlap = make_zip({{"a.txt", "one"}, {"a.txt", "two"}});
  store_le<uint32_t>(central(overlap, 1) + kCentralOffset, 0);
  EXPECT_EQ(code_of(overlap), Code::corrupt);
  std::string outside = make_zip({{"a.txt", "one"}});
  store_le<uint32_t>(central(outside, 0) + kCentralOffset, 0x7FFFFFFF);
  EXPECT_EQ(code_of(outside), Code::corrupt);
  std::string into_directory = make_zip({{"a.txt", "one", std::string(2, 'x')}});
  store_le<uint16_t>(into_directory.data() + kLocalExtraLength, 30);
  EXPECT_EQ(code_of(into_directory), Code::corrupt);
}

TEST_F(ZipTest, ImpossibleRatioIsCorrupt) {
  EXPECT_EQ(code_of(make_zip({{"bomb.bin", std::string(10, 'x'), "", 8, 0100644, 0x7FFFFFFF}})),
            Code::corrupt);
  EXPECT_EQ(code_of(make_zip({{"bomb.bin", std::string(10, 'x'), "", 93, 0100644, 0x7FFFFFFF}})),
            Code::corrupt);
  EXPECT_EQ(code_of(make_zip({{"bomb.bin", std::string(10, 'x'), "", 0, 0100644, 11}})), Code::corrupt);
}

TEST_F(ZipTest, WrongNumberOfEntriesIsCorrupt) {
  std::string zip = make_zip({{"a.txt", "one"}, {"b.txt", "two"}});
  zip[zip.size() - kZipEndBytes + 10] = 1;
  EXPECT_EQ(code_of(zip), Code::corrupt);
}

TEST_F(ZipTest, MoreThan65535EntriesNeedAndGetZip64) {
  const Layout& layout = *find_format("zip")->layout;
  constexpr size_t kEntries = 70'000;
  std::vector<std::string> names;
  for (size_t i = 0; i < kEntries; ++i) names.push_back("s" + std::to_string(i) + ".txt");
  std::vector<LaidMember> members;
  uint64_t at = 0;
  for (const std::string& name : names) {
    members.push_back({name, at, 0, 0});
    at += layout.head_bytes(name, 0, at);
  }
  std::string bytes(at + layout.tail_bytes(members, at), '\0');
  auto span = std::as_writable_bytes(std::span(bytes));
  for (const LaidMember& member : members) {
    layout.write_head(member, span.subspan(member.offset, layout.head_bytes(member.name, 0, member.offset)));
  }
  layout.write_tail(members, at, span.subspan(at));
  EXPECT_NE(bytes.find("PK\6\6"), std::string::npos);
  auto dataset = index(bytes);
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->samples(), kEntries);
  auto shifted = index("prefix" + bytes);
  ASSERT_TRUE(shifted.ok()) << shifted.status().text();
  EXPECT_EQ((*shifted)->samples(), kEntries);
}

TEST(ZipRecordsTest, LargeAndFarEntriesGoThroughZip64) {
  ZipWritten written{.name = "a.bin",
                     .crc32 = 7,
                     .stored = uint64_t{5} << 32,
                     .raw = uint64_t{5} << 32,
                     .local_offset = uint64_t{6} << 32};
  std::vector<std::byte> central(zip_central_bytes(written)), local(zip_local_bytes(written));
  write_zip_central(written, central.data());
  write_zip_local(written, local.data());
  Bytes rest = central;
  auto entry = take_zip_entry(rest);
  ASSERT_TRUE(entry.ok()) << entry.status().text();
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(entry->name, "a.bin");
  EXPECT_EQ(entry->stored, written.stored);
  EXPECT_EQ(entry->raw, written.raw);
  EXPECT_EQ(entry->local_offset, written.local_offset);
  EXPECT_EQ(local.size(), kZipLocalBytes + 5 + 20);
  EXPECT_EQ(load_le<uint64_t>(local.data() + kZipLocalBytes + 5 + 4), written.raw);
}

TEST(ZipRecordsTest, NamesBeyondAsciiCarryTheUtf8Flag) {
  for (auto [name, flag] : {std::pair<std::string_view, uint16_t>{"a.txt", 0}, {"\xc3\xa4.txt", kZipUtf8}}) {
    ZipWritten written{.name = name};
    std::vector<std::byte> local(zip_local_bytes(written));
    write_zip_local(written, local.data());
    EXPECT_EQ(parse_zip_local(local)->flags, flag);
  }
}

TEST_F(ZipTest, DeflateMakesCompressibleEntriesSmallerAndStoresTheRest) {
  WriteSpec spec;
  spec.compress = "deflate";
  auto writer = find_format("zip")->create(storage_, "y.zip", spec);
  if (!writer.ok() && writer.status().code() == Code::unsupported) GTEST_SKIP() << writer.status().text();
  ASSERT_TRUE(writer.ok()) << writer.status().text();
  std::string text(100'000, 't');
  SampleToWrite::Field fields[] = {{"bin", as_bytes("q7")}, {"txt", as_bytes(text)}};
  ASSERT_TRUE((*writer)->add({.key = "a", .fields = fields}).ok());
  ASSERT_TRUE(visible(storage_).empty()) << "nothing is visible before finish";
  ASSERT_TRUE((*writer)->finish().ok());
  std::string bytes = get(storage_, "y.zip");
  EXPECT_LT(bytes.size(), 1000u);
  EXPECT_EQ(told(bytes), "a: bin=q7 txt=" + text + "\n");
}

TEST_F(ZipTest, UnfinishedWriterLeavesNothing) {
  {
    auto writer = find_format("zip")->create(storage_, "y.zip", {.compress = "none", .expected_bytes = 1000});
    ASSERT_TRUE(writer.ok()) << writer.status().text();
  }
  EXPECT_TRUE(visible(storage_, ".", /*parts=*/true).empty());
}

TEST_F(ZipTest, LocalHeadersAreReadTogether) {
  std::vector<MadeEntry> entries;
  for (int i = 0; i < 20'000; ++i) entries.push_back({"s" + std::to_string(i) + ".cls", std::to_string(i)});
  put(storage_, "x.zip", make_zip(entries));
  CountingStorage counted(storage_);
  IndexBuilder builder;
  ASSERT_TRUE(find_format("zip")->index(counted, "x.zip", {}, builder).ok());
  EXPECT_EQ(builder.samples(), 20'000u);
  EXPECT_LT(counted.reads_done(), 50u);
}

}  // namespace
}  // namespace packtrain
