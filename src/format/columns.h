// What the columns of a table mean, for containers that keep a column for each field: Arrow, Parquet, HDF5,
// Zarr, NPZ. One set of rules, so that the same data give the same dataset from all of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/format.h"
#include "packtrain/status.h"

namespace packtrain {

enum class ColumnKind : uint8_t { bytes, text, integers, other };
enum class ColumnRole : uint8_t { field, label, key };
// "label", "labels", "target", "targets", "cls" and the like of whole numbers are labels; "__key__", "key"
// and "keys" of texts are keys; all else are fields.
ColumnRole column_role(std::string_view name, ColumnKind kind);

// Whether a column of this name would hold labels, were it of whole numbers.
bool is_label_name(std::string_view name);

// The column that keeps keys, where packtrain writes one.
inline constexpr std::string_view kKeyColumn = "__key__";

// The field that a column becomes. A column that is named after what it is for ("image_data", "images",
// "audio", …) is named by its content instead: `first` are the first bytes of one of its values.
std::string field_of_column(std::string_view column, Bytes first);
bool is_named_by_content(std::string_view column);

// Whether a field of this name holds an image.
bool is_image_field(std::string_view field);
// Whether the samples are one image each, with or without a label: the courses' layouts, which keep no keys.
bool is_image_set(const WriteSpec& spec);

// The key of a sample of a container that has none: its number in nine digits.
std::string number_key(uint64_t sample);

// Texts one behind the other, without memory of its own for each. One thread at a time.
class TextRow {
 public:
  bool empty() const { return ends_.empty(); }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t at) const {
    const size_t start = at > 0 ? ends_[at - 1] : 0;
    return std::string_view(text_).substr(start, ends_[at] - start);
  }
  void reserve(size_t texts, size_t bytes) {
    ends_.reserve(texts);
    text_.reserve(bytes);
  }
  void add(std::string_view text) {
    text_.append(text);
    ends_.push_back(text_.size());
  }
  // A text of so many zeros, to be filled later.
  void add_zeros(size_t bytes) {
    text_.append(bytes, '\0');
    ends_.push_back(text_.size());
  }
  void fill(size_t at, std::string_view text) {
    const size_t start = at > 0 ? ends_[at - 1] : 0;
    text.copy(text_.data() + start, ends_[at] - start);
  }

 private:
  std::string text_;
  std::vector<size_t> ends_;
};

}  // namespace packtrain
