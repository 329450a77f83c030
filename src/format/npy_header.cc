#include "format/npy_header.h"

#include <cstring>

#include "base/little_endian.h"
#include "base/words.h"

namespace packtrain {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kMagicBytes = 8;  // with the version
constexpr size_t kAlign = 64;
constexpr size_t kLongestNumber = 20;  // of 64 bits

Status damaged(std::string_view what) {
  return Status(Code::corrupt, "the header of the .npy file " + std::string(what));
}

// Reads the few forms of Python text that a header is made of.
class HeaderText {
 public:
  explicit HeaderText(std::string_view text) : text_(text) {}

  bool take(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool next_is(char wanted) {
    skip_space();
    return at_ < text_.size() && text_[at_] == wanted;
  }
  bool take_word(std::string_view wanted) {
    skip_space();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  bool take_quoted(std::string_view& out) {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  // A list with all that is in it, as text.
  bool take_list(std::string_view& out) {
    skip_space();
    const size_t first = at_;
    size_t depth = 0;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\'' || text_[at_] == '"') {
        const size_t end = text_.find(text_[at_], at_ + 1);
        if (end == std::string_view::npos) return false;
        at_ = end;
      } else if (text_[at_] == '[') {
        ++depth;
      } else if (text_[at_] == ']' && --depth == 0) {
        ++at_;
        out = text_.substr(first, at_ - first);
        return true;
      }
    }
    return false;
  }
  // Without a sign; Python 2 wrote an L behind it.
  bool take_size(uint64_t& out) {
    skip_space();
    const size_t first = at_;
    for (out = 0; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (out >> 59 != 0) return false;
      out = out * 10 + static_cast<uint64_t>(text_[at_] - '0');
    }
    const bool any = at_ > first;
    if (any && at_ < text_.size() && text_[at_] == 'L') ++at_;
    return any;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  const std::string_view text_;
  size_t at_ = 0;
};

struct Seen {
  bool type = false, order = false, shape = false;
};

Status take_shape(HeaderText& text, NpyHeader& header) {
  if (!text.take('(')) return damaged("has no shape");
  header.axes = 0;
  while (!text.take(')')) {
    uint64_t size = 0;
    if (!text.take_size(size)) return damaged("has a shape that is no tuple of sizes");
    if (header.axes == kNpyMostAxes) {
      return Status(Code::unsupported, "the array has more than " + std::to_string(kNpyMostAxes) +
                                           " axes; reshape it when you save it");
    }
    header.sizes[header.axes++] = size;
    if (!text.take(',') && !text.next_is(')')) return damaged("has a shape that is no tuple of sizes");
  }
  return {};
}

Status take_entry(HeaderText& text, std::string_view key, NpyHeader& header, Seen& seen) {
  if (key == "descr") {
    seen.type = true;
    header.records = text.next_is('[');
    std::string_view word;
    if (header.records ? !text.take_list(word) : !text.take_quoted(word))
      return damaged("does not say of which type the numbers are");
    header.type = word;
    return {};
  }
  if (key == "fortran_order") {
    seen.order = true;
    header.fortran = text.take_word("True");
    if (!header.fortran && !text.take_word("False"))
      return damaged("does not say in which order the axes are");
    return {};
  }
  if (key == "shape") {
    seen.shape = true;
    return take_shape(text, header);
  }
  return damaged("has the unknown key '" + printable(key) + "'");
}

}  // namespace

bool starts_npy(Bytes file) {
  return file.size() >= kNpyMagic.size() && std::memcmp(file.data(), kNpyMagic.data(), kNpyMagic.size()) == 0;
}

Result<size_t> npy_header_bytes(Bytes file) {
  if (!starts_npy(file)) return Status(Code::corrupt, "it is no .npy file");
  if (file.size() < kMagicBytes + sizeof(uint16_t)) return damaged("is cut short");
  const auto version = std::to_integer<uint8_t>(file[6]);
  if (version < 1 || version > 3) {
    return Status(Code::unsupported,
                  "the .npy file has version " + std::to_string(version) + "; 1 to 3 can be read");
  }
  const size_t length_bytes = version == 1 ? sizeof(uint16_t) : sizeof(uint32_t);
  if (file.size() < kMagicBytes + length_bytes) return damaged("is cut short");
  const uint32_t length = version == 1 ? load_le<uint16_t>(file.data() + kMagicBytes)
                                       : load_le<uint32_t>(file.data() + kMagicBytes);
  if (length > kNpyLargestHeader) return damaged("claims to be " + bytes_in_words(length) + " long");
  return kMagicBytes + length_bytes + length;
}

Result<NpyHeader> parse_npy_header(Bytes file) {
  PACKTRAIN_ASSIGN(bytes, npy_header_bytes(file));
  if (bytes > file.size()) return damaged("is cut short");
  const size_t prologue =
      kMagicBytes + (std::to_integer<uint8_t>(file[6]) == 1 ? sizeof(uint16_t) : sizeof(uint32_t));
  HeaderText text({reinterpret_cast<const char*>(file.data()) + prologue, bytes - prologue});
  NpyHeader header;
  header.bytes = bytes;
  Seen seen;
  if (!text.take('{')) return damaged("is no dict");
  while (!text.take('}')) {
    std::string_view key;
    if (!text.take_quoted(key) || !text.take(':')) return damaged("is no dict");
    PACKTRAIN_TRY(take_entry(text, key, header, seen));
    if (!text.take(',') && !text.next_is('}')) return damaged("is no dict");
  }
  if (!text.at_end()) return damaged("goes on behind its end");
  if (!seen.type || !seen.order || !seen.shape)
    return damaged("lacks one of 'descr', 'fortran_order' and 'shape'");
  return header;
}

std::string make_npy_header(std::string_view type, std::span<const uint64_t> shape) {
  std::string text = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i) text.append(i == 0 ? "" : ", ").append(std::to_string(shape[i]));
  text += shape.size() == 1 ? ",), }" : "), }";
  const size_t spare = shape.empty() ? 0 : kLongestNumber - std::to_string(shape[0]).size();
  const size_t prologue = kMagicBytes + sizeof(uint16_t);
  const size_t whole = (prologue + text.size() + spare + 1 + kAlign - 1) / kAlign * kAlign;
  text.resize(whole - prologue - 1, ' ');
  text += '\n';
  std::string header(kNpyMagic);
  header.append("\x01\x00", 2);
  char length[sizeof(uint16_t)];
  store_le(length, static_cast<uint16_t>(text.size()));
  return header.append(length, sizeof length) + text;
}

}  // namespace packtrain
