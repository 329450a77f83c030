// Values of fields: encoded bytes to an array of numbers, in two steps, so that whoever asks for a value
// gives the room for it. (Images that are to be of one size are transform.h's.)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "packtrain/status.h"

namespace packtrain {

enum class NumberType : uint8_t {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
  complex64,
  complex128,
};
size_t number_bytes(NumberType type);
std::string_view number_name(NumberType type);                    // as NumPy has it: "uint16"
std::optional<NumberType> number_type_of(std::string_view name);  // the inverse

// What shorter values are padded with. Whole numbers are exact.
using PadNumber = std::variant<int64_t, uint64_t, double>;
// One number of any type, in as many of the bytes as the type takes.
using NumberBits = std::array<std::byte, 16>;
// The number as one of `type`: of floats the nearest. invalid if the type does not hold it.
Result<NumberBits> bits_of_pad(const PadNumber& pad, NumberType type);

constexpr size_t kMostAxes = 8;

// Of an array in C order: the last axis varies fastest. A plain value.
struct ArrayShape {
  NumberType type = NumberType::uint8;
  uint8_t axes = 0;                         // 0: one number
  std::array<uint64_t, kMostAxes> sizes{};  // beyond `axes`, zero

  uint64_t count() const;  // numbers
  uint64_t bytes() const { return count() * number_bytes(type); }
  std::string text() const;  // "float32 (3, 64, 64)"
  bool operator==(const ArrayShape&) const = default;
};

enum class ValueKind : uint8_t {
  bytes,   // as they are
  text,    // as they are, if they are UTF-8
  npy,     // NumPy's file of one array
  raw,     // nothing but numbers, little-endian
  array,   // .npy, or a pickle of an array or a number: told by content
  audio,   // WAV or FLAC: told by content
  image,   // an image in its own size, as uint8 (height, width, 3): told by content
  pickle,  // what Python pickled, if it is plain data and arrays of numbers; nothing is executed
};

// A plain value: what a user asks for.
struct ValueSpec {
  ValueKind kind = ValueKind::bytes;
  NumberType type = NumberType::uint8;  // raw: of the numbers; audio: float32 (in [-1, 1]) or int16
  bool mono = false;                    // audio: the mean of all channels
  bool exif_orientation = false;        // image: turned upright
  bool pad = false;                     // make the values of a batch as long as the longest of them
  PadNumber pad_with;

  // Whether bytes are delivered where they were read to, and at most looked at.
  bool in_place() const { return kind == ValueKind::bytes || kind == ValueKind::text; }
  Status check() const;
};

// What a look at encoded bytes says. A plain value.
struct ValueFacts {
  bool is_array = true;  // if not, it is delivered as its bytes: text, and pickles of other than numbers
  ArrayShape shape;
  // Along which values of one field differ: the first axis, of audio the last, of images the first two.
  uint8_t long_axis = 0, long_axes = 1;
  uint32_t sample_rate = 0;  // of audio
};

// Reads value after value, and keeps its buffers. One thread at a time.
class ValueReader {
 public:
  // `memory`: most bytes that one value may take; a larger one is Code::unsupported. `image_memory`: the same
  // of what is held of an image while it is decoded, beside its value. Not for ValueKind::bytes.
  static Result<std::unique_ptr<ValueReader>> make(const ValueSpec& spec, uint64_t memory,
                                                   uint64_t image_memory = 64 << 20);
  virtual ~ValueReader() = default;

  // Looks at the header, or at as much as it takes; `encoded` must stay until read().
  virtual Result<ValueFacts> look(Bytes encoded) = 0;
  // Fills `into`, which is as long as the shape that look() found. Damaged bytes are Code::corrupt, and
  // `into` is undefined then.
  virtual Status read(MutableBytes into) = 0;

  // Of images, as ImageReader has them.
  virtual uint64_t memory_wanted() const { return 0; }
  virtual uint64_t warnings() const { return 0; }
};

// Whether this build can decode FLAC.
bool has_flac();

}  // namespace packtrain
