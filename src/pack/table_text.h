// TableText: rows of a text table: csv as RFC 4180 has it, tsv, and files that only separate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

enum class Quotes : uint8_t {
  rfc4180,  // a cell that begins with " ends with ", may hold separators and line ends, and "" for "
  none,     // a quotation mark is a character like any other
};

// Reads row by row. Line ends are \n, \r\n or the end; a byte order mark and empty lines are passed over. The
// text must outlive it. One thread at a time; linear.
class TableText {
 public:
  TableText(std::string_view text, char separator, Quotes quotes);

  // False at the end. A quote that does not end is Code::corrupt with its line. Keeps the memory of `row`.
  Result<bool> next(std::vector<std::string>& row);
  uint64_t line() const { return row_line_; }  // where the row read last begins, from 1
  char separator() const { return separator_; }

 private:
  Status quoted_cell(std::string& out);

  const std::string_view text_;
  const char separator_;
  const Quotes quotes_;
  size_t at_ = 0;
  uint64_t line_ = 1, row_line_ = 1;
};

// What separates the cells of a header line: the most frequent of , ; tab and |.
char guess_separator(std::string_view text);
// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace packtrain
