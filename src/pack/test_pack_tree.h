// A class tree in a folder of its own, for tests of pack.
#pragma once

#include <filesystem>
#include <random>
#include <string>
#include <string_view>

#include "pack/test_pack_folder.h"

namespace packtrain {

namespace fs = std::filesystem;

inline bool mentions(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

class PackTest : public PackFolderTest {
 protected:
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
    PackOptions pack = PackFolderTest::options("tree", out, "webdataset");
    pack.shards = 4;
    return pack;
  }
};

}  // namespace packtrain
