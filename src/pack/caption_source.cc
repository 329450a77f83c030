#include <algorithm>

#include "base/words.h"
#include "pack/captions.h"
#include "pack/list_rows.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

// Columns that only count the texts of an image, or the rows.
bool is_counter(std::string_view column) {
  return column.empty() || column == "comment_number" || column == "caption_number" || column == "index" ||
         column == "sentid";
}

// One row of the published Flickr30k table lacks its second separator: "2199200615.jpg| 4   A dog runs …".
void mend_missing_separator(std::vector<std::string>& row) {
  const std::string_view cell = trimmed(row.back());
  const size_t digits = cell.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || cell[digits] != ' ') return;
  std::string text(trimmed(cell.substr(digits)));
  std::string number(cell.substr(0, digits));
  row.back() = std::move(number);
  row.push_back(std::move(text));
}

// A caption in the last column that was written without quotes may hold separators itself.
void join_surplus(std::vector<std::string>& row, size_t columns, char separator) {
  for (size_t i = columns; i < row.size(); ++i) row[columns - 1] += separator + row[i];
  row.resize(columns);
}

}  // namespace

CaptionCollector::Image& CaptionCollector::image(std::string_view path, Json& further,
                                                 std::string_view split) {
  const auto [at, added] = positions_.try_emplace(std::string(path), images_.size());
  if (added) images_.push_back({std::string(path), {}, std::move(further), std::string(split)});
  return images_[at->second];
}

Status CaptionCollector::add(std::string_view path, std::string_view caption, Json further,
                             std::string_view split) {
  Image& of = image(path, further, split);
  if (of.split != split)
    return Status(Code::invalid, printable(path) + " has the split \"" + printable(split) + "\", and \"" +
                                     printable(of.split) +
                                     "\" in an earlier row; an image belongs to one split: mend the list, or "
                                     "leave that column alone with --split-column none");
  of.captions.emplace_back(caption);
  return {};
}

void CaptionCollector::add_image(std::string_view path, Json further) { image(path, further, {}); }

Status CaptionCollector::add_samples(ScanContext& context, const Source& source,
                                     std::string_view split_column) const {
  ListRows rows(context, source);
  std::string lines;
  uint64_t without_text = 0;
  for (const Image& image : images_) {
    without_text += image.captions.empty();
    PACKTRAIN_TRY(rows.begin(image.path, printable(source.path)));
    if (!split_column.empty()) rows.row_split(image.split, split_column);
    Json captions = Json::array();
    lines.clear();
    for (const std::string& caption : image.captions) {
      captions.push(caption);
      if (!lines.empty()) lines += '\n';
      lines += caption;
    }
    Json fields = Json::object();
    fields.set("captions", std::move(captions));
    for (const auto& [name, value] : image.further.members())
      if (name != "captions") fields.set(name, value);
    if (!context.out.has_field("txt")) PACKTRAIN_TRY(context.out.add_text("txt", lines));
    PACKTRAIN_TRY(rows.end(fields));
  }
  if (without_text > 0)
    context.out.catalog().warnings.push_back(counted(without_text, "image") + " of " +
                                             printable(source.path) + (without_text > 1 ? " have" : " has") +
                                             " no caption: the field txt is empty there");
  return rows.finish();
}

Status add_caption_table(ScanContext& context, const Source& source, TableText& table,
                         const std::vector<std::string>& columns, const CaptionColumns& used) {
  const auto [image_column, caption_column, split_column] = used;
  const bool has_splits = split_column != kNoColumn && source.split.empty();
  CaptionCollector captions;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i == image_column || i == caption_column || i == split_column || is_counter(columns[i])) continue;
    if (!no_label_wanted(context.options, columns)) note_missing_label(context, source, columns);
    break;
  }
  const bool bars = table.separator() == '|';
  for (std::vector<std::string> row;;) {
    auto more = table.next(row);
    if (!more.ok()) return more.status().at(printable(source.path));
    if (!*more) break;
    if (bars && row.size() + 1 == columns.size()) mend_missing_separator(row);
    if (row.size() > columns.size() && caption_column + 1 == columns.size())
      join_surplus(row, columns.size(), table.separator());
    if (row.size() != columns.size())
      return Status(Code::corrupt, "line " + std::to_string(table.line()) + " has " +
                                       std::to_string(row.size()) + " cells, but the header has " +
                                       std::to_string(columns.size()) +
                                       "; quote cells that hold the separator")
          .at(printable(source.path));
    Json further = Json::object();
    for (size_t i = 0; i < row.size(); ++i)
      if (i != image_column && i != caption_column && (i != split_column || !has_splits) &&
          !is_counter(columns[i]))
        further.set(columns[i], bars ? trimmed(row[i]) : row[i]);
    PACKTRAIN_TRY(captions
                      .add(trimmed(row[image_column]), trimmed(row[caption_column]), std::move(further),
                           has_splits ? trimmed(row[split_column]) : std::string_view())
                      .at("line " + std::to_string(table.line()))
                      .at(printable(source.path)));
  }
  return captions.add_samples(context, source, split_column == kNoColumn ? "" : columns[split_column]);
}

bool is_coco_captions(const Json& document) {
  if (!document["images"].is_array() || !document["annotations"].is_array()) return false;
  const auto& annotations = document["annotations"].items();
  return annotations.empty() || annotations.front().has("caption");
}

Status add_coco_captions(ScanContext& context, const Source& source, const Json& document) {
  CaptionCollector captions;
  std::unordered_map<std::string, const std::string*> names;  // id, as it is written, to file name
  for (const Json& image : document["images"].items()) {
    const std::string& name = image["file_name"].as_string();
    if (name.empty() || image["id"].is_null())
      return Status(Code::corrupt,
                    "an entry of \"images\" has no id or no file_name; mend it, or leave it out")
          .at(printable(source.path));
    if (!names.try_emplace(image["id"].dump(), &name).second)
      return Status(Code::corrupt,
                    "two images have the id " + image["id"].dump() + "; give one of them another")
          .at(printable(source.path));
    Json further = Json::object();
    further.set("image_id", image["id"]);
    captions.add_image(name, std::move(further));
  }
  for (const Json& annotation : document["annotations"].items()) {
    const auto name = names.find(annotation["image_id"].dump());
    if (name == names.end())
      return Status(Code::corrupt,
                    "a caption belongs to image " + annotation["image_id"].dump() +
                        ", which is not among the images; leave the caption out, or add the image")
          .at(printable(source.path));
    PACKTRAIN_TRY(captions.add(*name->second, trimmed(annotation["caption"].as_string())));
  }
  return captions.add_samples(context, source);
}

bool looks_like_token_list(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) return false;
  const size_t hash = line.substr(0, tab).rfind('#');
  return hash != std::string_view::npos && hash > 0 && hash + 1 < tab &&
         line.substr(hash + 1, tab - hash - 1).find_first_not_of("0123456789") == std::string_view::npos;
}

Status add_token_list(ScanContext& context, const Source& source) {
  PACKTRAIN_ASSIGN(text, read_whole(context.storage, source.path));
  CaptionCollector captions;
  TableText lines(text, '\t', Quotes::none);
  for (std::vector<std::string> row;;) {
    PACKTRAIN_ASSIGN(more, lines.next(row));
    if (!more) break;
    const std::string line_number = "line " + std::to_string(lines.line());
    if (row.size() < 2 || row[0].rfind('#') == std::string::npos)
      return Status(Code::corrupt,
                    line_number + " is not of the form NAME#NUMBER, tab, text; mend it, or leave it out")
          .at(printable(source.path));
    join_surplus(row, 2, '\t');
    PACKTRAIN_TRY(captions.add(row[0].substr(0, row[0].rfind('#')), trimmed(row[1])));
  }
  return captions.add_samples(context, source);
}

}  // namespace packtrain
