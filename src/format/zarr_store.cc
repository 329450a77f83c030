#include "format/zarr_store.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/words.h"
#include "format/table.h"
#include "format/zip_directory.h"

namespace packtrain {
namespace {

constexpr std::string_view kMarks[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata", ".zattrs"};
constexpr uint64_t kLargestObject = uint64_t{256} << 20;  // of those read whole: metadata
constexpr uint64_t kMostChunkFiles = uint64_t{1} << 22;
constexpr size_t kMostNamesLookedAt = 100;  // of a zip, to tell whether it is a hierarchy
constexpr uint64_t kMostChunksPerByte = 64, kChunksForNothing = 4096;

std::string join(std::string_view folder, std::string_view name) {
  return folder.empty() ? std::string(name) : std::string(folder) + "/" + std::string(name);
}

// Chunks are files of their own, found when they are asked for.
class FolderStore final : public ZarrStore {
 public:
  FolderStore(Storage& storage, std::string_view path, const IndexOptions& options)
      : storage_(storage), path_(path), recorded_(options.shard_path.empty() ? path : options.shard_path) {
    while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
    while (recorded_.size() > 1 && recorded_.ends_with('/')) recorded_.pop_back();
  }

  Result<std::optional<ZarrObject>> find(const std::string& key) override {
    const std::string path = join(path_, key);
    auto info = storage_.stat(path);
    if (!info.ok() && info.status().code() != Code::not_found) return info.status();
    if (!info.ok() || info->kind != FileKind::file) return std::optional<ZarrObject>();
    ArrayFile file{.path = path, .shard = {}, .file = nullptr};
    file.shard.path = join(recorded_, key);
    file.shard.format = kZarr.name;
    file.shard.bytes = info->size;
    file.shard.mtime_ns = info->mtime_ns;
    files.push_back(std::move(file));
    ZarrObject object{
        .file = static_cast<uint32_t>(files.size() - 1), .bytes = info->size, .raw = info->size};
    return std::optional(object);
  }

  Result<std::vector<std::string>> folders(const std::string& folder) override {
    std::vector<std::string> names;
    PACKTRAIN_TRY(storage_.list(folder.empty() ? path_ : join(path_, folder), [&](FolderEntry&& entry) {
      if (entry.kind != FileKind::file) names.push_back(std::move(entry.name));
      return true;
    }));
    std::sort(names.begin(), names.end());
    return names;
  }

  uint64_t most_chunks() const override { return kMostChunkFiles; }

 private:
  Storage& storage_;
  std::string path_, recorded_;
};

// Chunks are entries of a zip. What was written twice counts as it was written last.
class ZipStoreReader final : public ZarrStore {
 public:
  ZipStoreReader(Storage& storage, std::string_view path, std::shared_ptr<const File> file,
                 const IndexOptions& options)
      : options_(strict(options, damage_)), file_(file), directory_(storage, *file, options_) {
    files.push_back({std::string(path), shard_spec(kZarr, path, *file, options), std::move(file)});
  }

  Status read() {
    PACKTRAIN_TRY(
        directory_.read([](const ZipEntry&) { return uint64_t{0}; }, [](size_t, Bytes) { return Status(); }));
    if (!damage_.empty()) {
      return Status(Code::corrupt, damage_[0].what + "; the chunks are of use only together: make it again")
          .at("@ " + std::to_string(damage_[0].offset));
    }
    for (const ZipMember& member : directory_.members()) by_name_.push_back(&member);
    std::stable_sort(by_name_.begin(), by_name_.end(),
                     [](const ZipMember* a, const ZipMember* b) { return a->record.name < b->record.name; });
    find_root();
    return {};
  }

  Result<std::optional<ZarrObject>> find(const std::string& key) override {
    const std::string name = root_ + key;
    const auto after = std::upper_bound(
        by_name_.begin(), by_name_.end(), name,
        [](const std::string& wanted, const ZipMember* member) { return wanted < member->record.name; });
    if (after == by_name_.begin() || (*std::prev(after))->record.name != name)
      return std::optional<ZarrObject>();
    const ZipMember& member = **std::prev(after);
    return std::optional(ZarrObject{.offset = member.data_offset,
                                    .bytes = member.record.stored,
                                    .raw = member.record.raw,
                                    .pipeline = zip_pipeline(member.record),
                                    .check_kind = CheckKind::crc32,
                                    .check = member.record.crc32});
  }

  Result<std::vector<std::string>> folders(const std::string& folder) override {
    const std::string front = folder.empty() ? root_ : root_ + folder + "/";
    std::vector<std::string> names;
    auto at = std::lower_bound(
        by_name_.begin(), by_name_.end(), front,
        [](const ZipMember* member, const std::string& wanted) { return member->record.name < wanted; });
    for (; at != by_name_.end() && (*at)->record.name.starts_with(front); ++at) {
      const std::string_view rest = (*at)->record.name.substr(front.size());
      const size_t slash = rest.find('/');
      if (slash == std::string_view::npos || slash == 0) continue;
      if (names.empty() || names.back() != rest.substr(0, slash)) names.emplace_back(rest.substr(0, slash));
    }
    // "a" and "a-b" stand apart where "a/…" lies behind "a-b/…".
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  uint64_t most_chunks() const override {
    const uint64_t bytes = std::min(files[0].shard.bytes, uint64_t{1} << 40);
    return std::min(kMostChunkFiles * 16, kChunksForNothing + kMostChunksPerByte * bytes);
  }

 private:
  static IndexOptions strict(const IndexOptions& options, std::vector<Damage>& damage) {
    IndexOptions mine = options;
    mine.recover = true;
    mine.damage = &damage;
    return mine;
  }

  // Zipped with its folder, the hierarchy is one folder down.
  void find_root() {
    const auto has = [&](const std::string& front) {
      return std::any_of(std::begin(kMarks), std::end(kMarks), [&](std::string_view mark) {
        const auto found = find(front + std::string(mark));
        return found.ok() && found->has_value();
      });
    };
    if (has("")) return;
    const auto names = folders("");
    if (names.ok() && names->size() == 1 && has((*names)[0] + "/")) root_ = (*names)[0] + "/";
  }

  std::vector<Damage> damage_;
  const IndexOptions options_;
  std::shared_ptr<const File> file_;
  ZipDirectory directory_;
  std::vector<const ZipMember*> by_name_;
  std::string root_;  // empty, or ends with '/'
};

// Whether an entry of that name makes a zip a hierarchy; nothing if it might be one and might not.
std::optional<bool> tells_of_zarr(std::string_view name) {
  if (name.find(".zarr/") != std::string_view::npos) return true;
  if (name.ends_with('/')) return std::nullopt;
  const size_t folder = name.starts_with("c/") ? 0 : name.find("/c/");
  if (folder != std::string_view::npos) {
    const std::string_view place = name.substr(name.find("c/", folder) + 2);
    if (place.find_first_not_of("/0123456789") == std::string_view::npos)
      return true;  // a chunk of version 3: "x/c/0/0"
  }
  const std::string_view leaf = name.substr(name.rfind('/') + 1);
  if (std::find(std::begin(kMarks), std::end(kMarks), leaf) != std::end(kMarks)) return true;
  // A chunk of version 2, "x/0.0", or a file that is called so.
  if (leaf.find_first_not_of(".0123456789") == std::string_view::npos) return std::nullopt;
  return false;
}

// By the first entry whose name is telling: folders and chunks may stand before it.
bool has_zarr_names(Storage& storage, const File& file) {
  uint64_t at = 0;
  for (size_t looked = 0; looked < kMostNamesLookedAt; ++looked) {
    std::byte head[kZipLocalBytes + 256];
    const size_t bytes = std::min<uint64_t>(sizeof head, file.size() - at);
    if (bytes < kZipLocalBytes || !storage.read(file, at, std::span(head).first(bytes)).ok()) return false;
    const auto local = parse_zip_local(head);
    if (!local.ok() || local->name_bytes > bytes - kZipLocalBytes) return false;
    if (const auto told = tells_of_zarr(as_text(Bytes(head).subspan(kZipLocalBytes, local->name_bytes))))
      return *told;
    at += kZipLocalBytes + local->name_bytes + local->extra_bytes + local->stored;
    if (at > file.size()) return false;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<ZarrStore>> open_zarr_store(Storage& storage, std::string_view path,
                                                   const IndexOptions& options) {
  PACKTRAIN_ASSIGN(info, storage.stat(path));
  if (info.kind == FileKind::folder)
    return std::unique_ptr<ZarrStore>(new FolderStore(storage, path, options));
  PACKTRAIN_ASSIGN(opened, storage.open(path));
  auto store = std::make_unique<ZipStoreReader>(storage, path, std::shared_ptr<const File>(std::move(opened)),
                                                options);
  PACKTRAIN_TRY(store->read());
  return std::unique_ptr<ZarrStore>(std::move(store));
}

Result<std::optional<std::string>> read_zarr_object(Storage& storage, ZarrStore& store,
                                                    const std::string& key) {
  PACKTRAIN_ASSIGN(object, store.find(key));
  if (!object) return std::optional<std::string>();
  if (object->raw > kLargestObject) {
    return Status(Code::corrupt, "takes " + bytes_in_words(object->raw) + ", which no metadata do")
        .at(printable(key));
  }
  const ArrayFile& place = store.files[object->file];
  std::shared_ptr<const File> file = place.file;
  if (file == nullptr) {
    PACKTRAIN_ASSIGN(opened, storage.open(place.path));
    file = std::move(opened);
  }
  std::vector<std::byte> stored(object->bytes);
  PACKTRAIN_TRY(storage.read(*file, object->offset, stored));
  std::string text(object->raw, '\0');
  Status status = decode(object->pipeline, stored, std::as_writable_bytes(std::span(text)));
  if (status.ok() && !matches(object->check_kind, object->check, as_bytes(text)))
    status = Status(Code::corrupt, "its bytes do not match their check");
  if (!status.ok()) return status.at(printable(key));
  return std::optional(std::move(text));
}

bool looks_like_zarr(Storage& storage, std::string_view path) {
  const auto info = storage.stat(path);
  if (!info.ok()) return false;
  if (info->kind == FileKind::folder) {
    return std::any_of(std::begin(kMarks), std::end(kMarks), [&](std::string_view mark) {
      const auto found = storage.stat(join(path, mark));
      return found.ok() && found->kind == FileKind::file;
    });
  }
  auto file = storage.open(path);
  if (!file.ok() || !looks_like_zip(storage, **file)) return false;
  if (path.ends_with(".zarr.zip") || path.ends_with(".zarr")) return true;
  return has_zarr_names(storage, **file);
}

}  // namespace packtrain
