// What opening an index costs, by its number of samples.
//
// `open_index make FOLDER SAMPLES SHARDS` writes the index of a synthetic dataset whose shards are named, not
// there. `open_index open FOLDER` opens it, looks at a thousand samples, and prints one JSON object: seconds
// and growth of resident memory, of opening and of looking. `open_index repeat DATASET FOLDER TIMES` makes a
// large dataset of a small one: its samples so many times, in shards that are hard links to its own.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/hash.h"
#include "base/json.h"
#include "packtrain/index.h"

namespace {

using namespace packtrain;

constexpr uint64_t kPhotoBytes = 110'000, kStretchBytes = 111'616;  // with its tar headers and padding
constexpr uint64_t kLookUps = 1000;

Status write_index(Storage& storage, const std::string& folder, IndexBuilder& builder) {
  IndexBuilder::Finished finished = builder.finish();
  for (const auto& [name, bytes] :
       {std::pair{"index.npz", &finished.index_npz}, std::pair{"names.npz", &finished.names_npz}}) {
    PACKTRAIN_TRY(write_whole(storage, folder + "/" + name, as_bytes(*bytes), {.replace = true}));
    finished.manifest.files.push_back(
        {.path = name, .bytes = bytes->size(), .hash = xxh128_hex(as_bytes(*bytes))});
  }
  const std::string manifest = finished.manifest.encode();
  return write_whole(storage, folder + "/manifest.json", as_bytes(manifest), {.replace = true});
}

Status make(const std::string& folder, uint64_t samples, uint64_t shards) {
  Storage& storage = posix_storage();
  PACKTRAIN_TRY(storage.make_folder(folder));
  IndexBuilder builder;
  builder.begin_split("train");
  const uint64_t samples_per_shard = (samples + shards - 1) / shards;
  uint32_t shard = 0;
  for (uint64_t i = 0; i < samples; i++) {
    const uint64_t place = i % samples_per_shard;
    if (place == 0) {
      const std::string number = std::to_string(i / samples_per_shard);
      shard = builder.add_shard({.path = "train-" + number + ".tar",
                                 .format = "webdataset",
                                 .bytes = samples_per_shard * kStretchBytes});
    }
    const std::string key = std::to_string(i);
    builder.begin_sample(key);
    builder.add_field("jpg", shard, place * kStretchBytes + 512, kPhotoBytes, CheckKind::crc32c,
                      static_cast<uint32_t>(i), key + ".jpg");
    builder.set_label(static_cast<int64_t>(i % 1000));
    PACKTRAIN_TRY(builder.end_sample());
  }
  return write_index(storage, folder, builder);
}

Status repeat(const std::string& from, const std::string& folder, uint64_t times) {
  Storage& storage = posix_storage();
  PACKTRAIN_ASSIGN(dataset, Dataset::open(storage, from));
  PACKTRAIN_TRY(storage.make_folder(folder));
  const Manifest& manifest = dataset->manifest();
  IndexBuilder builder;
  builder.begin_split("train");
  builder.set_classes(manifest.classes);
  for (uint64_t time = 0; time < times; ++time) {
    uint64_t sample = 0;
    for (uint32_t number = 0; number < manifest.shards.size(); ++number) {
      const ShardSpec& old = manifest.shards[number];
      const std::string path = "train-" + std::to_string(time) + "-" + std::to_string(number) + ".tar";
      std::error_code failed;
      std::filesystem::create_hard_link(dataset->shard_path(number), folder + "/" + path, failed);
      if (failed) return Status(Code::io, folder + "/" + path + ": " + failed.message());
      const uint32_t shard = builder.add_shard({.path = path, .format = old.format, .bytes = old.bytes});
      for (const uint64_t end = sample + old.samples; sample < end; ++sample) {
        const std::string key = std::to_string(time) + "-" + std::to_string(sample);
        builder.begin_sample(key);
        for (uint32_t field = 0; field < manifest.fields.size(); ++field) {
          const FieldLocation at = dataset->locate(sample, field);
          if (at.present)
            builder.add_field(manifest.fields[field].name, shard, at.offset, at.length, at.check_kind,
                              at.check, key);
        }
        builder.set_label(dataset->label(sample));
        PACKTRAIN_TRY(builder.end_sample());
      }
    }
  }
  return write_index(storage, folder, builder);
}

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t all_pages = 0, resident_pages = 0;
  statm >> all_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

Status open_once(const std::string& folder) {
  Storage& storage = posix_storage();
  const uint64_t at_start = resident_bytes();
  const auto begun = std::chrono::steady_clock::now();
  PACKTRAIN_ASSIGN(dataset, Dataset::open(storage, folder));
  const auto opened = std::chrono::steady_clock::now();
  const uint64_t when_open = resident_bytes();
  uint64_t sum = 0;  // printed, so that no look is left out
  for (uint64_t i = 0; i < kLookUps; i++) {
    const uint64_t sample = dataset->samples() / kLookUps * i;
    sum += dataset->locate(sample, 0).offset + static_cast<uint64_t>(dataset->label(sample));
  }
  const auto looked = std::chrono::steady_clock::now();
  const uint64_t at_end = resident_bytes();

  Json result = Json::object();
  result.set("samples", dataset->samples())
      .set("open_seconds", std::chrono::duration<double>(opened - begun).count())
      .set("open_bytes", when_open - at_start)
      .set("look_seconds", std::chrono::duration<double>(looked - opened).count())
      .set("look_bytes", at_end - when_open)
      .set("sum", sum);
  std::puts(result.dump().c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 2 ? argv[1] : "";
  Status status;
  if (verb == "make" && argc == 5) {
    status = make(argv[2], std::strtoull(argv[3], nullptr, 10), std::strtoull(argv[4], nullptr, 10));
  } else if (verb == "open" && argc == 3) {
    status = open_once(argv[2]);
  } else if (verb == "repeat" && argc == 5) {
    status = repeat(argv[2], argv[3], std::strtoull(argv[4], nullptr, 10));
  } else {
    std::fputs(
        "usage: open_index make FOLDER SAMPLES SHARDS\n       open_index open FOLDER\n"
        "       open_index repeat DATASET FOLDER TIMES\n",
        stderr);
    return 2;
  }
  if (!status.ok()) std::fprintf(stderr, "open_index: %s\n", status.text().c_str());
  return status.ok() ? 0 : 1;
}
