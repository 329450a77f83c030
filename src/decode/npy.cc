// .npy: NumPy's file of one array. Layout:
//
//   "\x93NUMPY", major, minor, u16 (version 1) or u32 (versions 2 and 3) header length, header, numbers
//
// The header is a Python dict as text: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 64), }.
#include <cstring>

#include "base/little_endian.h"
#include "base/words.h"
#include "decode/stored_array.h"
#include "decode/value_readers.h"
#include "packtrain/decode.h"

namespace packtrain {
namespace {

constexpr uint32_t kLargestHeader = 64 << 10;  // NumPy's own are below 200 bytes

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

struct Header {
  StoredArray array;
  bool has_type = false, has_order = false, has_shape = false, fortran = false;
  std::array<uint64_t, kMostAxes> sizes{};
  size_t axes = 0;
};

Status take_shape(HeaderText& text, Header& header) {
  if (!text.take('(')) return damaged("has no shape");
  while (!text.take(')')) {
    uint64_t size = 0;
    if (!text.take_size(size)) return damaged("has a shape that is no tuple of sizes");
    if (header.axes == kMostAxes) {
      return Status(Code::unsupported, "the array has more than " + std::to_string(kMostAxes) +
                                           " axes; reshape it when you save it");
    }
    header.sizes[header.axes++] = size;
    if (!text.take(',') && !text.next_is(')')) return damaged("has a shape that is no tuple of sizes");
  }
  header.has_shape = true;
  return {};
}

Status take_entry(HeaderText& text, std::string_view key, Header& header) {
  if (key == "descr") {
    std::string_view word;
    if (text.next_is('[')) {
      return Status(
          Code::unsupported,
          "the .npy file is an array of records; save one array of numbers for each of their fields");
    }
    if (!text.take_quoted(word)) return damaged("does not say of which type the numbers are");
    PACKTRAIN_ASSIGN(number, parse_number(word));
    header.array.shape.type = number.type;
    header.array.swapped = number.swapped;
    header.has_type = true;
    return {};
  }
  if (key == "fortran_order") {
    header.fortran = text.take_word("True");
    if (!header.fortran && !text.take_word("False"))
      return damaged("does not say in which order the axes are");
    header.has_order = true;
    return {};
  }
  if (key == "shape") return take_shape(text, header);
  return damaged("has the unknown key '" + printable(key) + "'");
}

Result<StoredArray> parse_header(std::string_view header_text) {
  HeaderText text(header_text);
  Header header;
  if (!text.take('{')) return damaged("is no dict");
  while (!text.take('}')) {
    std::string_view key;
    if (!text.take_quoted(key) || !text.take(':')) return damaged("is no dict");
    PACKTRAIN_TRY(take_entry(text, key, header));
    if (!text.take(',') && !text.next_is('}')) return damaged("is no dict");
  }
  if (!text.at_end()) return damaged("goes on behind its end");
  if (!header.has_type || !header.has_order || !header.has_shape)
    return damaged("lacks one of 'descr', 'fortran_order' and 'shape'");
  for (size_t axis = 0; axis < header.axes; ++axis)
    if (!add_axis(header.array.shape, header.sizes[axis])) return damaged("claims an impossibly large array");
  if (header.fortran)
    header.array.use_fortran_order();
  else
    header.array.use_c_order();
  return header.array;
}

class NpyReader final : public ValueReader {
 public:
  Result<ValueFacts> look(Bytes encoded) override;
  Status read(MutableBytes into) override {
    copy_array(array_, into);
    return {};
  }

 private:
  StoredArray array_;
};

Result<ValueFacts> NpyReader::look(Bytes encoded) {
  constexpr size_t kMagicBytes = 8;
  if (media_kind(encoded) != MediaKind::npy) {
    return Status(
        Code::corrupt,
        "it is no .npy file, but " +
            (encoded.empty() ? "empty"
                             : "of the kind '" + std::string(media_kind_name(media_kind(encoded))) + "'"));
  }
  if (encoded.size() < kMagicBytes + 2) return damaged("is cut short");
  const auto version = std::to_integer<uint8_t>(encoded[6]);
  if (version < 1 || version > 3) {
    return Status(Code::unsupported,
                  "the .npy file has version " + std::to_string(version) + "; 1 to 3 can be read");
  }
  const size_t length_bytes = version == 1 ? sizeof(uint16_t) : sizeof(uint32_t);
  if (encoded.size() < kMagicBytes + length_bytes) return damaged("is cut short");
  const uint32_t length = version == 1 ? load_le<uint16_t>(encoded.data() + kMagicBytes)
                                       : load_le<uint32_t>(encoded.data() + kMagicBytes);
  if (length > kLargestHeader) return damaged("claims to be " + bytes_in_words(length) + " long");
  const Bytes rest = encoded.subspan(kMagicBytes + length_bytes);
  if (length > rest.size()) return damaged("is cut short");
  PACKTRAIN_ASSIGN(array, parse_header({reinterpret_cast<const char*>(rest.data()), length}));
  array_ = array;
  array_.data = rest.subspan(length);
  if (array_.data.size() < array_.shape.bytes()) {
    return Status(Code::corrupt, "the .npy file is cut short: " + array_.shape.text() + " takes " +
                                     count_in_words(array_.shape.bytes()) + " bytes, and " +
                                     count_in_words(array_.data.size()) + " follow");
  }
  ValueFacts facts;
  facts.shape = array_.shape;
  return facts;
}

}  // namespace

std::unique_ptr<ValueReader> make_npy_reader() { return std::make_unique<NpyReader>(); }

}  // namespace packtrain
