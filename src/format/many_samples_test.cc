// Thousands of samples: containers in memory are looked at by several threads, all others are read. Both must
// give the same index, byte for byte.
#include <gtest/gtest.h>

#include <algorithm>

#include "io/test_storage.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

constexpr uint64_t kManySamples = 5000;

std::string recording_of(uint64_t sample) {
  std::string bytes = "RIFF" + std::to_string(sample);
  bytes.resize(3000 + sample % 100, static_cast<char>('a' + sample % 26));
  return bytes;
}

Status write_many(const Format& format, Storage& storage, const std::string& path) {
  WriteSpec spec;
  spec.samples = kManySamples;
  spec.fields = {"wav"};
  spec.labels = format.label_column;
  if (!format.label_column) spec.fields.insert(spec.fields.begin(), "cls");
  PACKTRAIN_ASSIGN(writer, format.create(storage, path, spec));
  for (uint64_t i = 0; i < kManySamples; ++i) {
    const std::string key = "a/" + std::to_string(100'000 + i), label = std::to_string(i % 17),
                      wav = recording_of(i);
    std::vector<SampleToWrite::Field> fields = {{"wav", as_bytes(wav)}};
    if (!format.label_column) fields.insert(fields.begin(), {"cls", as_bytes(label)});
    PACKTRAIN_TRY(writer->add({.key = key,
                               .label = format.label_column ? static_cast<int64_t>(i % 17) : kNoLabel,
                               .fields = fields}));
  }
  return writer->finish();
}

Result<IndexBuilder::Finished> index_many(const Format& format, Storage& storage, const std::string& path) {
  IndexBuilder builder;
  PACKTRAIN_TRY(format.index(storage, path, {}, builder));
  return builder.finish();
}

class ManySamplesTest : public testing::TestWithParam<const Format*> {};

TEST_P(ManySamplesTest, AreIndexedAlikeWhetherLookedAtOrRead) {
  const Format& format = *GetParam();
  const TemporaryFolder folder;
  const std::string path = folder / ("x" + std::string(format.suffix));
  const Status written = write_many(format, posix_storage(), path);
  ASSERT_TRUE(written.ok()) << written.text();

  auto looked = index_many(format, posix_storage(), path);
  ASSERT_TRUE(looked.ok()) << looked.status().text();
  MemoryStorage memory;
  put(memory, path, get(posix_storage(), path));
  auto read = index_many(format, memory, path);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_TRUE(looked->index_npz == read->index_npz);
  EXPECT_TRUE(looked->names_npz == read->names_npz);

  auto dataset = Dataset::from_memory(posix_storage(), "", std::move(*looked));
  ASSERT_TRUE(dataset.ok()) << dataset.status().text();
  ASSERT_EQ((*dataset)->samples(), kManySamples);
  for (uint64_t i = 0; i < kManySamples; i += 7) {
    EXPECT_EQ((*dataset)->label(i), static_cast<int64_t>(i % 17)) << i;
    if (i % 49 != 0) continue;
    std::vector<std::byte> bytes;
    const Status status = (*dataset)->read(i, (*dataset)->manifest().field_id("wav"), bytes);
    EXPECT_TRUE(status.ok() && as_text(bytes) == recording_of(i)) << i << status.text();
  }
}

std::vector<const Format*> written_formats() {
  std::vector<const Format*> found;
  for (const Format* format : formats()) {
    if (format->create != nullptr && !format->arrays_only) found.push_back(format);
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(Formats, ManySamplesTest, testing::ValuesIn(written_formats()),
                         [](const testing::TestParamInfo<const Format*>& format) {
                           std::string name(format.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace packtrain
