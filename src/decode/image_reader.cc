// ImageReader: header, crop, decode and resize row by row, numbers into the slot.
#include <algorithm>
#include <array>
#include <cassert>

#include <fmt/format.h>

#include "base/words.h"
#include "decode/crop.h"
#include "decode/kernel_sets.h"
#include "decode/orientation.h"
#include "decode/pixel_decoder.h"
#include "packtrain/transform.h"

namespace packtrain {

namespace {

// Decoders of libraries that were absent when this was built.
#ifndef PACKTRAIN_HAVE_PNG
constexpr std::unique_ptr<PixelDecoder> (*make_png_decoder)() = nullptr;
#endif
#ifndef PACKTRAIN_HAVE_WEBP
constexpr std::unique_ptr<PixelDecoder> (*make_webp_decoder)() = nullptr;
#endif

struct ImageFormat {
  MediaKind kind;
  std::unique_ptr<PixelDecoder> (*make)();  // none where the library was absent
  std::string_view library;
};
constexpr ImageFormat kFormats[] = {{MediaKind::jpeg, make_jpeg_decoder, "libjpeg-turbo"},
                                    {MediaKind::png, make_png_decoder, "libpng"},
                                    {MediaKind::webp, make_webp_decoder, "libwebp"}};

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

// As Pillow 13 chooses: down first where that makes the image smaller by more than twice what across would.
// (Earlier versions always go across first.)
bool goes_down_first(const CropPlan& plan) {
  const auto loss = [](const AxisCrop& axis) { return int64_t{axis.length} - axis.resized; };
  return loss(plan.y) > 2 * std::max<int64_t>(loss(plan.x), 0);
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
  uint64_t warnings() const override {
    uint64_t sum = 0;
    for (const auto& decoder : decoders_)
      if (decoder) sum += decoder->warnings();
    return sum;
  }
  uint64_t memory_wanted() const override { return memory_wanted_; }

 private:
  Result<PixelDecoder*> decoder_for(Bytes encoded);

  const ImageSpec spec_;
  const uint64_t memory_;
  uint64_t memory_wanted_ = 0;
  // In the order of kFormats; each is made when the first such image comes.
  std::array<std::unique_ptr<PixelDecoder>, std::size(kFormats)> decoders_;
  ResizeAxis x_, y_;
  RowResizer resizer_;
  SlotSink slot_sink_;
  TurningSink turning_sink_;
};

Result<PixelDecoder*> Reader::decoder_for(Bytes encoded) {
  constexpr size_t kHeadBytes = 64;
  const MediaKind kind = media_kind(encoded.first(std::min(encoded.size(), kHeadBytes)));
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    if (kFormats[i].kind != kind) continue;
    if (kFormats[i].make == nullptr)
      return Status(Code::unsupported,
                    fmt::format("this build of packtrain reads no {}: {} was absent when it was built "
                                "(docs/dependencies.md)",
                                media_kind_name(kind), kFormats[i].library));
    if (!decoders_[i]) decoders_[i] = kFormats[i].make();
    return decoders_[i].get();
  }
  if (encoded.empty()) return Status(Code::corrupt, "an empty file is no image");
  if (kind == MediaKind::gif || kind == MediaKind::bmp)
    return Status(Code::unsupported,
                  fmt::format("{} images are not decoded; JPEG, PNG and WebP are", media_kind_name(kind)));
  return Status(Code::corrupt, fmt::format("no image: its first bytes say {}", media_kind_name(kind)));
}

Status Reader::read(Bytes encoded, uint64_t key, MutableBytes slot) {
  assert(slot.size() == spec_.bytes());
  memory_wanted_ = 0;
  PACKTRAIN_ASSIGN(decoder, decoder_for(encoded));
  PACKTRAIN_ASSIGN(frame, decoder->open(encoded));
  if (frame.memory > memory_) {
    memory_wanted_ = frame.memory;
    return Status(Code::unsupported,
                  fmt::format("{} of {} x {} pixels takes {} while it is decoded, and {} are allowed; stored "
                              "{} it would take little",
                              frame.form, frame.width, frame.height, bytes_in_words(frame.memory),
                              bytes_in_words(memory_), frame.smaller_form));
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
  const bool down_first = goes_down_first(plan) != turn.swaps_axes();
  resizer_.start(x_, y_, region.left, down_first ? ResizeOrder::down_first : ResizeOrder::across_first,
                 upright ? static_cast<RowSink&>(slot_sink_) : turning_sink_);
  PACKTRAIN_TRY(decoder->read(region, resizer_));
  assert(resizer_.done());
  if (!upright) turning_sink_.give_out(turn, plan.mirrored, slot_sink_);
  return {};
}

}  // namespace

std::vector<ImageDecoderInfo> image_decoders() {
  std::vector<ImageDecoderInfo> infos;
  for (const ImageFormat& format : kFormats)
    infos.push_back({format.kind, format.make != nullptr, format.library});
  return infos;
}

Result<std::unique_ptr<ImageReader>> ImageReader::make(const ImageSpec& spec, uint64_t memory,
                                                       std::string_view kernels) {
  PACKTRAIN_TRY(spec.check());
  PACKTRAIN_ASSIGN(set, find_kernels(kernels));
  return std::unique_ptr<ImageReader>(std::make_unique<Reader>(spec, memory, *set));
}

}  // namespace packtrain
