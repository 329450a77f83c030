// An image in its own size, as the value of a field: rows go from the decoder straight to where they stay.
#include <cassert>
#include <cstring>

#include "decode/orientation.h"
#include "decode/pixel_decoders.h"
#include "decode/stored_array.h"
#include "decode/value_readers.h"

namespace packtrain {
namespace {

class ImageValueReader final : public ValueReader, private RowsSink {
 public:
  ImageValueReader(const ValueSpec& spec, uint64_t memory) : spec_(spec), memory_(memory) {}

  Result<ValueFacts> look(Bytes encoded) override {
    memory_wanted_ = 0;
    PACKTRAIN_ASSIGN(decoder, decoders_.find(encoded));
    decoder_ = decoder;
    PACKTRAIN_ASSIGN(frame, decoder->open(encoded));
    if (Status status = check_memory(frame, memory_); !status.ok()) {
      memory_wanted_ = frame.memory;
      return status;
    }
    frame_ = frame;
    turn_ = Orientation(spec_.exif_orientation ? frame.orientation : uint8_t{1});
    ValueFacts facts;
    facts.shape.type = NumberType::uint8;
    const bool fits = add_axis(facts.shape, seen_height()) && add_axis(facts.shape, seen_width()) &&
                      add_axis(facts.shape, kChannels);
    if (!fits) return Status(Code::corrupt, "the image claims an impossible size");
    facts.long_axes = 2;
    return facts;
  }

  Status read(MutableBytes into) override {
    pixels_ = reinterpret_cast<uint8_t*>(into.data());
    row_ = 0;
    PACKTRAIN_TRY(decoder_->read({0, 0, frame_.width, frame_.height, 1}, *this));
    assert(row_ == frame_.height);
    return {};
  }

  uint64_t memory_wanted() const override { return memory_wanted_; }
  uint64_t warnings() const override { return decoders_.warnings(); }

 private:
  static constexpr size_t kChannels = 3;

  uint32_t seen_width() const { return turn_.swaps_axes() ? frame_.height : frame_.width; }
  uint32_t seen_height() const { return turn_.swaps_axes() ? frame_.width : frame_.height; }

  void take_rows(const uint8_t* const* rows, uint32_t count) override {
    for (uint32_t i = 0; i < count && row_ < frame_.height; ++i, ++row_) {
      const size_t bytes = kChannels * frame_.width;
      if (turn_.is_upright()) {
        std::memcpy(pixels_ + row_ * bytes, rows[i], bytes);
      } else {
        take_turned(rows[i]);
      }
    }
  }

  void take_turned(const uint8_t* rgb) {
    const size_t y = turn_.stored_y_reversed() ? frame_.height - 1 - row_ : row_;
    for (uint32_t column = 0; column < frame_.width; ++column) {
      const size_t x = turn_.stored_x_reversed() ? frame_.width - 1 - column : column;
      const size_t at = turn_.swaps_axes() ? x * seen_width() + y : y * seen_width() + x;
      std::memcpy(pixels_ + at * kChannels, rgb + column * kChannels, kChannels);
    }
  }

  const ValueSpec spec_;
  const uint64_t memory_;
  uint64_t memory_wanted_ = 0;
  PixelDecoders decoders_;
  PixelDecoder* decoder_ = nullptr;  // of what was looked at last
  Frame frame_;
  Orientation turn_{1};
  uint8_t* pixels_ = nullptr;
  uint32_t row_ = 0;  // the next one, as stored
};

}  // namespace

std::unique_ptr<ValueReader> make_image_value_reader(const ValueSpec& spec, uint64_t memory) {
  return std::make_unique<ImageValueReader>(spec, memory);
}

}  // namespace packtrain
