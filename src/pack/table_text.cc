#include "pack/table_text.h"

#include <algorithm>

namespace packtrain {
namespace {
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
}

TableText::TableText(std::string_view text, char separator, Quotes quotes)
    : text_(text), separator_(separator), quotes_(quotes) {
  if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
}

Result<bool> TableText::next(std::vector<std::string>& row) {
  if (at_ == 0 && (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff")))
    return Status(Code::unsupported, "is UTF-16 text, as some spreadsheets save it; save it as UTF-8");
  // Empty lines hold no row.
  while (at_ < text_.size() && (text_[at_] == '\n' || text_.substr(at_).starts_with("\r\n"))) {
    at_ += text_[at_] == '\n' ? 1 : 2;
    ++line_;
  }
  row_line_ = line_;
  if (at_ >= text_.size()) {
    row.clear();
    return false;
  }
  for (size_t cells = 0;;) {
    if (row.size() == cells) row.emplace_back();
    std::string& cell = row[cells++];
    cell.clear();
    if (quotes_ == Quotes::rfc4180 && at_ < text_.size() && text_[at_] == '"')
      PACKTRAIN_TRY(quoted_cell(cell));
    // What follows a closing quote up to the separator belongs to the cell, as in Python's csv module.
    size_t end = at_;
    while (end < text_.size() && text_[end] != separator_ && text_[end] != '\n') ++end;
    const bool ends_row = end == text_.size() || text_[end] == '\n';
    std::string_view rest = text_.substr(at_, end - at_);
    if (ends_row && rest.ends_with('\r')) rest.remove_suffix(1);
    cell += rest;
    at_ = std::min(end + 1, text_.size());
    if (!ends_row) continue;
    if (end < text_.size()) ++line_;
    row.resize(cells);
    return true;
  }
}

Status TableText::quoted_cell(std::string& out) {
  const uint64_t from_line = line_;
  for (++at_; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] != '"') {
      out += text_[at_];
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
      out += '"';
      ++at_;
    } else {
      ++at_;
      return {};
    }
  }
  return Status(Code::corrupt,
                "a quotation mark is never closed; close it, or double it inside a quoted cell")
      .at("line " + std::to_string(from_line));
}

char guess_separator(std::string_view text) {
  const std::string_view header = text.substr(0, text.find('\n'));
  char best = ',';
  for (const char candidate : {';', '\t', '|'})
    if (std::count(header.begin(), header.end(), candidate) > std::count(header.begin(), header.end(), best))
      best = candidate;
  return best;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace packtrain
