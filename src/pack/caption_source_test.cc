#include "pack/scan_test_support.h"

namespace packtrain {
namespace {

struct Images : MemoryStorage {
  Images() {
    put(*this, "flickr/flickr30k_images/1.jpg", "x");
    put(*this, "flickr/flickr30k_images/2.jpg", "xx");
  }
};

const Lines kTwoImages = {
    "train/- 1: jpg=1.jpg json='{\"captions\": [\"A dog .\", \"Two \\\"dogs\\\" run .\"]}' txt='A dog .\nTwo "
    "\"dogs\" run .'",
    "train/- 2: jpg=2.jpg json='{\"captions\": [\"A cat, asleep .\"]}' txt='A cat, asleep .'",
};

TEST(CaptionSourceTest, FlickrTableWithBars) {
  Images storage;
  put(storage, "flickr/results.csv",
      "image_name| comment_number| comment\n1.jpg| 0| A dog .\n2.jpg| 0| A cat, asleep .\n1.jpg| 1   Two "
      "\"dogs\" run .\n");
  const Catalog catalog = scan_ok(storage, "flickr/results.csv");
  EXPECT_EQ(described(catalog), kTwoImages);
  EXPECT_EQ(catalog.roots[0].folder, "flickr/flickr30k_images");
  EXPECT_EQ(catalog.missing_count, 0U);
}

TEST(CaptionSourceTest, CommaTableWithAndWithoutQuotes) {
  Images storage;
  put(storage, "flickr/captions.txt",
      "image,caption\n1.jpg,A dog .\n1.jpg,\"Two \"\"dogs\"\" run .\"\n2.jpg,A cat, asleep .\n");
  EXPECT_EQ(described(scan_ok(storage, "flickr/captions.txt")), kTwoImages);
  put(storage, "flickr/c.csv", "image_name,comment,source\n1.jpg,A dog .,val\n1.jpg,B,train\n");
  EXPECT_EQ(
      described(scan_ok(storage, "flickr/c.csv")),
      Lines{"train/- 1: jpg=1.jpg json='{\"captions\": [\"A dog .\", \"B\"], \"source\": \"val\"}' txt='A "
            "dog .\nB'"});
}

TEST(CaptionSourceTest, FlickrTokens) {
  Images storage;
  put(storage, "flickr/results.token",
      "1.jpg#0\tA dog .\n1.jpg#1\tTwo \"dogs\" run .\r\n2.jpg#0\tA cat, asleep .\n");
  EXPECT_EQ(described(scan_ok(storage, "flickr/results.token")), kTwoImages);
  put(storage, "flickr/results.token", "1.jpg#0\tA dog .\nno tab\n");
  const Status broken = scan(storage, scan_options({{"", "flickr/results.token"}})).status();
  EXPECT_EQ(broken.code(), Code::corrupt);
  EXPECT_NE(broken.text().find("line 2"), std::string::npos);
}

TEST(CaptionSourceTest, CocoJson) {
  MemoryStorage storage;
  put(storage, "coco/val2017/2.jpg", "x");
  put(storage, "coco/val2017/1.jpg", "x");
  put(storage, "coco/train2017/9.jpg", "x");
  put(storage, "coco/annotations/captions_val2017.json",
      R"({"info": {}, "images": [{"id": 2, "file_name": "2.jpg"}, {"id": 1, "file_name": "1.jpg"}],
          "annotations": [{"image_id": 1, "id": 5, "caption": "one"}, {"image_id": 2, "caption": "two\n"},
                          {"image_id": 1, "caption": "uno"}]})");
  const Catalog catalog = scan_ok(storage, "coco/annotations/captions_val2017.json");
  EXPECT_EQ(
      described(catalog),
      (Lines{
          "train/- 2: jpg=2.jpg json='{\"captions\": [\"two\"], \"image_id\": 2}' txt='two'",
          "train/- 1: jpg=1.jpg json='{\"captions\": [\"one\", \"uno\"], \"image_id\": 1}' txt='one\nuno'",
      }));
  EXPECT_EQ(catalog.roots[0].folder, "coco/val2017");
}

TEST(CaptionSourceTest, BrokenCocoIsAnError) {
  MemoryStorage storage;
  const auto code = [&](const char* text) {
    put(storage, "c.json", text);
    return scan(storage, scan_options({{"", "c.json"}})).status().code();
  };
  EXPECT_EQ(code(R"({"images": [{"id": 1}], "annotations": []})"), Code::corrupt);
  EXPECT_EQ(
      code(R"({"images": [{"id": 1, "file_name": "a"}, {"id": 1, "file_name": "b"}], "annotations": []})"),
      Code::corrupt);
  EXPECT_EQ(
      code(R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 7, "caption": "x"}]})"),
      Code::corrupt);
  EXPECT_EQ(
      code(R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 1, "bbox": []}]})"),
      Code::unsupported);
  EXPECT_EQ(code(R"({"images": [], "annotations": []})"), Code::corrupt);
}

TEST(CaptionSourceTest, MissingImagesAreCounted) {
  Images storage;
  put(storage, "flickr/c.csv", "image,caption\n1.jpg,a\n3.jpg,b\n");
  const Catalog catalog = scan_ok(storage, "flickr/c.csv");
  EXPECT_EQ(catalog.missing, Lines{"3.jpg"});
  EXPECT_EQ(catalog.samples.size(), 1U);
}

}  // namespace
}  // namespace packtrain
