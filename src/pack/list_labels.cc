#include "pack/list_labels.h"

#include <charconv>
#include <cmath>

#include "base/words.h"

namespace packtrain {
namespace {

// A whole number, also as tables with gaps spell it, whose writers keep the column as floats: "3.0".
bool parse_whole_number(std::string_view text, int64_t& out) {
  if (const size_t dot = text.find('.'); dot != std::string_view::npos && dot > 0) {
    if (text.find_first_not_of('0', dot + 1) != std::string_view::npos) return false;
    text = text.substr(0, dot);
  }
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && out != kNoLabel;
}

// Of any kind and size; "nan" and "inf" are words.
bool is_number(std::string_view text) {
  if (text.find_first_of("0123456789") == std::string_view::npos) return false;
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec != std::errc::invalid_argument && parsed.ptr == text.data() + text.size();
}

}  // namespace

void ListLabels::Kind::note(std::string_view text, std::string_view place) {
  if (count++ > 0) return;
  first = text;
  where = place;
}

int64_t ListLabels::word_id(std::string_view text) {
  const auto [at, added] =
      word_ids_.try_emplace(std::string(text), static_cast<int64_t>(distinct_words_.size()));
  if (added) distinct_words_.emplace_back(text);
  return at->second;
}

void ListLabels::add_whole_number(CatalogBuilder& out, int64_t label, std::string_view text,
                                  std::string_view where) {
  numbers_.note(text, where);
  if (classes_are_given_) number_words_.emplace_back(out.catalog().samples.size() - 1, word_id(text));
  out.set_label(label);
}

void ListLabels::add_number(CatalogBuilder& out, int64_t label, std::string_view where) {
  char digits[24];
  const char* end = std::to_chars(digits, digits + sizeof digits, label).ptr;
  add_whole_number(out, label, std::string_view(digits, static_cast<size_t>(end - digits)), where);
}

void ListLabels::add_text(CatalogBuilder& out, std::string_view text, std::string_view where) {
  if (text.empty()) return;
  if (int64_t number = 0; parse_whole_number(text, number)) {
    add_whole_number(out, number, text, where);
  } else if (is_number(text) && !classes_are_given_) {
    fractions_.note(text, where);
  } else {
    words_.note(text, where);
    out.set_label(word_id(text));
  }
}

bool ListLabels::add_json(CatalogBuilder& out, const Json& label, std::string_view where) {
  if (label.is_bool()) {
    add_number(out, label.as_bool() ? 1 : 0, where);
  } else if (label.is_string()) {
    add_text(out, label.as_string(), where);
  } else if (label.is_integer() && label.as_int(kNoLabel) != kNoLabel) {
    add_number(out, label.as_int(), where);
  } else if (label.is_number() && std::abs(label.as_double()) < 9e15 &&
             label.as_double() == std::floor(label.as_double())) {
    add_number(out, static_cast<int64_t>(label.as_double()), where);
  } else if (label.is_number()) {
    add_text(out, label.dump(), where);
  } else if (!label.is_null()) {
    structures_.note(label.dump(), where);
    return false;
  }
  return true;
}

Status ListLabels::mixture(const Kind& odd, std::string_view is, std::string_view others_are,
                           std::string_view advice) const {
  constexpr size_t kShown = 60;
  const uint64_t all = numbers_.count + words_.count + structures_.count;
  const std::string shown = odd.first.size() > kShown ? odd.first.substr(0, kShown) + "…" : odd.first;
  return Status(Code::invalid, "the label \"" + printable(shown) + "\" " + std::string(is) + ", but " +
                                   count_in_words(all - odd.count) + " of " + count_in_words(all) +
                                   " labels " + std::string(others_are) + "; " + std::string(advice))
      .at(odd.where);
}

Status ListLabels::finish(CatalogBuilder& out, size_t first_sample, std::string_view list) const {
  if (fractions_.count > 0)
    return Status(Code::invalid,
                  "the label " + printable(fractions_.first) +
                      " is no whole number of 64 bits, and labels are whole numbers or names of classes; if "
                      "the values are no classes, keep them in the field json with --label-column none; if "
                      "they are names of classes, list those in a file for --classes")
        .at(fractions_.where)
        .at(list);
  if (structures_.count > 0 && numbers_.count + words_.count > 0)
    return mixture(structures_, "is neither a number nor a name", "are",
                   "mend it, or keep all of them in the field json with --label-column none")
        .at(list);
  if (structures_.count > 0)
    out.catalog().warnings.push_back(std::string(list) + ", " + structures_.where + ": the label " +
                                     printable(structures_.first.substr(0, 60)) +
                                     " is neither a number nor a name; such labels are kept in the field "
                                     "json, and the samples have none");
  if (words_.count == 0) return {};
  if (numbers_.count > 0 && !classes_are_given_) {
    const bool words_are_odd = words_.count <= numbers_.count;
    return mixture(words_are_odd ? words_ : numbers_, words_are_odd ? "is no number" : "is a number",
                   words_are_odd ? "are" : "are not",
                   "mend it (an empty one means that the sample has no label), or, if all of them are names "
                   "of classes, list those in a file for --classes")
        .at(list);
  }
  out.labels_are_named();
  auto& samples = out.catalog().samples;
  for (const auto& [sample, word] : number_words_) samples[sample].label = word;
  for (size_t i = first_sample; i < samples.size(); ++i)
    if (int64_t& label = samples[i].label; label != kNoLabel)
      label = out.class_id(distinct_words_[static_cast<size_t>(label)]);
  return {};
}

}  // namespace packtrain
