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
  // `further`, an object, is kept from an image's first row.
  void add(std::string_view image, std::string_view caption, Json further = Json::object());
  void add_image(std::string_view image, Json further = Json::object());  // without a text yet
  // Adds a sample for each image: the image, `json` {"captions": […], …}, and `txt`, a caption a line.
  Status add_samples(ScanContext& context, const Source& source) const;

 private:
  struct Image {
    std::string path;
    std::vector<std::string> captions;
    Json further;
  };
  Image& image(std::string_view path, Json& further);

  std::vector<Image> images_;
  std::unordered_map<std::string, size_t> positions_;
};

// The rows behind the header of a table with a column of images and one of captions.
Status add_caption_table(ScanContext& context, const Source& source, TableText& table,
                         const std::vector<std::string>& columns, size_t image_column, size_t caption_column);

bool is_coco_captions(const Json& document);
Status add_coco_captions(ScanContext& context, const Source& source, const Json& document);

}  // namespace packtrain
