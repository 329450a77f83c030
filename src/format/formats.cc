// The table of formats. A new format is one file and one line here.
#include "packtrain/format.h"

#include <algorithm>

#include "base/words.h"
#include "format/table.h"

namespace packtrain {
namespace {

// NPZ and Zarr may be zips, and are asked first.
constexpr const Format* kFormats[] = {&kTar,      &kNpz,  &kZarr, &kZip,      &kArrow, &kParquet,
                                      &kHdf5Vlen, &kHdf5, &kLmdb, &kSquashfs, &kNpy};

// What the first bytes of a file say about formats that packtrain does not read in place. Those that it does
// not read at all have a program that unpacks them.
struct Stranger {
  std::string_view magic;
  std::string_view name, suffix;
  std::string_view program;
};
constexpr Stranger kStrangers[] = {
    {"\x1f\x8b", "gzip", ".gz", ""},
    {"\x28\xb5\x2f\xfd", "zstd", ".zst", ""},
    {"\xfd"
     "7zXZ",
     "xz", ".xz", "xz"},
    {"BZh", "bzip2", ".bz2", "bzip2"},
};

Status is_compressed(const Stranger& stranger, const std::string& path) {
  std::string message = "is compressed by " + std::string(stranger.name);
  if (stranger.program.empty()) {
    message += ", so its members cannot be read one by one; pack it: packtrain pack " + path + " OUT";
  } else {
    std::string plain = path;
    if (plain.ends_with(stranger.suffix)) {
      plain.resize(plain.size() - stranger.suffix.size());
    } else {
      plain += ".unpacked";
    }
    message += ", which packtrain does not read; unpack it and give " + plain + ": " +
               std::string(stranger.program) + " -dc " + path + " > " + plain;
  }
  return Status(Code::unsupported, std::move(message)).at(path);
}

}  // namespace

void note_left_out(std::string_view name, MembersLeftOut& out) {
  ++out.count;
  if (out.names.size() < MembersLeftOut::kNamed) out.names.emplace_back(name);
}

void add_note(const IndexOptions& options, std::string note) {
  if (options.notes == nullptr) return;
  constexpr size_t kMostNotes = 20;  // of many containers, each may give one
  auto& notes = *options.notes;
  if (notes.size() < kMostNotes && std::find(notes.begin(), notes.end(), note) == notes.end())
    notes.push_back(std::move(note));
}

void note_no_labels(const IndexOptions& options, std::string_view column, std::string_view what_it_is) {
  add_note(options, "samples have no labels: `" + printable(column) + "` holds " + std::string(what_it_is) +
                        ", and labels are one whole number for each sample");
}

void note_other_labels(const IndexOptions& options, std::string_view column, std::string_view other) {
  add_note(options, "the labels are those of `" + printable(column) + "`; `" + printable(other) +
                        "` holds labels too and is a field");
}

Status with_way_out(const Status& damage) {
  return Status(damage.code(),
                damage.message() +
                    "; packtrain index --recover passes over it, and the index that it makes can "
                    "be packed")
      .at(damage.where());
}

std::span<const Format* const> formats() { return kFormats; }

const Format* find_format(std::string_view name) {
  for (const Format* format : kFormats) {
    if (format->name == name) return format;
  }
  return nullptr;
}

Result<const Format*> recognise_format(Storage& storage, std::string_view path) {
  auto info = storage.stat(path);
  if (!info.ok()) return info.status();
  for (const Format* format : kFormats) {
    if (info->kind == FileKind::folder && !format->folder) continue;
    if (format->recognise(storage, path)) return format;
  }
  if (info->kind == FileKind::file) {
    PACKTRAIN_ASSIGN(file, storage.open(path));
    std::byte head[8] = {};
    auto bytes = static_cast<size_t>(std::min<uint64_t>(sizeof head, file->size()));
    PACKTRAIN_TRY(storage.read(*file, 0, std::span(head).first(bytes)));
    for (const Stranger& stranger : kStrangers) {
      if (!as_text(std::span(head).first(bytes)).starts_with(stranger.magic)) continue;
      return is_compressed(stranger, std::string(path));
    }
    // Its first bytes are damaged, or it is empty: the format its name promises will say what is wrong.
    for (const Format* format : kFormats) {
      if (path.ends_with(format->suffix)) return format;
    }
  }
  std::string known;
  for (const Format* format : kFormats) {
    known.append(known.empty() ? "" : ", ").append(format->name);
  }
  return Status(Code::unsupported, "is no container that packtrain knows (" + known +
                                       "); to make one of a folder or a list: packtrain pack SOURCE OUT")
      .at(path);
}

ShardSpec shard_spec(const Format& format, std::string_view path, const File& file,
                     const IndexOptions& options) {
  ShardSpec shard;
  shard.path = options.shard_path.empty() ? path : options.shard_path;
  shard.format = format.name;
  shard.bytes = file.size();
  shard.mtime_ns = file.info().mtime_ns;
  return shard;
}

}  // namespace packtrain
