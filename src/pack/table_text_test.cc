#include "pack/table_text.h"

#include <gtest/gtest.h>

namespace packtrain {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view text, char separator = ',', Quotes quotes = Quotes::rfc4180) {
  TableText table(text, separator, quotes);
  Rows rows;
  for (std::vector<std::string> row;;) {
    auto more = table.next(row);
    EXPECT_TRUE(more.ok()) << more.status().text();
    if (!more.ok() || !*more) return rows;
    rows.push_back(row);
  }
}

TEST(TableTextTest, ReadsRowsWithAnyLineEnd) {
  const Rows expected = {{"a", "b"}, {"1", ""}, {"", "2"}};
  EXPECT_EQ(rows_of("a,b\n1,\n,2\n"), expected);
  EXPECT_EQ(rows_of("a,b\r\n1,\r\n,2"), expected);
  EXPECT_EQ(rows_of("\xef\xbb\xbf"
                    "a,b\n\n1,\r\n\r\n,2\n\n"),
            expected);
}

TEST(TableTextTest, QuotedCellsHoldAnything) {
  EXPECT_EQ(rows_of("\"a,\"\"b\"\"\r\nc\",d\n\"\",\"x\"y\n"), (Rows{{"a,\"b\"\r\nc", "d"}, {"", "xy"}}));
}

TEST(TableTextTest, QuotesCanBeOrdinary) {
  EXPECT_EQ(rows_of("\"a| b\"|c\n", '|', Quotes::none), (Rows{{"\"a", " b\"", "c"}}));
}

TEST(TableTextTest, OpenQuoteIsCorruptAndNamesItsLine) {
  TableText table("a,b\n1,\"2\n3\n", ',', Quotes::rfc4180);
  std::vector<std::string> row;
  ASSERT_TRUE(table.next(row).ok());
  const auto broken = table.next(row);
  EXPECT_EQ(broken.status().code(), Code::corrupt);
  EXPECT_NE(broken.status().text().find("line 2"), std::string::npos) << broken.status().text();
}

TEST(TableTextTest, CountsLinesInsideQuotes) {
  TableText table("a\n\"x\ny\"\nb\n", ',', Quotes::rfc4180);
  std::vector<std::string> row;
  for (const uint64_t line : {1, 2, 4}) {
    ASSERT_TRUE(*table.next(row));
    EXPECT_EQ(table.line(), line);
  }
}

TEST(TableTextTest, GuessesTheSeparatorFromTheHeader) {
  EXPECT_EQ(guess_separator("path,label\na;b;c"), ',');
  EXPECT_EQ(guess_separator("path;label\n"), ';');
  EXPECT_EQ(guess_separator("image_name| comment_number| comment\n"), '|');
  EXPECT_EQ(guess_separator("path\tlabel"), '\t');
  EXPECT_EQ(guess_separator("path"), ',');
}

}  // namespace
}  // namespace packtrain
