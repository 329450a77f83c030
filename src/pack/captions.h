// Captions: one sample per image, with all its texts.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "pack/sources.h"
#include "pack/table_text.h"

namespace packtrain {

// Collects texts by image, in the order in which images first appear. One thread at a time; memory: all
// texts.
class CaptionCollector {
 public:
  // `further`, an object, is kept from an image's first row. Code::invalid if an earlier row of the image has
  // another split.
  Status add(std::string_view image, std::string_view caption, Json further = Json::object(),
             std::string_view split = {});
  void add_image(std::string_view image, Json further = Json::object());  // without a text yet
  // Adds a sample for each image: the image, `json` {"captions": […], …}, and `txt`, a caption a line.
  // `split_column`: what the splits of the rows stand in, "" if they have none.
  Status add_samples(ScanContext& context, const Source& source, std::string_view split_column = {}) const;

 private:
  struct Image {
    std::string path;
    std::vector<std::string> captions;
    Json further;
    std::string split;
  };
  Image& image(std::string_view path, Json& further, std::string_view split);

  std::vector<Image> images_;
  std::unordered_map<std::string, size_t> positions_;
};

struct CaptionColumns {
  size_t image, caption, split;  // split: kNoColumn if there is none
};
// The rows behind the header of a table with a column of images and one of captions.
Status add_caption_table(ScanContext& context, const Source& source, TableText& table,
                         const std::vector<std::string>& columns, const CaptionColumns& used);

bool is_coco_captions(const Json& document);
Status add_coco_captions(ScanContext& context, const Source& source, const Json& document);

}  // namespace packtrain
