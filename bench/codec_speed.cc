// codec_speed FILE…: how fast one core decodes, by codec and length of the values, into which all files
// together are cut. Processor time of the best of 30 rounds, so that it can be asked of a busy machine.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "packtrain/codec.h"
#include "packtrain/storage.h"

namespace {

using namespace packtrain;

constexpr size_t kLengths[] = {300, 1000, 3000, 10'000, 30'000, 100'000, 400'000};
constexpr size_t kMostBytes = 4 << 20;
constexpr int kRounds = 30;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Status measure(const std::string& codec, size_t length, std::string_view all) {
  const Pipeline pipeline = {{codec, codec == "blosc" ? 4U : 0U}};
  std::vector<std::vector<std::byte>> values;
  size_t raw = 0, stored = 0;
  for (; raw + length <= all.size() && raw < kMostBytes; raw += length) {
    PACKTRAIN_ASSIGN(value, encode(pipeline, as_bytes(all.substr(raw, length))));
    stored += value.size();
    values.push_back(std::move(value));
  }
  if (values.empty()) return {};
  std::vector<std::byte> into(length);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double start = cpu_seconds();
    for (const auto& value : values) PACKTRAIN_TRY(decode(pipeline, value, into));
    const double seconds = cpu_seconds() - start;
    best = round == 0 ? seconds : std::min(best, seconds);
  }
  const double ratio = static_cast<double>(stored) / static_cast<double>(raw);
  const double speed = static_cast<double>(raw) / best;
  std::printf("| %s | %zu | %.2f | %.2f | %.2f | %.0f |\n", codec.c_str(), length, ratio, speed / 1e9,
              best / static_cast<double>(values.size()) * 1e6, speed * (1 - ratio) / 1e6);
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  std::string all;
  for (int i = 1; i < count; ++i) {
    auto file = read_whole(posix_storage(), arguments[i]);
    if (file.ok()) all += *file;
  }
  std::puts(
      "| codec | bytes a value | ratio | GB/s | us a value | break-even MB/s |\n|---|---|---|---|---|---|");
  for (const char* codec : {"deflate", "zstd", "blosc"}) {
    for (const size_t length : kLengths) {
      if (const Status status = measure(codec, length, all); !status.ok()) {
        std::fprintf(stderr, "%s\n", status.text().c_str());
        return 1;
      }
    }
  }
  return 0;
}
