// ValueReader: the kinds of values, and which reader is for which.
#include <algorithm>
#include <cstring>

#include "base/words.h"
#include "decode/audio_samples.h"
#include "decode/stored_array.h"
#include "decode/value_readers.h"
#include "packtrain/decode.h"

namespace packtrain {
namespace {

struct NumberFacts {
  std::string_view name;
  size_t bytes;
};
// In the order of NumberType.
constexpr NumberFacts kNumbers[] = {
    {"bool", 1},    {"int8", 1},    {"int16", 2},     {"int32", 4},       {"int64", 8},
    {"uint8", 1},   {"uint16", 2},  {"uint32", 4},    {"uint64", 8},      {"float16", 2},
    {"float32", 4}, {"float64", 8}, {"complex64", 8}, {"complex128", 16},
};

class TextReader final : public ValueReader {
 public:
  Result<ValueFacts> look(Bytes encoded) override {
    if (!is_utf8({reinterpret_cast<const char*>(encoded.data()), encoded.size()}))
      return Status(Code::corrupt, "it is no text in UTF-8; ask for it as bytes");
    ValueFacts facts;
    facts.is_array = false;
    return facts;
  }
  Status read(MutableBytes) override { return {}; }
};

class RawReader final : public ValueReader {
 public:
  explicit RawReader(NumberType type) : type_(type) {}
  Result<ValueFacts> look(Bytes encoded) override {
    const size_t each = number_bytes(type_);
    if (encoded.size() % each != 0) {
      return Status(Code::corrupt, "its " + count_in_words(encoded.size()) +
                                       " bytes are no whole number of " + std::string(number_name(type_)) +
                                       ", which take " + std::to_string(each) + " each");
    }
    encoded_ = encoded;
    ValueFacts facts;
    facts.shape.type = type_;
    facts.shape.axes = 1;
    facts.shape.sizes[0] = encoded.size() / each;
    return facts;
  }
  Status read(MutableBytes into) override {
    if (!into.empty()) std::memcpy(into.data(), encoded_.data(), into.size());
    return {};
  }

 private:
  const NumberType type_;
  Bytes encoded_;
};

// Chooses between readers by what the bytes are, and refuses what is too large.
class ToldByContent final : public ValueReader {
 public:
  ToldByContent(const ValueSpec& spec, uint64_t memory, uint64_t image_memory)
      : spec_(spec), memory_(memory), image_memory_(image_memory) {}

  Result<ValueFacts> look(Bytes encoded) override {
    PACKTRAIN_ASSIGN(reader, reader_for(encoded));
    reader_ = reader;
    PACKTRAIN_ASSIGN(facts, reader->look(encoded));
    if (facts.is_array && facts.shape.bytes() > memory_) {
      return Status(Code::unsupported, facts.shape.text() + " takes " + bytes_in_words(facts.shape.bytes()) +
                                           ", more than the " + bytes_in_words(memory_) +
                                           " that one value may take");
    }
    if (!facts.is_array && spec_.kind == ValueKind::array) {
      return Status(
          Code::unsupported,
          "the pickle is no array and no number; ask for it as \"pickle\" to get Python's own values");
    }
    return facts;
  }
  Status read(MutableBytes into) override { return reader_->read(into); }
  uint64_t memory_wanted() const override { return image_ ? image_->memory_wanted() : 0; }
  uint64_t warnings() const override { return image_ ? image_->warnings() : 0; }

 private:
  Result<ValueReader*> reader_for(Bytes encoded);
  template <class Make>
  static ValueReader* kept(std::unique_ptr<ValueReader>& slot, Make make) {
    if (!slot) slot = make();
    return slot.get();
  }

  const ValueSpec spec_;
  const uint64_t memory_, image_memory_;
  std::unique_ptr<ValueReader> npy_, pickle_, wav_, flac_, image_, only_;
  ValueReader* reader_ = nullptr;
};

Result<ValueReader*> ToldByContent::reader_for(Bytes encoded) {
  const MediaKind media = media_kind(encoded);
  switch (spec_.kind) {
    case ValueKind::npy:
      return kept(npy_, make_npy_reader);
    case ValueKind::raw:
      return kept(only_, [&] { return std::make_unique<RawReader>(spec_.type); });
    case ValueKind::pickle:
      return kept(pickle_, make_pickle_reader);
    case ValueKind::array:
      return media == MediaKind::npy ? kept(npy_, make_npy_reader) : kept(pickle_, make_pickle_reader);
    case ValueKind::image:
      return kept(image_, [&] { return make_image_value_reader(spec_, image_memory_); });
    case ValueKind::audio:
      break;
    default:
      return kept(only_, [] { return std::make_unique<TextReader>(); });
  }
  if (media == MediaKind::wav) return kept(wav_, [&] { return make_wav_reader(spec_); });
  if (media != MediaKind::flac) {
    return Status(
        Code::corrupt,
        "it is no WAV or FLAC file, but " +
            (encoded.empty() ? "empty" : "of the kind '" + std::string(media_kind_name(media)) + "'"));
  }
#ifdef PACKTRAIN_HAVE_FLAC
  return kept(flac_, [&] { return make_flac_reader(spec_, memory_); });
#else
  return Status(
      Code::unsupported,
      "it is a FLAC file, and this packtrain was built without libFLAC: install libflac-dev and build "
      "it again, or convert to WAV");
#endif
}

}  // namespace

bool has_flac() {
#ifdef PACKTRAIN_HAVE_FLAC
  return true;
#else
  return false;
#endif
}

size_t number_bytes(NumberType type) { return kNumbers[static_cast<size_t>(type)].bytes; }
std::string_view number_name(NumberType type) { return kNumbers[static_cast<size_t>(type)].name; }
std::optional<NumberType> number_type_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kNumbers); ++i)
    if (kNumbers[i].name == name) return static_cast<NumberType>(i);
  return {};
}

uint64_t ArrayShape::count() const {
  uint64_t product = 1;
  for (size_t axis = 0; axis < axes; ++axis) product *= sizes[axis];
  return product;
}

std::string ArrayShape::text() const {
  std::string out(number_name(type));
  out += " (";
  for (size_t axis = 0; axis < axes; ++axis) out += (axis == 0 ? "" : ", ") + std::to_string(sizes[axis]);
  return out + (axes == 1 ? ",)" : ")");
}

Status ValueSpec::check() const {
  if (kind == ValueKind::audio && type != NumberType::float32 && type != NumberType::int16) {
    return Status(Code::invalid, "audio comes as float32 or int16, not as " + std::string(number_name(type)));
  }
  if (pad && (in_place() || kind == ValueKind::pickle))
    return Status(Code::invalid, "only arrays, audio and images can be padded");
  // Of the other kinds the values say which type they are of.
  if (pad && (kind == ValueKind::raw || kind == ValueKind::audio || kind == ValueKind::image))
    return bits_of_pad(pad_with, kind == ValueKind::image ? NumberType::uint8 : type).status();
  return {};
}

Result<ValueFacts> audio_facts(const AudioFormat& format, const ValueSpec& spec) {
  ValueFacts facts;
  facts.sample_rate = format.sample_rate;
  facts.shape.type = spec.type;
  const bool fits =
      (spec.mono || add_axis(facts.shape, format.channels)) && add_axis(facts.shape, format.frames);
  if (!fits) return Status(Code::corrupt, "the audio file claims an impossible length");
  facts.long_axis = static_cast<uint8_t>(facts.shape.axes - 1);
  return facts;
}

Result<std::unique_ptr<ValueReader>> ValueReader::make(const ValueSpec& spec, uint64_t memory,
                                                       uint64_t image_memory) {
  PACKTRAIN_TRY(spec.check());
  return std::unique_ptr<ValueReader>(std::make_unique<ToldByContent>(spec, memory, image_memory));
}

}  // namespace packtrain
