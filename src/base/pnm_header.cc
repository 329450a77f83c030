#include "base/pnm_header.h"

#include <algorithm>

namespace packtrain {
namespace {

constexpr uint32_t kLargestSide = (uint32_t{1} << 31) - 1;
constexpr uint32_t kLargestWhite = 65535;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

// Takes white space and numbers off the front of a text. One thread at a time.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  // White space and comments, of which there must be some; then a number from 1 to `most`. 0: there is none.
  uint32_t number(uint32_t most) {
    if (!skip_space()) return 0;
    uint64_t value = 0;
    const size_t first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + static_cast<uint64_t>(text_[at_] - '0');
      if (value > most) return 0;
    }
    return at_ > first ? static_cast<uint32_t>(value) : 0;
  }
  // The one white space that ends the header.
  bool end() { return at_ < text_.size() && is_space(text_[at_++]); }
  size_t position() const { return at_; }

 private:
  bool skip_space() {
    const size_t first = at_;
    for (; at_ < text_.size(); ++at_) {
      if (is_space(text_[at_])) continue;
      if (text_[at_] != '#' || at_ == first) break;
      at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      if (at_ == text_.size()) return false;
    }
    return at_ > first;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<PnmHeader> read_pnm_header(Bytes data) {
  std::string_view text(reinterpret_cast<const char*>(data.data()), std::min(data.size(), kPnmHeadBytes));
  PnmHeader header;
  if (text.starts_with("P5")) {
    header.channels = 1;
  } else if (text.starts_with("P6")) {
    header.channels = 3;
  } else {
    return std::nullopt;
  }
  Tokens tokens(text.substr(2));
  header.width = tokens.number(kLargestSide);
  if (header.width == 0) return std::nullopt;
  header.height = tokens.number(kLargestSide);
  if (header.height == 0) return std::nullopt;
  header.largest = tokens.number(kLargestWhite);
  if (header.largest == 0 || !tokens.end()) return std::nullopt;
  header.bytes = 2 + tokens.position();
  return header;
}

}  // namespace packtrain
