// FLAC against what libFLAC's own encoder was given.
#include <gtest/gtest.h>

#ifdef PACKTRAIN_HAVE_FLAC
#include <FLAC/stream_encoder.h>
#endif

#include <cstring>
#include <vector>

#include "packtrain/values.h"

namespace packtrain {
namespace {

#ifdef PACKTRAIN_HAVE_FLAC

constexpr uint64_t kFlacMemory = 8 << 20;

using File = std::vector<std::byte>;

FLAC__StreamEncoderWriteStatus keep(const FLAC__StreamEncoder*, const FLAC__byte bytes[], size_t count,
                                    uint32_t /*samples*/, uint32_t /*frame*/, void* file) {
  const auto* from = reinterpret_cast<const std::byte*>(bytes);
  static_cast<File*>(file)->insert(static_cast<File*>(file)->end(), from, from + count);
  return FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
}

// `samples` is interleaved. Without its length, as whoever writes to a pipe leaves it.
File encode_flac(uint32_t channels, uint32_t bits, const std::vector<int32_t>& samples,
                 bool says_length = true) {
  File file;
  FLAC__StreamEncoder* encoder = FLAC__stream_encoder_new();
  FLAC__stream_encoder_set_channels(encoder, channels);
  FLAC__stream_encoder_set_bits_per_sample(encoder, bits);
  FLAC__stream_encoder_set_sample_rate(encoder, 44100);
  const auto frames = static_cast<uint32_t>(samples.size() / channels);
  if (says_length) FLAC__stream_encoder_set_total_samples_estimate(encoder, frames);
  EXPECT_EQ(FLAC__stream_encoder_init_stream(encoder, keep, nullptr, nullptr, nullptr, &file),
            FLAC__STREAM_ENCODER_INIT_STATUS_OK);
  EXPECT_TRUE(FLAC__stream_encoder_process_interleaved(encoder, samples.data(), frames));
  EXPECT_TRUE(FLAC__stream_encoder_finish(encoder));
  FLAC__stream_encoder_delete(encoder);
  return file;
}

// A tone with noise: neither silent nor without pattern.
std::vector<int32_t> noisy(size_t count, uint32_t bits) {
  std::vector<int32_t> samples(count);
  uint32_t random = 1;
  for (size_t i = 0; i < count; ++i) {
    random = random * 1664525 + 1013904223;
    const auto full = static_cast<int32_t>(random) / 4 + (i / 50 % 2 == 0 ? 1 << 29 : -(1 << 29));
    samples[i] = full >> (32 - bits);
  }
  return samples;
}

template <class T>
Result<std::vector<T>> decode(Bytes file, const ValueSpec& spec, uint64_t memory = kFlacMemory) {
  PACKTRAIN_ASSIGN(reader, ValueReader::make(spec, memory));
  PACKTRAIN_ASSIGN(facts, reader->look(file));
  EXPECT_EQ(facts.sample_rate, 44100u);
  std::vector<T> out(facts.shape.count());
  PACKTRAIN_TRY(reader->read(std::as_writable_bytes(std::span(out))));
  return out;
}

const ValueSpec kInt16{.kind = ValueKind::audio, .type = NumberType::int16};
const ValueSpec kFloat{.kind = ValueKind::audio, .type = NumberType::float32};

TEST(FlacValue, SamplesComeBackAsTheyWere) {
  const auto samples = noisy(2 * 10000, 16);
  for (const bool says_length : {true, false}) {
    const auto out = decode<int16_t>(encode_flac(2, 16, samples, says_length), kInt16);
    ASSERT_TRUE(out.ok()) << out.status().text();
    ASSERT_EQ(out->size(), samples.size());
    for (size_t i = 0; i < 10000; ++i) {
      ASSERT_EQ((*out)[i], samples[2 * i]);
      ASSERT_EQ((*out)[10000 + i], samples[2 * i + 1]);
    }
  }
}

TEST(FlacValue, WiderSamplesAreFloatsOfOneAndLoseBitsAsInt16) {
  const auto samples = noisy(5000, 24);
  const File file = encode_flac(1, 24, samples);
  const auto floats = decode<float>(file, kFloat);
  const auto shorts = decode<int16_t>(file, kInt16);
  ASSERT_TRUE(floats.ok() && shorts.ok());
  for (size_t i = 0; i < samples.size(); ++i) {
    ASSERT_EQ((*floats)[i], static_cast<float>(samples[i]) / 8388608.0f);
    ASSERT_EQ((*shorts)[i], samples[i] >> 8);
  }
}

TEST(FlacValue, DamageAndTruncationAreCorrupt) {
  const File file = encode_flac(1, 16, noisy(20000, 16));
  for (size_t length = 0; length < file.size(); length += 97)
    EXPECT_EQ(decode<int16_t>(Bytes(file).first(length), kInt16).status().code(), Code::corrupt) << length;
  File flipped = file;
  flipped[file.size() / 2] ^= std::byte{1};
  EXPECT_EQ(decode<int16_t>(flipped, kInt16).status().code(), Code::corrupt);
}

TEST(FlacValue, ALengthThatIsNotTrueIsRefused) {
  File claims = encode_flac(1, 16, noisy(100, 16));
  claims[21] |= std::byte{0x0F};  // the highest bits of the length
  EXPECT_EQ(decode<int16_t>(claims, kInt16).status().code(), Code::unsupported);
  // Silence packs a thousand to one, and is counted only as far as the memory goes.
  const File silence = encode_flac(1, 16, std::vector<int32_t>(1 << 20), false);
  File hidden = silence;
  hidden[21] &= std::byte{0xF0};
  for (size_t i = 22; i < 26; ++i) hidden[i] = std::byte{0};
  EXPECT_TRUE(decode<int16_t>(hidden, kInt16).ok());
  EXPECT_EQ(decode<int16_t>(hidden, kInt16, 1 << 20).status().code(), Code::unsupported);
}

#else

TEST(FlacValue, WithoutItsLibraryItIsASentence) {
  auto reader = ValueReader::make({.kind = ValueKind::audio, .type = NumberType::int16}, 1 << 20);
  ASSERT_TRUE(reader.ok());
  const Status status = (*reader)->look(std::as_bytes(std::span(std::string_view("fLaC")))).status();
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.message().find("libflac-dev"), std::string::npos);
}

#endif

}  // namespace
}  // namespace packtrain
