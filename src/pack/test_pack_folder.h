// A folder of its own for tests that pack.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "packtrain/index.h"
#include "packtrain/pack.h"

namespace packtrain {

class PackFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "packtrain-pack-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path, std::ios::binary) << text;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  PackOptions options(const std::string& source, const std::string& out, const std::string& format) const {
    PackOptions pack;
    pack.sources = {{"", path(source)}};
    pack.out = path(out);
    pack.format = format;
    pack.jobs = 2;
    pack.sync = false;
    return pack;
  }
  // Everything below a folder but the log: what must be equal for equal inputs.
  std::map<std::string, std::string> contents(const std::string& name) const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / name)) {
      if (!entry.is_regular_file() || entry.path().filename() == "pack.log.json") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      all[std::filesystem::relative(entry.path(), folder_ / name).string()] =
          std::string(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }
  // Every field of every sample, by "key.field", and its label.
  std::map<std::string, std::string> samples(const std::string& name) const {
    std::map<std::string, std::string> all;
    auto dataset = Dataset::open(posix_storage(), path(name));
    EXPECT_TRUE(dataset.ok()) << dataset.status().text();
    if (!dataset.ok()) return all;
    std::vector<std::byte> bytes;
    for (uint64_t i = 0; i < (*dataset)->samples(); ++i) {
      const std::string key((*dataset)->key(i).value());
      all[key] = std::to_string((*dataset)->label(i));
      for (uint32_t field = 0; field < (*dataset)->manifest().fields.size(); ++field) {
        if (!(*dataset)->locate(i, field).present) continue;
        EXPECT_TRUE((*dataset)->read(i, field, bytes).ok());
        all[key + "." + (*dataset)->manifest().fields[field].name] = as_text(bytes);
      }
    }
    return all;
  }
  void expect_sound(const std::string& name) const {
    auto verified = verify(posix_storage(), path(name));
    ASSERT_TRUE(verified.ok()) << verified.status().text();
    EXPECT_EQ(verified->findings_count, 0u) << name << ": " << verified->findings[0].what;
  }

  std::filesystem::path folder_;
};

}  // namespace packtrain
