#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/little_endian.h"
#include "format/column_spool.h"
#include "format/npy_header.h"
#include "format/zip_records.h"
#include "format/zip_store.h"
#include "io/test_storage.h"
#include "packtrain/codec.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

using Shape = std::vector<uint64_t>;

template <class T>
std::string numbers(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string npy(std::string_view type, const Shape& shape, std::string_view data) {
  return make_npy_header(type, shape).append(data);
}

std::string npy_with_header(std::string text, std::string_view data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(text.size());
  file += '\0';
  return file.append(text).append(data);
}

struct Member {
  std::string name, bytes;
};

void put_npz(Storage& storage, std::string_view path, const std::vector<Member>& members) {
  auto zip = ZipStore::create(storage, path, 0, {});
  ASSERT_TRUE(zip.ok()) << zip.status().text();
  for (const Member& member : members) ASSERT_TRUE((*zip)->add(member.name, as_bytes(member.bytes)).ok());
  ASSERT_TRUE((*zip)->finish().ok());
}

Result<std::shared_ptr<Dataset>> open_npz(Storage& storage, std::string_view path) {
  IndexBuilder builder;
  PACKTRAIN_TRY(find_format("npz")->index(storage, path, {}, builder));
  return Dataset::from_memory(storage, "", builder.finish());
}

std::string npz_field(const Dataset& dataset, uint64_t sample, std::string_view name) {
  std::vector<std::byte> bytes;
  const Status status = dataset.read(sample, dataset.manifest().field_id(name), bytes);
  return status.ok() ? std::string(as_text(bytes)) : "! " + status.text();
}

std::vector<int64_t> labels(const Dataset& dataset) {
  return {dataset.labels().begin(), dataset.labels().end()};
}

TEST(NpzTest, RowsAreSamples) {
  MemoryStorage storage;
  put_npz(storage, "a.npz",
          {{"pixels.npy", npy("<u2", {3, 2, 1}, numbers<uint16_t>({1, 2, 3, 4, 5, 6}))},
           {"y.npy", npy("<i4", {3}, numbers<int32_t>({-1, 7, 300}))},
           {"keys.npy", npy("<U3", {3}, numbers<uint32_t>({'a', 0, 0, 0xE4, 0x6570, 0, 'x', 'y', 0x1F600}))},
           {"version.npy", npy("<i8", {}, numbers<int64_t>({1}))}});
  auto dataset = open_npz(storage, "a.npz");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->samples(), 3u);
  EXPECT_EQ(npz_field(**dataset, 1, "pixels"), numbers<uint16_t>({3, 4}));
  EXPECT_EQ(labels(**dataset), (std::vector<int64_t>{-1, 7, 300}));
  EXPECT_EQ(*(*dataset)->key(0), "a");
  EXPECT_EQ(*(*dataset)->key(1), "\u00e4\u6570");
  EXPECT_EQ(*(*dataset)->key(2), "xy\U0001F600");
  EXPECT_EQ((*dataset)->manifest().form, "rows");
}

TEST(NpzTest, SplitsInTheNamesAreSplits) {
  MemoryStorage storage;
  for (const bool front : {false, true}) {
    const auto name = [&](std::string column, std::string split) {
      return (front ? split + "_" + column : column + "_" + split) + ".npy";
    };
    put_npz(storage, front ? "f.npz" : "b.npz",
            {{name("images", "test"), npy("|u1", {1, 2}, "ef")},
             {name("labels", "test"), npy("|u1", {1, 1}, "\x05")},
             {name("images", "train"), npy("|u1", {2, 2}, "abcd")},
             {name("labels", "train"), npy("|u1", {2, 1}, "\x03\x04")}});
    auto dataset = open_npz(storage, front ? "f.npz" : "b.npz");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    const auto& splits = (*dataset)->manifest().splits;
    ASSERT_EQ(splits.size(), 2u);
    EXPECT_EQ(splits[0].name, "train");
    EXPECT_EQ(splits[0].count, 2u);
    EXPECT_EQ(splits[1].name, "test");
    EXPECT_EQ(labels(**dataset), (std::vector<int64_t>{3, 4, 5}));
    EXPECT_EQ(npz_field(**dataset, 2, "images"), "ef");
  }
}

TEST(NpzTest, AnArrayOfNoSplitIsLeftOutOrRefused) {
  MemoryStorage storage;
  const std::vector<Member> splits = {{"x_train.npy", npy("|u1", {2, 2}, "abcd")},
                                      {"y_train.npy", npy("|u1", {2}, "\x03\x04")},
                                      {"x_test.npy", npy("|u1", {2, 2}, "efgh")},
                                      {"y_test.npy", npy("|u1", {2}, "\x05\x06")}};
  const auto with = [&](const Member& more) {
    std::vector<Member> members = splits;
    members.push_back(more);
    put_npz(storage, more.name + ".npz", members);
    return open_npz(storage, more.name + ".npz");
  };
  for (const Member& more : {Member{"classes.npy", npy("|u1", {2}, "\x01\x02")},
                             Member{"mean.npy", npy("|u1", {3, 2}, "ijklmn")}}) {
    const auto dataset = with(more);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    EXPECT_EQ((*dataset)->manifest().splits.size(), 2u) << more.name;
    EXPECT_EQ(labels(**dataset), (std::vector<int64_t>{3, 4, 5, 6}));
  }
  EXPECT_EQ(with({"ids.npy", npy("|u1", {2}, "\x01\x02")}).status().code(), Code::unsupported);
  EXPECT_EQ(with({"labels.npy", npy("|u1", {4}, "\x01\x02\x03\x04")}).status().code(), Code::unsupported);
}

TEST(NpzTest, ArraysThatAreNoTableAreSamplesThemselves) {
  MemoryStorage storage;
  const std::string a = npy("|u1", {3}, "abc"), b = npy("|u1", {2}, "de");
  put_npz(storage, "a.npz", {{"a.npy", a}, {"b.npy", b}});
  auto dataset = open_npz(storage, "a.npz");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->samples(), 2u);
  EXPECT_EQ(*(*dataset)->key(1), "b");
  EXPECT_EQ(npz_field(**dataset, 0, "npy"), a);

  // Many small ones with equal first axes are as many samples, not three samples with as many fields.
  std::vector<Member> members;
  for (int i = 0; i < 10; ++i)
    members.push_back({"s" + std::to_string(i) + ".npy", npy("|u1", {3, 1}, "rgb")});
  put_npz(storage, "b.npz", members);
  dataset = open_npz(storage, "b.npz");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ((*dataset)->samples(), 10u);
}

TEST(NpzTest, ArraysAsideAreLeftOutAndNamed) {
  MemoryStorage storage;
  put_npz(storage, "a.npz",
          {{"x.npy", npy("|u1", {2, 3}, "abcdef")},
           {"mean.npy", npy("<f4", {3}, numbers<float>({1, 2, 3}))},
           {"y.npy", npy("<i4", {3}, numbers<int32_t>({0, 1, 2}))}});
  IndexBuilder builder;
  MembersLeftOut columns;
  IndexOptions options;
  options.columns = &columns;
  ASSERT_TRUE(find_format("npz")->index(storage, "a.npz", options, builder).ok());
  EXPECT_EQ(builder.samples(), 2u);
  EXPECT_EQ(columns.names, (std::vector<std::string>{"mean", "y"}));
  put_npz(storage, "b.npz",
          {{"x.npy", npy("|u1", {2, 3}, "abcdef")}, {"labels.npy", npy("|u1", {3}, "abc")}});
  EXPECT_EQ(open_npz(storage, "b.npz").status().code(), Code::unsupported) << "labels of something else";
}

TEST(NpzTest, RaggedColumnsTakeTheNameOfTheirContent) {
  MemoryStorage storage;
  const std::string jpeg("\xff\xd8\xff\xe0", 4);
  put_npz(storage, "a.npz",
          {{"images.npy", npy("|u1", {9}, jpeg + "A" + jpeg)},
           {"images_offsets.npy", npy("<i8", {3}, numbers<int64_t>({0, 5, 9}))}});
  auto dataset = open_npz(storage, "a.npz");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(npz_field(**dataset, 0, "jpg"), jpeg + "A");
  EXPECT_EQ(npz_field(**dataset, 1, "jpg"), jpeg);
}

TEST(NpzTest, OffsetsThatPointElsewhereAreCorrupt) {
  for (const std::vector<int64_t>& offsets : {std::vector<int64_t>{0, 5, 10}, {0, 6, 5}, {-1, 3, 4}}) {
    MemoryStorage storage;
    put_npz(storage, "a.npz",
            {{"d.npy", npy("|u1", {9}, "123456789")}, {"d_offsets.npy", npy("<i8", {3}, numbers(offsets))}});
    EXPECT_EQ(open_npz(storage, "a.npz").status().code(), Code::corrupt);
  }
}

TEST(NpzTest, EqualNpyFieldsAreStackedAndComeBackWithTheirHeaders) {
  for (const bool equal : {true, false}) {
    MemoryStorage storage;
    std::vector<std::string> files;
    for (int i = 0; i < 5; ++i) files.push_back(npy("<f4", {2}, numbers<float>({1.5f * float(i), 2})));
    if (!equal) files[3] = npy("<f4", {1}, numbers<float>({9}));
    WriteSpec spec;
    spec.fields = {"npy", "txt"};
    auto writer = find_format("npz")->create(storage, "a.npz", spec);
    ASSERT_TRUE(writer.ok()) << writer.status().text();
    for (size_t i = 0; i < files.size(); ++i) {
      const std::string text = "t" + std::to_string(i);
      const SampleToWrite::Field fields[] = {{"npy", as_bytes(files[i])}, {"txt", as_bytes(text)}};
      ASSERT_TRUE((*writer)->add({.key = text, .label = int64_t(i), .fields = fields}).ok());
    }
    ASSERT_TRUE((*writer)->finish().ok());
    const bool stacked = get(storage, "a.npz").find("npy_header") != std::string::npos;
    EXPECT_EQ(stacked, equal);
    auto dataset = open_npz(storage, "a.npz");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    for (size_t i = 0; i < files.size(); ++i) EXPECT_TRUE(npz_field(**dataset, i, "npy") == files[i]) << i;
    EXPECT_EQ(labels(**dataset), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  }
}

TEST(NpzTest, LargeColumnsGoThroughAPartThatIsGoneAfterwards) {
  MemoryStorage storage;
  WriteSpec spec;
  spec.fields = {"a", "b", "npy"};
  auto writer = find_format("npz")->create(storage, "/x.npz", spec);
  ASSERT_TRUE(writer.ok()) << writer.status().text();
  const std::string array = npy("|u1", {1 << 20}, std::string(1 << 20, 'n'));
  for (int i = 0; i < 70; ++i) {
    const std::string a(1 << 20, static_cast<char>(i)), b((1 << 20) - 7, static_cast<char>(i + 100));
    const SampleToWrite::Field fields[] = {{"a", as_bytes(a)}, {"b", as_bytes(b)}, {"npy", as_bytes(array)}};
    ASSERT_TRUE((*writer)->add({.key = std::to_string(i), .fields = fields}).ok());
  }
  ASSERT_TRUE((*writer)->finish().ok());
  writer->reset();
  EXPECT_EQ(visible(storage, "/", true), std::vector<std::string>{"x.npz"});
  auto dataset = open_npz(storage, "/x.npz");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_TRUE(npz_field(**dataset, 69, "a") == std::string(1 << 20, 69));
  EXPECT_TRUE(npz_field(**dataset, 33, "b") == std::string((1 << 20) - 7, static_cast<char>(133)));
  EXPECT_TRUE(npz_field(**dataset, 69, "npy") == array);
}

TEST(NpzTest, TheSameSamplesGiveTheSameBytes) {
  for (const char* name : {"npz", "zarr"}) {
    MemoryStorage storage;
    for (const char* path : {"a", "b"}) {
      WriteSpec spec;
      spec.compress = "none";
      spec.fields = {"bin", "npy"};
      spec.expected_bytes = *path == 'a' ? 0 : 100'000'000;
      auto writer = find_format(name)->create(storage, path, spec);
      ASSERT_TRUE(writer.ok()) << writer.status().text();
      for (int i = 0; i < 300; ++i) {
        const std::string bin(static_cast<size_t>(i * 100), static_cast<char>(i)),
            array = npy("<i4", {1}, numbers<int32_t>({i}));
        const SampleToWrite::Field fields[] = {{"bin", as_bytes(bin)}, {"npy", as_bytes(array)}};
        ASSERT_TRUE((*writer)->add({.key = std::to_string(i), .label = i, .fields = fields}).ok());
      }
      ASSERT_TRUE((*writer)->finish().ok());
    }
    EXPECT_TRUE(get(storage, "a") == get(storage, "b")) << name;
  }
}

// Where the data begin is settled before their number is known, also for more than 4 GiB.
TEST(ZipStoreTest, LocalHeadersOfSmallAndLargeEntriesAreOfOneLength) {
  ZipWritten entry{.name = "x.npy", .stored = 1000, .raw = 1000, .local_room = 61};
  const size_t bytes = zip_local_bytes(entry);
  std::vector<std::byte> small(bytes), large(bytes);
  write_zip_local(entry, small.data());
  entry.stored = entry.raw = uint64_t{5} << 30;
  ASSERT_EQ(zip_local_bytes(entry), bytes);
  write_zip_local(entry, large.data());
  for (const auto& head : {small, large}) {
    const auto local = parse_zip_local(head);
    ASSERT_TRUE(local.ok());
    EXPECT_EQ(local->extra_bytes, 61);
  }
  const std::byte* extra = large.data() + kZipLocalBytes + entry.name.size();
  EXPECT_EQ(load_le<uint16_t>(extra), 1) << "ZIP64";
  EXPECT_EQ(load_le<uint64_t>(extra + 4), entry.raw);
  EXPECT_EQ(load_le<uint16_t>(extra + 22), 61 - 20 - 4) << "the padding behind it";
  EXPECT_EQ(load_le<uint16_t>(small.data() + kZipLocalBytes + entry.name.size() + 2), 61 - 4);
}

TEST(NpzTest, FailureWhileWritingLeavesNothing) {
  for (uint64_t n = 1; n <= 3; ++n) {
    MemoryStorage storage;
    FaultyStorage faulty(storage, {.fail_write = n, .from_then_on = true});
    {
      WriteSpec spec;
      spec.fields = {"a", "b"};
      auto writer = find_format("npz")->create(faulty, "/x.npz", spec);
      ASSERT_TRUE(writer.ok());
      Status status;
      const std::string large(5 << 20, 'x');
      for (int i = 0; i < 20 && status.ok(); ++i) {
        const SampleToWrite::Field fields[] = {{"a", as_bytes(large)}, {"b", as_bytes(large)}};
        status = (*writer)->add({.key = std::to_string(i), .fields = fields});
      }
      if (status.ok()) status = (*writer)->finish();
      EXPECT_EQ(status.code(), Code::io);
    }
    EXPECT_TRUE(visible(storage, "/", true).empty());
  }
}

TEST(NpzTest, NamesThatTheFormatNeedsItselfAreRefused) {
  for (const std::vector<std::string>& fields :
       {std::vector<std::string>{"labels"}, {"__key__"}, {"txt", "txt_offsets"}, {"a", "a_header"}}) {
    MemoryStorage storage;
    WriteSpec spec;
    spec.fields = fields;
    EXPECT_EQ(find_format("npz")->create(storage, "a.npz", spec).status().code(), Code::invalid);
  }
}

TEST(NpzTest, FewLongKeysDoNotMakeTheFileLarge) {
  MemoryStorage storage;
  WriteSpec spec;
  spec.fields = {"txt"};
  auto writer = find_format("npz")->create(storage, "a.npz", spec);
  ASSERT_TRUE(writer.ok());
  const SampleToWrite::Field fields[] = {{"txt", as_bytes("x")}};
  for (int i = 0; i < 1000; ++i) {
    const std::string key = i == 7 ? std::string(5000, 'k') : std::to_string(i);
    ASSERT_TRUE((*writer)->add({.key = key, .fields = fields}).ok());
  }
  ASSERT_TRUE((*writer)->finish().ok());
  EXPECT_LT(get(storage, "a.npz").size(), 100'000u);
  auto dataset = open_npz(storage, "a.npz");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(*(*dataset)->key(7), std::string(5000, 'k'));
  EXPECT_EQ(*(*dataset)->key(999), "999");
}

TEST(NpzTest, CompressedMembersAreBlocks) {
  MemoryStorage storage;
  std::string data(4000, 'x');
  data[3999] = 'y';
  const std::string file = npy("|u1", {4, 1000}, data);
  const auto stored = encode({{"deflate"}}, as_bytes(file));
  if (!stored.ok()) GTEST_SKIP() << stored.status().text();
  const ZipWritten entry{.name = "x.npy",
                         .method = ZipMethod::deflate,
                         .crc32 = crc32(as_bytes(file)),
                         .stored = stored->size(),
                         .raw = file.size()};
  std::string zip(zip_local_bytes(entry), '\0'), directory(zip_central_bytes(entry), '\0');
  write_zip_local(entry, std::as_writable_bytes(std::span(zip)).data());
  write_zip_central(entry, std::as_writable_bytes(std::span(directory)).data());
  zip += as_text(*stored);
  std::string end(zip_end_bytes(1, zip.size(), directory.size()), '\0');
  write_zip_end(1, zip.size(), directory.size(), std::as_writable_bytes(std::span(end)).data());
  put(storage, "a.npz", zip + directory + end);
  auto dataset = open_npz(storage, "a.npz");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->samples(), 4u);
  EXPECT_EQ(npz_field(**dataset, 3, "x"), std::string(999, 'x') + "y");
}

TEST(NpzTest, WhatNoRowCanBeReadFromIsASentence) {
  const auto code = [](const std::string& header) {
    MemoryStorage storage;
    put_npz(storage, "a.npz", {{"x.npy", npy_with_header(header, std::string(64, 'x'))}});
    return open_npz(storage, "a.npz").status();
  };
  Status status = code("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }");
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.text().find("allow_pickle"), std::string::npos) << status.text();
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': True, 'shape': (4, 4), }").code(), Code::unsupported);
  EXPECT_EQ(code("{'descr': '>f4', 'fortran_order': False, 'shape': (4, 4), }").code(), Code::unsupported);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 5), }").code(), Code::corrupt);
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846975, 0), }").code(),
            Code::corrupt);
  EXPECT_TRUE(code("{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (8,), }").ok());
  for (const std::string word :
       {"<i", "<f", "?", "float32", "<i3", "<f1", "<i0", "<i4x", "<i\x14", "<M8[ns", "<M4", "<q8"}) {
    status = code("{'descr': '" + word + "', 'fortran_order': False, 'shape': (4,), }");
    EXPECT_EQ(status.code(), Code::unsupported) << word;
    EXPECT_NE(status.text().find("numpy.save"), std::string::npos) << status.text();
  }
  for (const std::string word :
       {"|b1", "|i1", "<u2", "<i8", "<f2", "<f16", "<c8", "|S3", "<U2", "|V5", "<M8[ns]", "<m8[10us]"})
    EXPECT_TRUE(code("{'descr': '" + word + "', 'fortran_order': False, 'shape': (4,), }").ok()) << word;
}

Result<std::shared_ptr<Dataset>> open_npy(Storage& storage, std::string_view path) {
  IndexBuilder builder;
  PACKTRAIN_TRY(find_format("npy")->index(storage, path, {}, builder));
  return Dataset::from_memory(storage, "", builder.finish());
}

// Writes rows as a pair; the label of row i is i - 1.
Status write_npy(Storage& storage, WriteSpec spec, const std::vector<std::string>& rows) {
  spec.fields = {"v"};
  PACKTRAIN_TRY(storage.make_folder("/p"));
  PACKTRAIN_ASSIGN(writer, find_format("npy")->create(storage, "/p/x.npy", spec));
  for (size_t i = 0; i < rows.size(); ++i) {
    const SampleToWrite::Field field{"v", as_bytes(rows[i])};
    PACKTRAIN_TRY(
        writer->add({.key = std::to_string(i), .label = int64_t(i) - 1, .fields = std::span(&field, 1)}));
  }
  return writer->finish();
}

TEST(NpyTest, ArraysOfOneTypeAndShapeBecomeAPair) {
  MemoryStorage storage;
  WriteSpec spec;
  spec.arrays = {{"v", {"<i2", {2}}}};
  ASSERT_TRUE(write_npy(storage, spec, {"abcd", "efgh", "ijkl"}).ok());
  const std::string x = get(storage, "/p/x.npy"), y = get(storage, "/p/y.npy");
  EXPECT_NE(x.find("'descr': '<i2', 'fortran_order': False, 'shape': (3, 2)"), std::string::npos);
  EXPECT_TRUE(x.ends_with("\nabcdefghijkl"));
  EXPECT_TRUE(y.ends_with(numbers<int64_t>({-1, 0, 1})));
  for (const char* path : {"/p", "/p/x.npy"}) {
    EXPECT_EQ((*recognise_format(storage, path))->name, "npy");
    auto dataset = open_npy(storage, path);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    EXPECT_EQ(npz_field(**dataset, 2, "data"), "ijkl");
    EXPECT_EQ(labels(**dataset), (std::vector<int64_t>{-1, 0, 1}));
    EXPECT_EQ((*dataset)->manifest().fields[0].array, (ArrayValue{"<i2", {2}}));
  }
}

TEST(NpyTest, FilesOfArraysComeBackAsFiles) {
  MemoryStorage storage;
  std::vector<std::string> rows;
  for (const char* data : {"abcd", "efgh"}) rows.push_back(npy("<i2", {2}, data));
  ASSERT_TRUE(write_npy(storage, {}, rows).ok());
  auto dataset = open_npy(storage, "/p");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  for (uint64_t i : {0, 1}) EXPECT_EQ(npz_field(**dataset, i, "npy"), rows[i]);
  EXPECT_FALSE((*dataset)->manifest().fields[0].array) << "a header stands in front";
}

TEST(NpyTest, WhatIsNoArrayOfTheFirstOnesShapeIsRefused) {
  WriteSpec spec;
  spec.arrays = {{"v", {"<i2", {2}}}};
  MemoryStorage storage;
  EXPECT_EQ(write_npy(storage, spec, {"abcd", "ef"}).code(), Code::invalid);
  EXPECT_EQ(write_npy(storage, {}, {"abcd"}).code(), Code::invalid);
  EXPECT_EQ(write_npy(storage, {}, {npy("<i2", {2}, "abcd"), npy("<i2", {1}, "ab")}).code(), Code::invalid);
  spec.fields = {"a", "b"};
  EXPECT_EQ(find_format("npy")->create(storage, "/p/x.npy", spec).status().code(), Code::invalid);
  EXPECT_TRUE(visible(storage, "/p").empty());
  EXPECT_TRUE(write_npy(storage, {}, {}).ok()) << "no sample at all";
  EXPECT_EQ((*open_npy(storage, "/p"))->samples(), 0u);
}

TEST(NpyTest, FoldersWithOtherFilesAreNoPairs) {
  MemoryStorage storage;
  put(storage, "/d/x.npy", npy("<f4", {1}, numbers<float>({1})));
  EXPECT_TRUE(find_format("npy")->recognise(storage, "/d"));
  put(storage, "/d/README", "");
  EXPECT_FALSE(find_format("npy")->recognise(storage, "/d"));
}

TEST(NpyTest, AFileIsADatasetWithLabelsFromBesideIt) {
  for (const auto& [name, beside] :
       {std::pair("digits", "digits_labels"), std::pair("digits", "labels"), std::pair("x_train", "y_train"),
        std::pair("X", "y"), std::pair("images", "targets")}) {
    MemoryStorage storage;
    const std::string path = "/d/" + std::string(name) + ".npy";
    ASSERT_TRUE(storage.make_folder("/d").ok());
    put(storage, path, npy("<f4", {2, 2}, numbers<float>({1, 2, 3, 4})));
    put(storage, "/d/" + std::string(beside) + ".npy", npy("<i8", {2}, numbers<int64_t>({8, 9})));
    EXPECT_EQ((*recognise_format(storage, path))->name, "npy");
    auto dataset = open_npy(storage, path);
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    EXPECT_EQ(npz_field(**dataset, 1, "data"), numbers<float>({3, 4}));
    EXPECT_EQ(labels(**dataset), (std::vector<int64_t>{8, 9})) << name;
    EXPECT_EQ((*dataset)->manifest().shards.size(), 1u);
  }
}

TEST(NpyTest, LabelsOfOtherFilesAreNotTaken) {
  MemoryStorage storage;
  put(storage, "test.npy", npy("<f4", {2}, numbers<float>({1, 2})));
  put(storage, "labels.npy", npy("<i8", {3}, numbers<int64_t>({7, 8, 9})));
  auto dataset = open_npy(storage, "test.npy");
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  EXPECT_EQ(labels(**dataset), (std::vector<int64_t>{kNoLabel, kNoLabel}));
}

TEST(NpyTest, TruncationAtAnyByteIsCorrupt) {
  const std::string whole = npy("<f4", {3}, numbers<float>({1, 2, 3}));
  for (size_t length = 0; length < whole.size(); ++length) {
    MemoryStorage storage;
    put(storage, "a.npy", whole.substr(0, length));
    EXPECT_EQ(open_npy(storage, "a.npy").status().code(), Code::corrupt) << length;
  }
}

TEST(NpzTest, AZipOfArraysIsAZipByItsName) {
  MemoryStorage storage;
  put_npz(storage, "a.zip", {{"a.npy", npy("|u1", {1}, "a")}});
  put_npz(storage, "a.npz", {{"a.npy", npy("|u1", {1}, "a")}});
  put_npz(storage, "nameless", {{"a.npy", npy("|u1", {1}, "a")}});
  EXPECT_EQ((*recognise_format(storage, "a.zip"))->name, "zip");
  EXPECT_EQ((*recognise_format(storage, "a.npz"))->name, "npz");
  EXPECT_EQ((*recognise_format(storage, "nameless"))->name, "npz");
}

TEST(ColumnSpoolTest, ColumnsComeBackInOrderWhateverTheMemory) {
  for (const uint64_t memory : {uint64_t{10}, uint64_t{1000}, uint64_t{1} << 20}) {
    MemoryStorage storage;
    ColumnSpool spool(storage, "/c", {}, 2, memory);
    std::string expected[2];
    for (int i = 0; i < 100; ++i) {
      const std::string piece(static_cast<size_t>(i % 17), static_cast<char>('a' + i % 26));
      expected[i % 2] += piece;
      ASSERT_TRUE(spool.append(static_cast<size_t>(i % 2), as_bytes(piece)).ok());
    }
    for (size_t column : {1, 0}) {
      std::string got;
      const Status status = spool.take(column, [&](Bytes piece) {
        got += as_text(piece);
        return Status();
      });
      ASSERT_TRUE(status.ok()) << status.text();
      EXPECT_EQ(got, expected[column]);
    }
  }
}

}  // namespace
}  // namespace packtrain
