// FLAC through libFLAC, which checks every frame. The only file that includes it. A stream begins with
//
//   "fLaC", u8 kind and u24 length of the first block (0, 34), then of its bytes 10 to 17, bits from the
//   highest: 20 of the sample rate, 3 of channels less one, 5 of bits less one, 36 of the number of frames,
//   0: not known
#include <FLAC/stream_decoder.h>

#include <cstring>

#include "base/little_endian.h"
#include "base/words.h"
#include "decode/audio_samples.h"
#include "decode/value_readers.h"

namespace packtrain {
namespace {

constexpr size_t kHeadBytes = 4 + 4 + 34;

struct FreeDecoder {
  void operator()(FLAC__StreamDecoder* decoder) const { FLAC__stream_decoder_delete(decoder); }
};

class FlacReader final : public ValueReader {
 public:
  FlacReader(const ValueSpec& spec, uint64_t memory)
      : spec_(spec), memory_(memory), decoder_(FLAC__stream_decoder_new()) {}
  Result<ValueFacts> look(Bytes encoded) override;
  Status read(MutableBytes into) override;

 private:
  // Runs the decoder over the whole file; what it makes goes to out_, or is only counted if that is null.
  Status run();
  bool take(const FLAC__Frame& frame, const FLAC__int32* const samples[]);
  void note(std::string_view trouble) {
    if (trouble_.empty()) trouble_ = trouble;
  }
  // Far more than this of one file cannot be asked for.
  uint64_t most_frames() const {
    const uint64_t sample_bytes = number_bytes(spec_.type);
    return memory_ / (sample_bytes * (spec_.mono ? 1 : format_.channels));
  }

  static FlacReader& self(void* client) { return *static_cast<FlacReader*>(client); }
  static FLAC__StreamDecoderReadStatus on_read(const FLAC__StreamDecoder*, FLAC__byte to[], size_t* bytes,
                                               void* client);
  static FLAC__StreamDecoderWriteStatus on_frame(const FLAC__StreamDecoder*, const FLAC__Frame* frame,
                                                 const FLAC__int32* const samples[], void* client) {
    return self(client).take(*frame, samples) ? FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE
                                              : FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }
  static void on_error(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus status, void* client) {
    self(client).note(FLAC__StreamDecoderErrorStatusString[status]);
  }

  const ValueSpec spec_;
  const uint64_t memory_;
  const std::unique_ptr<FLAC__StreamDecoder, FreeDecoder> decoder_;
  Bytes encoded_;
  size_t at_ = 0;
  AudioFormat format_;
  uint32_t bits_ = 0;
  uint64_t done_ = 0;  // frames
  std::byte* out_ = nullptr;
  std::string trouble_;
};

FLAC__StreamDecoderReadStatus FlacReader::on_read(const FLAC__StreamDecoder*, FLAC__byte to[], size_t* bytes,
                                                  void* client) {
  FlacReader& reader = self(client);
  *bytes = std::min(*bytes, reader.encoded_.size() - reader.at_);
  if (*bytes == 0) return FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
  std::memcpy(to, reader.encoded_.data() + reader.at_, *bytes);
  reader.at_ += *bytes;
  return FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
}

bool FlacReader::take(const FLAC__Frame& frame, const FLAC__int32* const samples[]) {
  const uint64_t count = frame.header.blocksize;
  if (!trouble_.empty()) return false;  // what follows a damaged frame is of no use
  if (frame.header.channels != format_.channels || frame.header.bits_per_sample != bits_) {
    note("its format changes in the middle");
    return false;
  }
  if (!out_) {
    done_ += count;
    return done_ <= most_frames();
  }
  if (count > format_.frames - done_) {
    note("it has more frames than it says");
    return false;
  }
  const auto write = [&]<class Out>(Out* out) {
    write_frames(format_, spec_.mono, done_, count, out, [&](uint64_t at, uint32_t channel) {
      return from_integer<Out>(samples[channel][at], bits_);
    });
  };
  if (spec_.type == NumberType::int16)
    write(reinterpret_cast<int16_t*>(out_));
  else
    write(reinterpret_cast<float*>(out_));
  done_ += count;
  return true;
}

Status FlacReader::run() {
  at_ = 0;
  done_ = 0;
  trouble_.clear();
  if (!decoder_) return Status(Code::no_room, "no memory for a FLAC decoder");
  const auto started = FLAC__stream_decoder_init_stream(decoder_.get(), on_read, nullptr, nullptr, nullptr,
                                                        nullptr, on_frame, nullptr, on_error, this);
  if (started != FLAC__STREAM_DECODER_INIT_STATUS_OK)
    return Status(Code::no_room, "the FLAC decoder cannot be started");
  const bool whole = FLAC__stream_decoder_process_until_end_of_stream(decoder_.get());
  FLAC__stream_decoder_finish(decoder_.get());
  if (!trouble_.empty()) return Status(Code::corrupt, "cannot decode the FLAC file: " + trouble_);
  if (!whole && (out_ || done_ <= most_frames()))
    return Status(Code::corrupt, "cannot decode the FLAC file: it is damaged or cut short");
  return {};
}

Result<ValueFacts> FlacReader::look(Bytes encoded) {
  encoded_ = encoded;
  if (encoded.size() < kHeadBytes || (std::to_integer<uint8_t>(encoded[4]) & 0x7F) != 0)
    return Status(Code::corrupt, "the FLAC file is cut short, or does not begin with its facts");
  const uint64_t facts = __builtin_bswap64(load_le<uint64_t>(encoded.data() + 18));
  format_.sample_rate = static_cast<uint32_t>(facts >> 44);
  format_.channels = static_cast<uint32_t>(facts >> 41 & 7) + 1;
  bits_ = static_cast<uint32_t>(facts >> 36 & 31) + 1;
  format_.frames = facts & ((uint64_t{1} << 36) - 1);
  if (format_.frames == 0) {
    out_ = nullptr;
    PACKTRAIN_TRY(run());
    format_.frames = done_;
  }
  return audio_facts(format_, spec_);
}

Status FlacReader::read(MutableBytes into) {
  if (format_.frames == 0) return {};
  out_ = into.data();
  PACKTRAIN_TRY(run());
  if (done_ != format_.frames) {
    return Status(Code::corrupt, "the FLAC file is cut short: it has " + count_in_words(done_) + " of " +
                                     count_in_words(format_.frames) + " frames");
  }
  return {};
}

}  // namespace

std::unique_ptr<ValueReader> make_flac_reader(const ValueSpec& spec, uint64_t memory) {
  return std::make_unique<FlacReader>(spec, memory);
}

}  // namespace packtrain
