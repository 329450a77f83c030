// WAV: RIFF with PCM of 8, 16, 24 or 32 bits, or floats of 32 or 64. Layout:
//
//   "RIFF" or "RF64", u32 size, "WAVE", then chunks: name, u32 size, bytes, one more if the size is odd
//   "fmt ": u16 tag, u16 channels, u32 rate, u32 bytes a second, u16 bytes a frame, u16 bits; extensible
//   formats
//           have the true tag 24 bytes into it
//   "ds64": in RF64, u64 size, u64 size of "data", …
//   "data": frames, channels interleaved
//
// Whoever writes to a pipe cannot go back to fill in the sizes, and leaves 0 or nearly 2^32 or 2^31 in their
// place.
#include <cstring>

#include "base/little_endian.h"
#include "base/words.h"
#include "decode/audio_samples.h"
#include "decode/value_readers.h"

namespace packtrain {
namespace {

constexpr size_t kRiffBytes = 12, kChunkHead = 8, kFormatBytes = 16, kExtensibleBytes = 40;
constexpr uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;
constexpr uint32_t kNotKnown = 0xFFFFFFFF;
constexpr uint32_t kFromHereNotKnown = 0x7FFFF000;  // what pipes leave lies above

Status damaged(std::string what) { return Status(Code::corrupt, "the WAV file " + std::move(what)); }

struct WavFormat {
  AudioFormat audio;
  bool is_float = false;
  uint32_t bits = 0;
  uint32_t frame_bytes = 0;
};

Result<WavFormat> parse_format(Bytes chunk) {
  if (chunk.size() < kFormatBytes) return damaged("has a format chunk that is cut short");
  WavFormat format;
  uint16_t tag = load_le<uint16_t>(chunk.data());
  format.audio.channels = load_le<uint16_t>(chunk.data() + 2);
  format.audio.sample_rate = load_le<uint32_t>(chunk.data() + 4);
  format.frame_bytes = load_le<uint16_t>(chunk.data() + 12);
  format.bits = load_le<uint16_t>(chunk.data() + 14);
  if (tag == kExtensible) {
    if (chunk.size() < kExtensibleBytes) return damaged("has an extensible format chunk that is cut short");
    tag = load_le<uint16_t>(chunk.data() + 24);
  }
  format.is_float = tag == kFloat;
  const bool known = tag == kPcm ? format.bits % 8 == 0 && format.bits >= 8 && format.bits <= 32
                                 : tag == kFloat && (format.bits == 32 || format.bits == 64);
  if (!known) {
    return Status(Code::unsupported,
                  "the WAV file has format " + std::to_string(tag) + " with " + std::to_string(format.bits) +
                      " bits; PCM of 8, 16, 24 or 32 bits and floats of 32 or 64 can be read: convert it");
  }
  if (format.audio.channels == 0 || format.frame_bytes != format.audio.channels * format.bits / 8)
    return damaged("has a format that contradicts itself");
  return format;
}

class WavReader final : public ValueReader {
 public:
  explicit WavReader(const ValueSpec& spec) : spec_(spec) {}
  Result<ValueFacts> look(Bytes encoded) override;
  Status read(MutableBytes into) override {
    if (spec_.type == NumberType::int16)
      write(reinterpret_cast<int16_t*>(into.data()));
    else
      write(reinterpret_cast<float*>(into.data()));
    return {};
  }

 private:
  template <class Out>
  void write(Out* out) const;
  Result<Bytes> data_of(Bytes rest, uint32_t size, uint32_t riff_size, uint64_t long_size) const;

  const ValueSpec spec_;
  WavFormat format_;
  Bytes frames_;
};

// The bytes of the data chunk; `rest` is the file behind its head.
Result<Bytes> WavReader::data_of(Bytes rest, uint32_t size, uint32_t riff_size, uint64_t long_size) const {
  const bool unknown_whole = riff_size == 0 || riff_size >= kFromHereNotKnown;
  uint64_t bytes = size;
  if (size == kNotKnown && long_size != 0) {
    bytes = long_size;
  } else if ((size == 0 && unknown_whole) || (size >= kFromHereNotKnown && size > rest.size())) {
    bytes = rest.size();
  }
  if (bytes > rest.size()) {
    return damaged("is cut short: its data chunk claims " + count_in_words(bytes) + " bytes, and " +
                   count_in_words(rest.size()) + " follow");
  }
  return rest.first(bytes);
}

Result<ValueFacts> WavReader::look(Bytes encoded) {
  if (encoded.size() < kRiffBytes) return damaged("is cut short");
  const uint32_t riff_size = load_le<uint32_t>(encoded.data() + 4);
  bool has_format = false;
  uint64_t long_size = 0;
  for (Bytes rest = encoded.subspan(kRiffBytes); rest.size() >= kChunkHead;) {
    const std::string_view name(reinterpret_cast<const char*>(rest.data()), 4);
    const uint32_t size = load_le<uint32_t>(rest.data() + 4);
    rest = rest.subspan(kChunkHead);
    if (name == "data") {
      if (!has_format) return damaged("has data before it says in which format they are");
      PACKTRAIN_ASSIGN(data, data_of(rest, size, riff_size, long_size));
      format_.audio.frames = data.size() / format_.frame_bytes;
      frames_ = data;
      return audio_facts(format_.audio, spec_);
    }
    if (size > rest.size()) return damaged("is cut short inside of its chunk '" + printable(name) + "'");
    if (name == "fmt ") {
      PACKTRAIN_ASSIGN(format, parse_format(rest.first(size)));
      format_ = format;
      has_format = true;
    } else if (name == "ds64" && size >= 16) {
      long_size = load_le<uint64_t>(rest.data() + 8);
    }
    rest = rest.subspan(std::min<size_t>(rest.size(), size_t{size} + size % 2));
  }
  return damaged("has no data chunk");
}

template <class Out>
void WavReader::write(Out* out) const {
  const std::byte* const from = frames_.data();
  const size_t frame_bytes = format_.frame_bytes, sample_bytes = format_.bits / 8;
  const AudioFormat& audio = format_.audio;
  const auto each = [&](auto load) {
    write_frames(audio, spec_.mono, 0, audio.frames, out, [&](uint64_t frame, uint32_t channel) -> Out {
      return load(from + frame * frame_bytes + channel * sample_bytes);
    });
  };
  if (format_.is_float && format_.bits == 32) {
    each([](const std::byte* at) { return from_real<Out>(double{load_le<float>(at)}); });
  } else if (format_.is_float) {
    each([](const std::byte* at) { return from_real<Out>(load_le<double>(at)); });
  } else if (format_.bits == 8) {  // the only one without a sign
    each([](const std::byte* at) { return from_integer<Out>(std::to_integer<int32_t>(*at) - 128, 8); });
  } else if (format_.bits == 16) {
    each([](const std::byte* at) { return from_integer<Out>(load_le<int16_t>(at), 16); });
  } else if (format_.bits == 24) {
    each([](const std::byte* at) {
      const int32_t high =
          std::to_integer<int8_t>(at[2]);  // NOLINT(bugprone-signed-char-misuse): it has the sign
      return from_integer<Out>(high * 65536 + load_le<uint16_t>(at), 24);
    });
  } else {
    each([](const std::byte* at) { return from_integer<Out>(load_le<int32_t>(at), 32); });
  }
}

}  // namespace

std::unique_ptr<ValueReader> make_wav_reader(const ValueSpec& spec) {
  return std::make_unique<WavReader>(spec);
}

}  // namespace packtrain
