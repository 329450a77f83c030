// Containers whose samples share compressed blocks, packed in another order.
#include "pack/block_spool.h"

#include <random>

#include "io/test_storage.h"
#include "pack/catalog.h"
#include "pack/fetch.h"
#include "pack/test_archives.h"
#include "pack/test_pack_folder.h"
#include "packtrain/codec.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

class BlockSpoolTest : public PackFolderTest {
 protected:
  void SetUp() override {
    PackFolderTest::SetUp();
    if (!has_codec("zstd")) GTEST_SKIP() << "built without libzstd";
  }

  // Rows in compressed chunks; row i begins with its number.
  void make_zarr(uint64_t chunks, uint64_t rows, uint64_t row_bytes) const {
    const std::string two = std::to_string(row_bytes);
    put("a.zarr/zarr.json", R"({"zarr_format": 3, "node_type": "group", "attributes": {}})");
    put("a.zarr/v/zarr.json",
        R"({"zarr_format": 3, "node_type": "array", "data_type": "uint8", "fill_value": 0, "shape": [)" +
            std::to_string(chunks * rows) + ", " + two +
            R"(], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [)" +
            std::to_string(rows) + ", " + two +
            R"(]}}, "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 1}}]})");
    for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
      std::string raw(rows * row_bytes, '\0');
      for (uint64_t row = 0; row < rows; ++row) {
        const std::string number = std::to_string(chunk * rows + row);
        raw.replace(row * row_bytes, number.size(), number);
      }
      const auto stored = encode({{"zstd"}}, as_bytes(raw));
      ASSERT_TRUE(stored.ok());
      put("a.zarr/v/c/" + std::to_string(chunk) + "/0", as_text(*stored));
    }
  }

  Plan plan_of(PackOrder order) const {
    ScanOptions scanned;
    scanned.sources = {{"", path("a.zarr")}};
    auto catalog = scan(posix_storage(), scanned);
    EXPECT_TRUE(catalog.ok()) << catalog.status().text();
    PackOptions wanted = options("a.zarr", "out", "webdataset");
    wanted.order = order;
    auto plan = make_plan(posix_storage(), std::move(*catalog), wanted);
    EXPECT_TRUE(plan.ok()) << plan.status().text();
    return std::move(*plan);
  }
};

TEST_F(BlockSpoolTest, OnlyAnotherOrderNeedsIt) {
  make_zarr(8, 10, 16);
  EXPECT_EQ(blocks_to_spool(plan_of(PackOrder::source), {0}, {}, 0).bytes, 0u);
  const BlocksToSpool wanted = blocks_to_spool(plan_of(PackOrder::shuffled), {0}, {}, 0);
  EXPECT_EQ(wanted.bytes, 8u * 10 * 16);
  EXPECT_EQ(wanted.pieces.size(), 80u);
  EXPECT_EQ(blocks_to_spool(plan_of(PackOrder::shuffled), {0}, {}).bytes, 0u) << "so few are kept in memory";
}

TEST_F(BlockSpoolTest, EveryPieceIsThere) {
  make_zarr(8, 10, 16);
  const Plan plan = plan_of(PackOrder::shuffled);
  ASSERT_TRUE(posix_storage().make_folder(path("part")).ok());
  {
    auto spool =
        BlockSpool::make(posix_storage(), plan, blocks_to_spool(plan, {0}, {}, 0), path("part"), "t", 2, {});
    ASSERT_TRUE(spool.ok()) << spool.status().text();
    EXPECT_TRUE(exists("part/blocks.tmp-t"));
    Fetcher fetcher(posix_storage(), plan);
    fetcher.use(spool->get());
    for (const Cell& cell : plan.catalog.cells) {
      std::vector<std::byte> got(cell.size);
      ASSERT_TRUE((*spool)->has(cell.where));
      ASSERT_TRUE(fetcher.fetch(cell, got).ok());
      std::string expected = std::to_string(&cell - plan.catalog.cells.data());
      expected.resize(16);
      EXPECT_EQ(as_text(got), expected);
    }
  }
  EXPECT_FALSE(exists("part/blocks.tmp-t")) << "it goes with its object";
}

TEST_F(BlockSpoolTest, ADamagedBlockCostsItsOwnSamples) {
  make_zarr(8, 10, 16);
  put("a.zarr/v/c/3/0", std::string(get(posix_storage(), path("a.zarr/v/c/3/0")).size(), 'x'));
  const Plan plan = plan_of(PackOrder::shuffled);
  ASSERT_TRUE(posix_storage().make_folder(path("part")).ok());
  auto spool =
      BlockSpool::make(posix_storage(), plan, blocks_to_spool(plan, {0}, {}, 0), path("part"), "t", 2, {});
  ASSERT_TRUE(spool.ok()) << spool.status().text();
  Fetcher fetcher(posix_storage(), plan);
  fetcher.use(spool->get());
  uint64_t bad = 0;
  for (const Cell& cell : plan.catalog.cells) {
    std::vector<std::byte> got(cell.size);
    const Status status = fetcher.fetch(cell, got);
    EXPECT_TRUE(status.ok() || status.code() == Code::corrupt) << status.text();
    bad += status.ok() ? 0 : 1;
  }
  EXPECT_EQ(bad, 10u);
}

TEST_F(BlockSpoolTest, APackOfManyBlocksReadsEachOnceAndLeavesNothing) {
  make_zarr(20, 50, 20'000);
  for (const char* format : {"webdataset", "hdf5"}) {
    CountingStorage counted(posix_storage());
    const std::string out = std::string("out-") + format;
    auto report = pack(counted, options("a.zarr", out, format));
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_EQ(report->samples, 1000u);
    expect_sound(out);
    for (const auto& [name, bytes] : samples(out)) {
      if (!name.ends_with(".v")) continue;
      EXPECT_EQ(bytes.substr(0, bytes.find('\0')),
                std::to_string(std::stoul(name.substr(0, name.find('.')))));
    }
    for (const auto& [name, bytes] : contents(out)) EXPECT_EQ(name.find(".tmp-"), name.npos) << name;
  }
}

}  // namespace
}  // namespace packtrain
