#include "pack/show_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/little_endian.h"
#include "packtrain/decode.h"
#include "packtrain/storage.h"

namespace packtrain {

namespace {

struct Wav {
  uint16_t kind = 0, channels = 0, bits = 0;
  uint32_t rate = 0;
  Bytes data;
  size_t frame_bytes() const { return size_t{channels} * (bits / 8); }
};

std::optional<Wav> parse_wav(Bytes bytes) {
  Wav wav;
  size_t at = 12;
  while (at + 8 <= bytes.size()) {
    const std::string_view name = as_text(bytes.subspan(at, 4));
    const size_t claimed = load_le<uint32_t>(bytes.data() + at + 4);
    const Bytes body = bytes.subspan(at + 8, std::min(claimed, bytes.size() - at - 8));
    if (name == "fmt " && body.size() >= 16) {
      wav.kind = load_le<uint16_t>(body.data());
      wav.channels = load_le<uint16_t>(body.data() + 2);
      wav.rate = load_le<uint32_t>(body.data() + 4);
      wav.bits = load_le<uint16_t>(body.data() + 14);
      constexpr uint16_t kExtensible = 0xFFFE;  // the true kind stands in the extension
      if (wav.kind == kExtensible && body.size() >= 26) wav.kind = load_le<uint16_t>(body.data() + 24);
    } else if (name == "data") {
      wav.data = body;
      break;
    }
    at += 8 + claimed + claimed % 2;
  }
  constexpr uint16_t kPcm = 1, kFloat = 3;
  const bool whole =
      wav.kind == kPcm && (wav.bits == 8 || wav.bits == 16 || wav.bits == 24 || wav.bits == 32);
  const bool real = wav.kind == kFloat && wav.bits == 32;
  if ((!whole && !real) || wav.channels == 0 || wav.rate == 0 || wav.data.size() < wav.frame_bytes())
    return std::nullopt;
  return wav;
}

// In [-1, 1].
double amplitude(const Wav& wav, const std::byte* at) {
  if (wav.kind == 3) {
    const double value = load_le<float>(at);
    return std::isfinite(value) ? std::clamp(value, -1.0, 1.0) : 0;
  }
  switch (wav.bits) {
    case 8:
      return (std::to_integer<int>(at[0]) - 128) / 128.0;
    case 16:
      return load_le<int16_t>(at) / 32768.0;
    case 24:
      return static_cast<int8_t>(at[2]) / 128.0;
    default:
      return load_le<int32_t>(at) / 2147483648.0;
  }
}

struct Npy {
  char kind = 0;     // 'f', 'i', 'u', 'b'
  size_t width = 0;  // bytes of a number
  std::vector<uint64_t> shape;
  Bytes data;
};

std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// The header is a Python dictionary; what is needed of it is found by its keys.
std::optional<Npy> parse_npy(Bytes bytes) {
  if (bytes.size() < 12) return std::nullopt;
  const bool first_version = std::to_integer<int>(bytes[6]) == 1;
  const size_t start = first_version ? 10 : 12;
  const size_t length =
      first_version ? load_le<uint16_t>(bytes.data() + 8) : load_le<uint32_t>(bytes.data() + 8);
  if (length > bytes.size() - start) return std::nullopt;
  const std::string_view header = as_text(bytes.subspan(start, length));
  const auto behind = [&](std::string_view key, std::string_view mark) {
    const size_t at = header.find(key);
    const size_t open = at == std::string_view::npos ? at : header.find(mark, at + key.size());
    return open == std::string_view::npos ? std::string_view() : header.substr(open + mark.size());
  };
  Npy npy;
  npy.data = bytes.subspan(start + length);
  std::string_view type = behind("'descr':", "'"), shape = behind("'shape':", "(");
  if (type.size() < 3 || type[0] == '>' || header.find("'fortran_order': False") == std::string_view::npos)
    return std::nullopt;
  npy.kind = type[1];
  type.remove_prefix(2);
  npy.width = take_number(type).value_or(0);
  while (const auto side = take_number(shape)) {
    npy.shape.push_back(*side);
    shape.remove_prefix(std::min(shape.find_first_not_of(", "), shape.size()));
  }
  return npy;
}

std::optional<double> number_at(const Npy& npy, size_t index) {
  const std::byte* at = npy.data.data() + index * npy.width;
  switch (npy.kind) {
    case 'f':
      if (npy.width == 4) return load_le<float>(at);
      if (npy.width == 8) return load_le<double>(at);
      return std::nullopt;
    case 'b':
      return std::to_integer<int>(at[0]);
    case 'u':
      if (npy.width == 1) return load_le<uint8_t>(at);
      if (npy.width == 2) return load_le<uint16_t>(at);
      if (npy.width == 4) return load_le<uint32_t>(at);
      if (npy.width == 8) return static_cast<double>(load_le<uint64_t>(at));
      return std::nullopt;
    case 'i':
      if (npy.width == 1) return load_le<int8_t>(at);
      if (npy.width == 2) return load_le<int16_t>(at);
      if (npy.width == 4) return load_le<int32_t>(at);
      if (npy.width == 8) return static_cast<double>(load_le<int64_t>(at));
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> waveform(Bytes bytes) {
  const auto wav = parse_wav(bytes);
  if (!wav) return std::nullopt;
  constexpr size_t kColumns = 150;
  constexpr double kMiddle = 56, kReach = 44;
  const size_t frames = wav->data.size() / wav->frame_bytes();
  const size_t columns = std::min(kColumns, frames);
  std::vector<std::pair<double, double>> reaches;  // least and most of each column
  double peak = 0;
  for (size_t column = 0; column < columns; ++column) {
    const size_t first = column * frames / columns, end = (column + 1) * frames / columns;
    const size_t step =
        std::max<size_t>((end - first) / 256, 1);  // long recordings are looked at here and there
    double least = 1, most = -1;
    for (size_t frame = first; frame < end; frame += step) {
      const double value = amplitude(*wav, wav->data.data() + frame * wav->frame_bytes());
      least = std::min(least, value);
      most = std::max(most, value);
    }
    reaches.emplace_back(least, most);
    peak = std::max({peak, -least, most});
  }
  // Quiet recordings are drawn as large as loud ones: the shape is what one looks for.
  const double gain = kReach / std::max(peak, 0.001);
  std::string upper, lower;
  for (size_t column = 0; column < columns; ++column) {
    const double x = 5 + 150.0 * static_cast<double>(column) / static_cast<double>(columns);
    const auto [least, most] = reaches[column];
    upper += fmt::format("{}{:.1f} {:.1f}", column == 0 ? "M" : "L", x, kMiddle - most * gain - 0.4);
    lower.insert(0, fmt::format("L{:.1f} {:.1f}", x, kMiddle - least * gain + 0.4));
  }
  return fmt::format(
      "<svg viewBox=\"0 0 160 120\" role=\"img\" aria-label=\"waveform\"><path class=\"grid\" d=\"M5 "
      "{0}H155\"/><path "
      "class=\"wave\" d=\"{1}{2}Z\"/><text class=\"end\" x=\"154\" y=\"116\">{3:.2f} s</text></svg>",
      kMiddle, upper, lower, static_cast<double>(frames) / wav->rate);
}

std::optional<std::vector<std::byte>> number_plane(Bytes bytes) {
  const auto npy = parse_npy(bytes);
  constexpr uint64_t kSmallest = 4, kLargest = 4096, kDrawn = 160;
  if (!npy || npy->shape.size() < 2) return std::nullopt;
  const uint64_t height = npy->shape[npy->shape.size() - 2], width = npy->shape.back();
  if (height < kSmallest || width < kSmallest || height > kLargest || width > kLargest) return std::nullopt;
  if (npy->width == 0 || npy->width > 8 || npy->data.size() / npy->width < height * width)
    return std::nullopt;
  const uint64_t step = (std::max(height, width) + kDrawn - 1) / kDrawn;
  std::vector<double> values;
  for (uint64_t y = 0; y < height; y += step)
    for (uint64_t x = 0; x < width; x += step) {
      const auto value = number_at(*npy, y * width + x);
      if (!value) return std::nullopt;
      values.push_back(std::isfinite(*value) ? *value : 0);
    }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double low = *least, span = *most > *least ? *most - *least : 1;
  if (!std::isfinite(span)) return std::nullopt;
  Image image{{static_cast<uint32_t>((width + step - 1) / step),
               static_cast<uint32_t>((height + step - 1) / step), 3},
              {}};
  for (const double value : values) {
    // Dark blue over teal to pale yellow: brightness grows all the way, for every eye.
    const double part = (value - low) / span;
    image.pixels.push_back(static_cast<uint8_t>(30 + 215 * part * part));
    image.pixels.push_back(static_cast<uint8_t>(30 + 205 * part));
    image.pixels.push_back(static_cast<uint8_t>(90 + 110 * part - 90 * part * part));
  }
  auto encoded = encode_jpeg(image, 90, Chroma::s444);
  if (!encoded.ok()) return std::nullopt;
  return std::move(encoded).value();
}

}  // namespace packtrain
