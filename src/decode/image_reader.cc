// ImageReader: header, crop, decode and resize row by row, numbers into the slot.
#include <algorithm>
#include <cassert>

#include "decode/crop.h"
#include "decode/kernel_sets.h"
#include "decode/orientation.h"
#include "decode/pixel_decoders.h"
#include "packtrain/transform.h"

namespace packtrain {

namespace {

// Output rows go straight into the slot.
class SlotSink final : public RowSink {
 public:
  SlotSink(const ImageSpec& spec, const PixelKernels& kernels) : writer_(spec, kernels) {}
  void start(std::byte* slot) {
    slot_ = slot;
    row_ = 0;
  }
  void take_row(const uint8_t* rgb) override { writer_.write_row(rgb, row_++, slot_); }

 private:
  PixelWriter writer_;
  std::byte* slot_ = nullptr;
  uint32_t row_ = 0;
};

// What one stored axis has to do for a plan along it.
ResizeAxis::Request request_of(const AxisCrop& crop, uint32_t frame_length, uint32_t shrink, bool reversed) {
  // A stored axis that runs the other way has the box at the other end.
  const uint32_t from = reversed ? frame_length - crop.from - crop.length : crop.from;
  const uint32_t window = reversed ? crop.resized - crop.window - crop.output : crop.window;
  ResizeAxis::Request request;
  request.clamp_begin = from / shrink;
  request.clamp_end = (from + crop.length + shrink - 1) / shrink;
  request.start = double(from) / shrink - request.clamp_begin;
  request.length = double(crop.length) / shrink;
  request.resized = crop.resized;
  request.window = window;
  request.outputs = crop.output;
  return request;
}

// The most by which an image may be shrunk while it is decoded, so that no output pixel is made of less than
// one.
uint32_t choose_shrink(const CropPlan& plan) {
  uint32_t shrink = 8;
  while (shrink > 1 && (plan.x.length / shrink < plan.x.resized || plan.y.length / shrink < plan.y.resized))
    shrink /= 2;
  return shrink;
}

class Reader final : public ImageReader {
 public:
  Reader(const ImageSpec& spec, uint64_t memory, const KernelSet& kernels)
      : spec_(spec), memory_(memory), resizer_(kernels.resample), slot_sink_(spec, kernels.pixels) {}

  Status read(Bytes encoded, uint64_t key, MutableBytes slot) override;
  uint64_t warnings() const override { return decoders_.warnings(); }
  uint64_t memory_wanted() const override { return memory_wanted_; }

 private:
  const ImageSpec spec_;
  const uint64_t memory_;
  uint64_t memory_wanted_ = 0;
  PixelDecoders decoders_;
  ResizeAxis x_, y_;
  RowResizer resizer_;
  SlotSink slot_sink_;
  TurningSink turning_sink_;
};

Status Reader::read(Bytes encoded, uint64_t key, MutableBytes slot) {
  assert(slot.size() == spec_.bytes());
  memory_wanted_ = 0;
  PACKTRAIN_ASSIGN(decoder, decoders_.find(encoded));
  PACKTRAIN_ASSIGN(frame, decoder->open(encoded));
  if (Status status = check_memory(frame, memory_); !status.ok()) {
    memory_wanted_ = frame.memory;
    return status;
  }
  const Orientation turn(spec_.exif_orientation ? frame.orientation : uint8_t{1});
  CropPlan plan = turn.swaps_axes() ? plan_crop(spec_, frame.height, frame.width, key)
                                    : plan_crop(spec_, frame.width, frame.height, key);

  Region region;
  if (spec_.dct_scaling && decoder->can_shrink()) region.shrink = choose_shrink(plan);
  // From the image as it is seen to the image as it is stored.
  const AxisCrop &across = turn.swaps_axes() ? plan.y : plan.x, &down = turn.swaps_axes() ? plan.x : plan.y;
  auto x = request_of(across, frame.width, region.shrink, turn.stored_x_reversed());
  auto y = request_of(down, frame.height, region.shrink, turn.stored_y_reversed());
  const bool upright = turn.is_upright();
  x.reversed = upright && plan.mirrored;
  x_.set(x);
  y_.set(y);
  region.left = x_.begin();
  region.width = x_.end() - x_.begin();
  region.top = y_.begin();
  region.height = y_.end() - y_.begin();

  slot_sink_.start(slot.data());
  if (!upright) turning_sink_.start(x_.outputs(), y_.outputs());
  // What is down in the image as it is seen is across in one that lies on its side.
  const bool down_first =
      goes_down_first(plan.x.length, plan.x.resized, plan.y.length, plan.y.resized) != turn.swaps_axes();
  resizer_.start(x_, y_, region.left, down_first ? ResizeOrder::down_first : ResizeOrder::across_first,
                 upright ? static_cast<RowSink&>(slot_sink_) : turning_sink_);
  PACKTRAIN_TRY(decoder->read(region, resizer_));
  assert(resizer_.done());
  if (!upright) turning_sink_.give_out(turn, plan.mirrored, slot_sink_);
  return {};
}

}  // namespace

Result<std::unique_ptr<ImageReader>> ImageReader::make(const ImageSpec& spec, uint64_t memory,
                                                       std::string_view kernels) {
  PACKTRAIN_TRY(spec.check());
  PACKTRAIN_ASSIGN(set, find_kernels(kernels));
  return std::unique_ptr<ImageReader>(std::make_unique<Reader>(spec, memory, *set));
}

}  // namespace packtrain
