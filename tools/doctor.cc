// packtrain doctor: what this machine, and this build, offer.
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/version.h"
#include "base/words.h"
#include "packtrain/codec.h"
#include "packtrain/decode.h"
#include "packtrain/format.h"
#include "packtrain/place.h"
#include "packtrain/storage.h"
#include "packtrain/transform.h"
#include "packtrain/values.h"
#include "tools/command.h"

namespace packtrain::tools {
namespace {

// Every open shard takes one descriptor.
constexpr uint64_t kManyFiles = 4096;

// Rows of words, printed with columns as wide as their widest word.
class Table {
 public:
  void row(std::vector<std::string> words) { rows_.push_back(std::move(words)); }
  void print(Run& run) const {
    std::vector<size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        line += "  " + row[i];
        if (i + 1 < row.size()) line.append(widths[i] - row[i].size(), ' ');
      }
      run.say(line);
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

struct NamedPath {
  std::string name, path;
};

// Where data usually is or is brought to; only what exists.
std::vector<NamedPath> usual_places() {
  std::vector<NamedPath> found;
  const auto add = [&](std::string name, const std::string& path) {
    std::error_code error;
    if (!path.empty() && std::filesystem::is_directory(path, error)) found.push_back({std::move(name), path});
  };
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  std::error_code error;
  add("here", std::filesystem::current_path(error).string());
  add("$HOME", variable("HOME"));
  if (variable("TMPDIR").empty())
    add("temporary", "/tmp");
  else
    add("$TMPDIR", variable("TMPDIR"));
  add("memory", "/dev/shm");
  for (const char* name : {"LOCAL_SCRATCH", "SLURM_TMPDIR", "JOBFS"})
    add("$" + std::string(name), variable(name));
  for (const char* path : {"/scr", "/scratch"}) add(path, path);
  return found;
}

void look_at_cores_and_memory(Run& run, Table& table) {
  const Grant grant = granted();
  Json cores, memory;
  cores.set("granted", grant.cores).set("machine", grant.machine_cores).set("from", grant.cores_from);
  memory.set("bytes", grant.memory).set("available", grant.memory_available).set("from", grant.memory_from);
  run.result().set("cores", cores).set("memory", memory);
  table.row({"cores", std::to_string(grant.cores) + " of " + std::to_string(grant.machine_cores) + ", by " +
                          grant.cores_from});
  table.row({"memory", bytes_in_words(grant.memory) + ", by " + grant.memory_from + "; " +
                           bytes_in_words(grant.memory_available) + " available now"});
}

void look_at_reads(Run& run, Table& table) {
  const std::string trouble = io_uring_trouble();
  const char* asked = std::getenv("PACKTRAIN_IO");
  const std::string_view wanted = asked != nullptr ? asked : "";
  if (!wanted.empty() && wanted != "pool" && wanted != "io_uring")
    run.warn("PACKTRAIN_IO=" + printable(wanted) + " means nothing; it may be pool or io_uring");
  Json io;
  io.set("backend", trouble.empty() ? "io_uring" : "pool").set("io_uring_trouble", trouble);
  run.result().set("io", io);
  table.row({"reads", trouble.empty() ? "io_uring" : "a pool of threads; no io_uring: " + trouble});
}

void look_at_kernels(Run& run, Table& table) {
  const auto names = kernel_names();
  const char* asked = std::getenv("PACKTRAIN_KERNELS");
  const std::string_view wanted = asked != nullptr ? asked : "";
  std::string_view used = names.front();
  if (std::find(names.begin(), names.end(), wanted) != names.end()) {
    used = wanted;
  } else if (!wanted.empty()) {
    run.warn("PACKTRAIN_KERNELS=" + printable(wanted) + " is refused by loaders; it may be " +
             names_in_words(names, names.size()));
  }
  Json kernels, list = Json::array();
  for (const std::string& name : names) list.push(name);
  kernels.set("used", used).set("here", std::move(list));
  run.result().set("kernels", kernels);
  table.row(
      {"pixels", std::string(used) + (names.size() > 1 ? "" : ": no vector kernels for this processor")});
}

Json limit_value(rlim_t value) { return value == RLIM_INFINITY ? Json() : Json(uint64_t{value}); }

void look_at_limits(Run& run, Table& table) {
  rlimit files{}, locked{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_MEMLOCK, &locked);
  const bool few = files.rlim_cur != RLIM_INFINITY && files.rlim_cur < kManyFiles;
  const bool can_rise = files.rlim_cur < files.rlim_max;
  Json limits;  // null: no limit
  limits.set("open_files", limit_value(files.rlim_cur))
      .set("open_files_at_most", limit_value(files.rlim_max));
  limits.set("locked_memory", limit_value(locked.rlim_cur));
  run.result().set("limits", limits);
  std::string words = files.rlim_cur == RLIM_INFINITY ? "no limit" : count_in_words(files.rlim_cur);
  words += few ? ": few, as every open shard takes one" : ": enough, every open shard takes one";
  if (few) words += can_rise ? "; raised when more are needed" : "; only the administrator can raise it";
  table.row({"open files", words});
  table.row(
      {"locked memory", (locked.rlim_cur == RLIM_INFINITY ? "no limit" : bytes_in_words(locked.rlim_cur)) +
                            std::string("; rings of Linux before 5.12 and pinned memory count against it")});
}

void look_at_places(Run& run) {
  Json list = Json::array();
  Table table;
  table.row({"place", "kind", "filesystem", "free", "of", "inodes free", "path"});
  for (const NamedPath& named : usual_places()) {
    Result<Place> found = place_of(named.path);
    Json entry;
    entry.set("name", named.name).set("path", named.path);
    if (!found.ok()) {
      entry.set("error", found.status().text());
      table.row({named.name, "unknown", "", "", "", "", found.status().text()});
      list.push(std::move(entry));
      continue;
    }
    const Place& place = *found;
    entry.set("kind", place_kind_name(place.kind))
        .set("filesystem", place.filesystem)
        .set("mount", place.mount)
        .set("bytes_free", place.bytes_free)
        .set("bytes_total", place.bytes_total)
        .set("inodes_free", place.inodes_free)
        .set("inodes_total", place.inodes_total)
        .set("read_only", place.read_only);
    list.push(std::move(entry));
    table.row({named.name, std::string(place_kind_name(place.kind)), place.filesystem,
               bytes_in_words(place.bytes_free), bytes_in_words(place.bytes_total),
               place.inodes_total > 0 ? count_in_words(place.inodes_free) : "not counted",
               printable(named.path) + (place.read_only ? " (read-only)" : "")});
  }
  run.result().set("places", std::move(list));
  table.print(run);
}

// A picture that goes in and comes out again, rather than a flag of the build.
Status try_jpeg() {
  Image grey;
  grey.shape = {16, 16, 3};
  grey.pixels.assign(16 * 16 * 3, 128);
  PACKTRAIN_ASSIGN(encoded, encode_jpeg(grey, 90, Chroma::s420));
  PACKTRAIN_ASSIGN(decoded, decode_jpeg(encoded));
  if (!(decoded.shape == grey.shape)) return Status(Code::io, "comes back in another shape");
  return {};
}

std::string absent_in_words(std::string_view package) {
  return "was absent when packtrain was built; install " + std::string(package) +
         " (Debian, Ubuntu) and build it again";
}

Status try_image(const ImageDecoderInfo& decoder) {
  if (!decoder.compiled_in) return Status(Code::unsupported, absent_in_words(decoder.package));
  return decoder.kind == MediaKind::jpeg ? try_jpeg() : Status();
}

void look_at_build(Run& run) {
  Json codec_list = Json::array(), format_list = Json::array(), image_list = Json::array();
  Table table;
  table.row({"format", "suffix", "reads", "writes", "what it is"});
  for (const Format* format : formats()) {
    const bool reads = format->index != nullptr,
               writes = format->layout != nullptr || format->create != nullptr;
    Json entry;
    entry.set("name", format->name).set("suffix", format->suffix).set("read", reads).set("write", writes);
    entry.set("summary", format->summary);
    format_list.push(std::move(entry));
    table.row({std::string(format->name), std::string(format->suffix), reads ? "yes" : "no",
               writes ? "yes" : "no", std::string(format->summary)});
  }
  table.row({});
  table.row({"codec", "", "here", "", "library"});
  for (const CodecInfo& codec : codecs()) {
    Json entry;
    entry.set("name", codec.name).set("compiled_in", codec.compiled_in).set("library", codec.library);
    entry.set("package", codec.package);
    codec_list.push(std::move(entry));
    table.row({std::string(codec.name), "", codec.compiled_in ? "yes" : "no", "",
               std::string(codec.library) + (codec.compiled_in ? "" : " " + absent_in_words(codec.package))});
  }
  table.row({});
  table.row({"image", "", "here", "", "library"});
  for (const ImageDecoderInfo& decoder : image_decoders()) {
    const std::string name(media_kind_name(decoder.kind)), library(decoder.library);
    const Status works = try_image(decoder);
    Json entry;
    entry.set("name", name).set("library", library).set("package", decoder.package);
    entry.set("works", works.ok());
    if (!works.ok()) entry.set("error", works.text());
    image_list.push(std::move(entry));
    table.row({name, "", works.ok() ? "yes" : "no", "", library + (works.ok() ? "" : " " + works.text())});
  }
  run.result().set("formats", std::move(format_list)).set("codecs", std::move(codec_list));
  run.result().set("images", std::move(image_list));
  Json wav, flac, audio_list = Json::array();
  wav.set("name", "wav").set("library", "").set("package", "").set("works", true);
  constexpr std::string_view kFlacPackage = "libflac-dev";
  flac.set("name", "flac").set("library", "libFLAC").set("package", kFlacPackage).set("works", has_flac());
  audio_list.push(std::move(wav)).push(std::move(flac));
  run.result().set("audio", std::move(audio_list));
  table.row({});
  table.row({"audio", "", "here", "", "library"});
  table.row({"wav", "", "yes", "", "its own"});
  table.row({"flac", "", has_flac() ? "yes" : "no", "",
             has_flac() ? "libFLAC" : "libFLAC " + absent_in_words(kFlacPackage)});
  table.print(run);
}

Status run_doctor(Run& run) {
  run.result().set("version", version());
  Table machine;
  machine.row({"packtrain", std::string(version())});
  look_at_cores_and_memory(run, machine);
  look_at_reads(run, machine);
  look_at_kernels(run, machine);
  look_at_limits(run, machine);
  machine.print(run);
  run.say("");
  look_at_places(run);
  run.say("");
  look_at_build(run);
  return {};
}

}  // namespace

std::function<Status(Run&)> declare_doctor(Options& options) {
  options
      .summary(
          "Tells what this machine and this build offer: cores and memory granted, places with their kind "
          "and "
          "room, limits, formats, codecs.")
      .example("packtrain doctor")
      .example("packtrain doctor --json | jq .places");
  return run_doctor;
}

}  // namespace packtrain::tools
