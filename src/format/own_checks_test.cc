#include "format/own_checks.h"

#include <gtest/gtest.h>

#include "format/npy_header.h"
#include "format/zip_store.h"
#include "io/test_storage.h"

namespace packtrain {
namespace {

constexpr uint64_t kRowBytes = 1024;
constexpr uint64_t kShortRows = 4, kLongRows = 9 << 10;  // columns that take one read, and many

void put_columns(Storage& storage, std::string_view path, uint64_t rows) {
  auto zip = ZipStore::create(storage, path, 0, {});
  ASSERT_TRUE(zip.ok()) << zip.status().text();
  for (const std::string_view name : {"a.npy", "b.npy"}) {
    std::string bytes = make_npy_header("|u1", std::vector{rows, kRowBytes});
    bytes.append(rows * kRowBytes, name[0]);
    ASSERT_TRUE((*zip)->add(name, as_bytes(bytes)).ok());
  }
  ASSERT_TRUE((*zip)->finish().ok());
}

Result<std::shared_ptr<Dataset>> open_columns(Storage& storage, std::string_view path) {
  IndexBuilder builder;
  PACKTRAIN_TRY(find_format("npz")->index(storage, path, {}, builder));
  return Dataset::from_memory(storage, "", builder.finish());
}

TEST(OwnChecksTest, AreThoseOfWholeMembers) {
  for (const uint64_t rows : {kShortRows, kLongRows}) {
    MemoryStorage storage;
    put_columns(storage, "x.npz", rows);
    const auto dataset = open_columns(storage, "x.npz");
    ASSERT_TRUE(dataset.ok()) << dataset.status().text();
    const Status sound = compare_own_checks(storage, **dataset, {});
    EXPECT_TRUE(sound.ok()) << sound.text();

    auto bytes = read_whole(storage, "x.npz");
    ASSERT_TRUE(bytes.ok());
    (*bytes)[(*dataset)->locate(rows - 1, 1).offset + kRowBytes - 1] ^= 1;
    MemoryStorage damaged;
    ASSERT_TRUE(write_whole(damaged, "x.npz", as_bytes(*bytes)).ok());
    const auto of_damaged = open_columns(damaged, "x.npz");
    ASSERT_TRUE(of_damaged.ok()) << of_damaged.status().text();
    const Status differs = compare_own_checks(damaged, **of_damaged, {});
    EXPECT_EQ(differs.code(), Code::corrupt);
    EXPECT_NE(differs.text().find("the member b.npy does not match the crc32"), std::string::npos)
        << differs.text();
  }
}

TEST(OwnChecksTest, AreNotNeededWherePacktrainHasChecksOfItsOwn) {
  MemoryStorage storage;
  put_columns(storage, "x.npz", kShortRows);
  ShardSpec spec{.path = "x.npz", .format = "npz"};
  EXPECT_EQ(own_checks(storage, spec, "x.npz")->size(), 2u);
  spec.hash = std::string(32, '0');
  EXPECT_EQ(own_checks(storage, spec, "x.npz")->size(), 0u);
}

TEST(OwnChecksTest, AReadThatFailsIsNoDamage) {
  for (const uint64_t rows : {kShortRows, kLongRows}) {
    MemoryStorage storage;
    put_columns(storage, "x.npz", rows);
    uint64_t failures = 0;
    for (uint64_t read = 1;; ++read) {
      FaultyStorage faulty(storage, {.fail_read = read});
      const auto dataset = open_columns(faulty, "x.npz");
      const Status status =
          dataset.ok() ? compare_own_checks(faulty, **dataset, {}) : Status(dataset.status());
      if (faulty.failures() == 0) break;
      ++failures;
      EXPECT_EQ(status.code(), Code::io) << read << ": " << status.text();
    }
    EXPECT_GT(failures, 2u);
  }
}

TEST(OwnChecksTest, WhoeverWantsNoMoreIsHeard) {
  MemoryStorage storage;
  put_columns(storage, "x.npz", kShortRows);
  const auto dataset = open_columns(storage, "x.npz");
  ASSERT_TRUE(dataset.ok());
  const Status status = compare_own_checks(storage, **dataset, [](const ProgressEvent&) { return false; });
  EXPECT_EQ(status.code(), Code::stopped);
}

}  // namespace
}  // namespace packtrain
