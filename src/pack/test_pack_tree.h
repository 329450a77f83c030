// A class tree in a folder of its own, for tests of pack.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include "packtrain/pack.h"

namespace packtrain {

namespace fs = std::filesystem;

inline bool mentions(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

class PackTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "packtrain-pack-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void put(const std::string& path, std::string_view text) {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path, std::ios::binary) << text;
  }
  // `count` files in three classes, of odd sizes, one of them empty.
  void make_tree(int count) {
    std::mt19937 rng(1);
    for (int i = 0; i < count; ++i) {
      std::string text(i == 5 ? 0 : 1 + rng() % 3000, '\0');
      for (char& c : text) c = static_cast<char>(rng());
      put("tree/class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg", text);
    }
  }
  PackOptions options(const std::string& out) {
    PackOptions pack;
    pack.sources = {{"", path("tree")}};
    pack.out = path(out);
    pack.shards = 4;
    pack.jobs = 2;
    pack.sync = false;
    return pack;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Everything below a folder but the log: what must be equal for equal inputs.
  std::map<std::string, std::string> contents(const std::string& name) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / name)) {
      if (!entry.is_regular_file() || entry.path().filename() == "pack.log.json") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      all[fs::relative(entry.path(), folder_ / name).string()] =
          std::string(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }

  fs::path folder_;
};

}  // namespace packtrain
