// What turning photos into a batch costs beyond decoding them, on one core.
//
// `decode_rate FOLDER [ROUNDS]` reads every JPEG under FOLDER into memory and goes over them in turns: once
// through a bare loop of libjpeg-turbo that decodes each whole image and does nothing else, once through
// ImageReader (random resized crop to 224, flip, float32, CHW, normalised). Prints one JSON object: images a
// second of CPU time for both, medians over the rounds, the median of the rounds' ratios, and the seconds an
// image of every round. Turns are short, so that both see the same machine.
#include <turbojpeg.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "packtrain/transform.h"

namespace {

using namespace packtrain;

constexpr size_t kTurn = 25;  // images
constexpr double kMean[] = {0.485, 0.456, 0.406}, kDeviation[] = {0.229, 0.224, 0.225};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<std::vector<std::byte>> read_photos(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::vector<std::byte>> photos;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto bytes = std::as_bytes(std::span(text));
    if (media_kind(bytes) == MediaKind::jpeg) photos.emplace_back(bytes.begin(), bytes.end());
  }
  return photos;
}

// Whole images into one buffer that is used again: the least that any loader on this library must do.
class BareDecoder {
 public:
  ~BareDecoder() { tjDestroy(handle_); }
  bool decode(const std::vector<std::byte>& photo) {
    const auto* data = reinterpret_cast<const unsigned char*>(photo.data());
    int width = 0, height = 0, sampling = 0, colours = 0;
    if (tjDecompressHeader3(handle_, data, photo.size(), &width, &height, &sampling, &colours) != 0)
      return false;
    const bool inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
    pixels_.resize(std::max(pixels_.size(), size_t(width) * size_t(height) * 4));
    return tjDecompress2(handle_, data, photo.size(), pixels_.data(), width, 0, height,
                         inks ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT) == 0;
  }

 private:
  tjhandle handle_ = tjInitDecompress();
  std::vector<unsigned char> pixels_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Json list_of(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push(value);
  return list;
}

int fail(const std::string& why) {
  std::fprintf(stderr, "decode_rate: %s\n", why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return fail("usage: decode_rate FOLDER [ROUNDS]");
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 7;
  const auto photos = read_photos(argv[1]);
  if (photos.empty()) return fail("there is no JPEG under " + std::string(argv[1]));
  ImageSpec spec;
  spec.flip = 0.5;
  spec.normalise = true;
  std::copy(std::begin(kMean), std::end(kMean), spec.mean.begin());
  std::copy(std::begin(kDeviation), std::end(kDeviation), spec.deviation.begin());
  spec.type = PixelType::float32;
  auto reader = ImageReader::make(spec);
  if (!reader.ok()) return fail(reader.status().text());
  std::vector<std::byte> slot(spec.bytes());
  BareDecoder bare;

  std::vector<double> bare_rates, reader_rates, ratios, bare_seconds, reader_seconds;
  uint64_t key = 0;
  for (int round = -1; round < rounds; ++round) {  // one to warm up
    double bare_time = 0, reader_time = 0;
    for (size_t begin = 0; begin < photos.size(); begin += kTurn) {
      const size_t end = std::min(begin + kTurn, photos.size());
      const double start = cpu_seconds();
      for (size_t i = begin; i < end; ++i)
        if (!bare.decode(photos[i])) return fail("libjpeg-turbo cannot decode photo " + std::to_string(i));
      const double middle = cpu_seconds();
      for (size_t i = begin; i < end; ++i)
        if (const Status status = (*reader)->read(photos[i], ++key, slot); !status.ok())
          return fail("photo " + std::to_string(i) + ": " + status.text());
      bare_time += middle - start;
      reader_time += cpu_seconds() - middle;
    }
    if (round < 0) continue;
    const auto count = static_cast<double>(photos.size());
    bare_rates.push_back(count / bare_time);
    reader_rates.push_back(count / reader_time);
    ratios.push_back(bare_time / reader_time);
    bare_seconds.push_back(bare_time / count);
    reader_seconds.push_back(reader_time / count);
  }
  Json result = Json::object();
  result.set("photos", uint64_t{photos.size()})
      .set("rounds", uint64_t(rounds))
      .set("full_decode_per_second", median(bare_rates))
      .set("transform_per_second", median(reader_rates))
      .set("ratio", median(ratios))
      .set("full_decode_seconds", list_of(bare_seconds))
      .set("transform_seconds", list_of(reader_seconds));
  std::printf("%s\n", result.dump().c_str());
  return 0;
}
