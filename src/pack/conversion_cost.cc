#include "pack/conversion_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "base/mutex.h"
#include "base/threads.h"
#include "base/words.h"
#include "pack/archive_stream.h"
#include "pack/fetch.h"
#include "pack/progress_meter.h"
#include "packtrain/place.h"

namespace packtrain {
namespace {

constexpr uint64_t kMostTried = 64, kLeastTried = 8;
constexpr uint64_t kBytesTried = 64'000'000;  // photographs of a camera take their time
constexpr uint64_t kLargestTried = uint64_t{64} << 20;

// What is known of the images tried so far.
struct ConversionTrial {
  uint64_t tried = 0, before = 0, after = 0;
  PixelDifference difference;
  uint64_t deeper = 0, transparent = 0;
  double seconds = 0;
};

Status archive_has_changed(const Plan& plan, const Cell& cell) {
  return Status(Code::corrupt, "has changed since it was listed")
      .at(printable(plan.catalog.streams[cell.source].path));
}

// An image to be tried. What comes out of a compressed archive was read before: it has no random access.
struct ChosenImage {
  const Cell* cell = nullptr;
  std::vector<std::byte> bytes;
};

// One image; a failure is the image's.
Status try_image(Fetcher& fetcher, ChosenImage& image, ImageConverter& converter, ConversionTrial& trial) {
  std::vector<std::byte> source = std::move(image.bytes), converted;
  if (image.cell->origin != Origin::stream) {
    source.resize(image.cell->size);
    PACKTRAIN_TRY(fetcher.fetch(*image.cell, source));
  }
  const auto start = std::chrono::steady_clock::now();
  PACKTRAIN_TRY(converter.convert(source, converted));
  trial.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (converted.empty()) {
    const auto shape = image_shape(source);
    if (shape) trial.difference.values += uint64_t{shape->width} * shape->height * shape->channels;
  } else {
    PACKTRAIN_TRY(converter.compare(source, converted, trial.difference));
    const BeyondPixels beyond = beyond_pixels(source);
    trial.deeper += beyond.depth;
    trial.transparent += beyond.alpha;
  }
  trial.before += source.size();
  trial.after += converted.empty() ? source.size() : converted.size();
  ++trial.tried;
  return {};
}

// Every so many of the cells that are converted; of compressed archives the first ones, which are had without
// reading them to their ends.
std::vector<ChosenImage> choose_images(const Plan& plan, uint64_t& images) {
  uint64_t bytes = 0;
  std::vector<const Cell*> streamed;
  for (const Cell& cell : plan.catalog.cells) {
    images += cell.converted;
    bytes += cell.converted ? cell.size : 0;
    if (cell.converted && cell.origin == Origin::stream) streamed.push_back(&cell);
  }
  const uint64_t affordable = bytes > 0 ? kBytesTried * images / bytes : kMostTried;
  const uint64_t count = std::min(images, std::clamp(affordable, kLeastTried, kMostTried));
  std::vector<ChosenImage> chosen;
  uint64_t number = 0, next_streamed = 0;
  for (const Cell& cell : plan.catalog.cells) {
    if (!cell.converted) continue;
    if (chosen.size() < count && number == chosen.size() * images / count) chosen.push_back({&cell, {}});
    ++number;
  }
  std::sort(streamed.begin(), streamed.end(), [](const Cell* a, const Cell* b) {
    return std::pair(a->source, a->where) < std::pair(b->source, b->where);
  });
  for (ChosenImage& image : chosen)
    if (image.cell->origin == Origin::stream) image.cell = streamed[next_streamed++];
  return chosen;
}

// Brings those that lie in compressed archives, which `images` names front to back.
Status read_streamed(Storage& storage, const Plan& plan, std::span<ChosenImage> images) {
  std::unique_ptr<ArchiveStream> stream;
  std::optional<uint32_t> open_source;
  ArchiveStream::Member member;
  for (ChosenImage& image : images) {
    const Cell& cell = *image.cell;
    if (cell.origin != Origin::stream || cell.size > kLargestTried) continue;
    if (open_source != cell.source) {
      PACKTRAIN_ASSIGN(opened, ArchiveStream::open(storage, plan.catalog.streams[cell.source].path));
      stream = std::move(opened);
      open_source = cell.source;
      PACKTRAIN_ASSIGN(found, stream->next(member));
      if (!found) return archive_has_changed(plan, cell);
    }
    while (member.number < cell.where) {
      PACKTRAIN_ASSIGN(found, stream->next(member));
      if (!found) return archive_has_changed(plan, cell);
    }
    if (member.size != cell.size) return archive_has_changed(plan, cell);
    image.bytes.resize(cell.size);
    PACKTRAIN_TRY(stream->read(image.bytes));
  }
  return {};
}

}  // namespace

Result<ConversionCost> measure_conversion(Storage& storage, const Plan& plan, const PackOptions& options) {
  ConversionCost cost;
  if (!plan.conversion.any()) return cost;
  std::vector<ChosenImage> chosen = choose_images(plan, cost.images);
  PACKTRAIN_TRY(read_streamed(storage, plan, chosen));
  Fetcher fetcher(storage, plan);
  ProgressMeter meter(options.progress, "try the conversion", "images", chosen.size(), 0);
  std::atomic<size_t> next = 0;
  Mutex mutex;
  ConversionTrial all;  // sums of whole numbers: the order in which threads come does not matter
  Status failure;
  const uint32_t jobs = options.jobs != 0 ? options.jobs : granted().cores;
  run_on("pack-try", std::min<uint32_t>(jobs, static_cast<uint32_t>(chosen.size())), [&](uint32_t) {
    auto converter = ImageConverter::make(plan.conversion);
    ConversionTrial own;
    for (size_t i = next++; i < chosen.size() && converter.ok(); i = next++) {
      ConversionTrial with_this = own;
      if (chosen[i].cell->size <= kLargestTried && try_image(fetcher, chosen[i], *converter, with_this).ok())
        own = with_this;
      if (!meter.add(1, 0)) break;
    }
    Lock lock(mutex);
    if (!converter.ok()) failure = converter.status();
    all.tried += own.tried;
    all.before += own.before;
    all.after += own.after;
    all.difference.values += own.difference.values;
    all.difference.sum += own.difference.sum;
    all.difference.largest = std::max(all.difference.largest, own.difference.largest);
    all.deeper += own.deeper;
    all.transparent += own.transparent;
    all.seconds += own.seconds;
  });
  PACKTRAIN_TRY(failure);
  if (meter.stopped()) return Status(Code::stopped, "stopped; run the same command again to go on");
  cost.tried = all.tried;
  cost.bytes_before = all.before;
  cost.bytes_after = all.after;
  cost.largest_difference = all.difference.largest;
  cost.deeper = all.deeper;
  cost.transparent = all.transparent;
  if (all.difference.values > 0)
    cost.mean_difference =
        static_cast<double>(all.difference.sum) / static_cast<double>(all.difference.values);
  cost.seconds = all.seconds;
  return cost;
}

std::string cost_in_words(const ConversionCost& cost) {
  if (cost.tried == 0) return "images: " + count_in_words(cost.images) + " to convert, and none was tried";
  const double share = 100.0 * static_cast<double>(cost.bytes_after) /
                       static_cast<double>(std::max<uint64_t>(cost.bytes_before, 1));
  std::string lost;
  if (cost.deeper > 0)
    lost += fmt::format("; {} have 16 bits a value, of which 8 are kept", count_in_words(cost.deeper));
  if (cost.transparent > 0)
    lost += fmt::format("; {} have an alpha channel, which is not kept", count_in_words(cost.transparent));
  return fmt::format("images: {} to convert; of {} tried, {} become {} ({:.0f} %), {}{}",
                     count_in_words(cost.images), count_in_words(cost.tried),
                     bytes_in_words(cost.bytes_before), bytes_in_words(cost.bytes_after), share,
                     cost.largest_difference == 0
                         ? std::string(lost.empty() ? "and no pixel differs"
                                                    : "and no pixel differs in its 8 bits of colour")
                         : fmt::format("off by {:.2f} grey levels on average and {} at most",
                                       cost.mean_difference, cost.largest_difference),
                     lost);
}

}  // namespace packtrain
