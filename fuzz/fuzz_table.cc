// Any bytes as a table, with and without quotes: an error or rows whose cells come from the text.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "pack/class_file.h"
#include "pack/table_text.h"

using namespace packtrain;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Quotes quotes : {Quotes::rfc4180, Quotes::none}) {
    TableText table(text, guess_separator(text), quotes);
    uint64_t bytes = 0, last_line = 0;
    for (std::vector<std::string> row;;) {
      const auto more = table.next(row);
      if (!more.ok() || !*more) break;
      for (const std::string& cell : row) bytes += cell.size();
      if (row.empty() || table.line() <= last_line || bytes > size) std::abort();
      last_line = table.line();
    }
  }
  (void)parse_class_file(text).ok();
  return 0;
}
