// Archives of trees: zip and tar, compressed or not, read where they are.
#include <algorithm>
#include <memory>
#include <numeric>
#include <unordered_set>

#include "base/hash.h"
#include "base/words.h"
#include "format/grouping.h"
#include "pack/archive_stream.h"
#include "pack/sources.h"
#include "pack/stems.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

// The files of an archive on the way to a tree.
struct Members {
  struct Place {
    uint64_t where = 0, size = 0;
    uint32_t inner_field = 0;
    uint32_t source = 0;  // which container or stream
  };
  Listing listing;  // ListedFile::number is the position in `places`
  std::vector<Place> places;
  uint64_t replaced = 0;  // members that a later one of the same name replaces

  // Keeps the member unless its name, or that of a folder above it, is hidden or temporary.
  void add(std::string_view name, const Place& place, std::string& names) {
    const size_t at = names.size();
    for (size_t from = 0; from <= name.size();) {
      const size_t end = std::min(name.find('/', from), name.size());
      const std::string_view part = name.substr(from, end - from);
      from = end + 1;
      if (part.empty() || part == ".") continue;
      const NameKind kind = part == ".." ? NameKind::ordinary : name_kind(part);
      if (kind != NameKind::ordinary) {
        names.resize(at);
        Skipped& skipped = listing.skipped;
        count_skipped(kind == NameKind::hidden ? skipped.hidden : skipped.temporary, std::string(name),
                      skipped);
        return;
      }
      if (names.size() > at) names += '/';
      names += part;
    }
    if (names.size() == at) return;
    listing.files.push_back(
        {at, static_cast<uint32_t>(names.size() - at), static_cast<uint32_t>(places.size())});
    places.push_back(place);
  }

  // In the order of a walk. Of members with one name the last is the file, as for tar and unzip.
  void sort(const std::string& names) {
    std::vector<ListedFile>& files = listing.files;
    const auto before = [&](const ListedFile& a, const ListedFile& b) {
      const std::string_view a_path = Listing::path(names, a), b_path = Listing::path(names, b);
      return a_path == b_path ? a.number > b.number : path_before(a_path, b_path);
    };
    if (!std::is_sorted(files.begin(), files.end(), before)) std::sort(files.begin(), files.end(), before);
    const auto same = [&](const ListedFile& a, const ListedFile& b) {
      return Listing::path(names, a) == Listing::path(names, b);
    };
    const auto end = std::unique(files.begin(), files.end(), same);
    replaced = static_cast<uint64_t>(files.end() - end);
    files.erase(end, files.end());
  }
};

Status add_members(ScanContext& context, const Source& source, Members& members, Origin origin) {
  Catalog& catalog = context.out.catalog();
  members.sort(catalog.names);
  if (members.replaced > 0)
    catalog.warnings.push_back(
        printable(source.path) + " holds " + count_in_words(members.replaced) +
        " members whose name comes again; the last of each name is packed, as tar would");
  context.out.reserve(members.listing.files.size(), 2 * members.listing.files.size());
  ++catalog.files;
  TreeOptions options;
  options.enter_lone_folder = true;
  return add_tree(context, source, members.listing, options, [&](size_t file, Cell& cell) {
    const Members::Place& place = members.places[members.listing.files[file].number];
    cell.origin = origin;
    cell.source = place.source;
    cell.where = place.where;
    cell.size = place.size;
    cell.inner_field = place.inner_field;
  });
}

void warn_of_links(Catalog& catalog, const Source& source, uint64_t links) {
  if (links == 0) return;
  catalog.skipped.special += links;
  catalog.warnings.push_back(
      printable(source.path) + " holds " + count_in_words(links) +
      " links, which have no bytes of their own and are left out; make the archive with "
      "tar --hard-dereference --dereference to keep what they lead to");
}

// Whether the members of a tar are samples of a WebDataset: a label beside its sample, or different fields of
// one key in a row. An archive of a tree can look like that too, but it has entries for folders, or a key
// that comes again elsewhere, because a folder's files come in no order. Looks at names only; 8 bytes and
// more a key.
class ShardDetector {
 public:
  void add(std::string_view name) {
    const auto split = split_member_name(name);
    if (!split) return;
    const std::string field = field_name(split->field);
    labelled_ |= is_label_member(name);
    if (split->key == key_) {
      adjacent_ |= field != field_;
    } else {
      scattered_ |= !keys_.insert(xxh64(as_bytes(split->key))).second;
    }
    key_ = split->key;
    field_ = field;
  }
  bool found(uint64_t folders) const { return labelled_ || (adjacent_ && !scattered_ && folders == 0); }

 private:
  std::string key_, field_;
  std::unordered_set<uint64_t> keys_;
  bool labelled_ = false, adjacent_ = false, scattered_ = false;
};

// A dataset in memory of a tar's members, each a sample with one field.
Result<std::shared_ptr<Dataset>> open_members(ScanContext& context, const Source& source, Members& members,
                                              bool& is_shard, uint64_t& links) {
  PACKTRAIN_ASSIGN(info, context.storage.stat(source.path));
  PACKTRAIN_ASSIGN(archive, ArchiveStream::open(context.storage, source.path));
  IndexBuilder builder;
  ShardSpec spec;
  const size_t slash = source.path.rfind('/');
  spec.path = source.path.substr(slash == std::string::npos ? 0 : slash + 1);
  spec.format = "webdataset";
  spec.bytes = info.size;
  spec.mtime_ns = info.mtime_ns;
  const uint32_t shard = builder.add_shard(std::move(spec));
  const auto number = static_cast<uint32_t>(context.out.catalog().containers.size());  // where it will be
  ShardDetector detector;
  ArchiveStream::Member member;
  for (;;) {
    PACKTRAIN_ASSIGN(more, archive->next(member));
    if (!more) break;
    PACKTRAIN_TRY(context.progress.tick(member.number));
    detector.add(member.name);
    builder.begin_sample(std::to_string(member.number));
    builder.add_field("data", shard, member.offset, member.size, CheckKind::none, 0, {});
    PACKTRAIN_TRY(builder.end_sample());
    members.add(member.name, {member.number, member.size, 0, number}, context.out.catalog().names);
  }
  is_shard = detector.found(archive->folders());
  links = archive->links();
  const std::string folder = slash == std::string::npos ? "." : source.path.substr(0, slash);
  return Dataset::from_memory(context.storage, folder, builder.finish());
}

// A dataset in memory of a zip's members, each a sample with one field.
Result<std::shared_ptr<Dataset>> open_zip(ScanContext& context, const Source& source, const Format& format) {
  IndexBuilder builder;
  IndexOptions options;
  options.each_member = true;
  const size_t slash = source.path.rfind('/');
  const std::string name = source.path.substr(slash == std::string::npos ? 0 : slash + 1);
  options.shard_path = name;
  PACKTRAIN_TRY(format.index(context.storage, source.path, options, builder));
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : source.path.substr(0, slash);
  return Dataset::from_memory(context.storage, folder, builder.finish());
}

Status add_zip(ScanContext& context, const Source& source, const Format& format) {
  PACKTRAIN_ASSIGN(zip, open_zip(context, source, format));
  Members members;
  const auto number = static_cast<uint32_t>(context.out.catalog().containers.size());  // where it will be
  const size_t names_before = context.out.catalog().names.size();
  for (uint64_t sample = 0; sample < zip->samples(); ++sample) {
    PACKTRAIN_TRY(context.progress.tick(sample));
    PACKTRAIN_ASSIGN(name, zip->key(sample));
    if (is_label_member(name)) {
      // Labels beside their samples: a WebDataset in a zip, as packtrain itself writes it.
      context.out.catalog().names.resize(names_before);
      return add_container(context, source);
    }
    members.add(name, {sample, zip->locate(sample, 0).length, 0, number}, context.out.catalog().names);
  }
  context.out.add_container(std::move(zip), source.name);
  return add_members(context, source, members, Origin::container);
}

}  // namespace

Status add_compressed_archive(ScanContext& context, const Source& source) {
  PACKTRAIN_ASSIGN(archive, ArchiveStream::open(context.storage, source.path));
  const uint32_t number = context.out.add_stream(source.path, source.name);
  Members members;
  ArchiveStream::Member member;
  for (;;) {
    PACKTRAIN_ASSIGN(more, archive->next(member));
    if (!more) break;
    PACKTRAIN_TRY(context.progress.tick(member.number));
    members.add(member.name, {member.number, member.size, 0, number}, context.out.catalog().names);
  }
  warn_of_links(context.out.catalog(), source, archive->links());
  return add_members(context, source, members, Origin::stream);
}

Status add_archive(ScanContext& context, const Source& source) {
  PACKTRAIN_ASSIGN(format, recognise_format(context.storage, source.path));
  if (format->name == "zip") return add_zip(context, source, *format);
  if (format->name != "webdataset") return add_container(context, source);
  Members members;
  bool is_shard = false;
  uint64_t links = 0;
  const size_t names_before = context.out.catalog().names.size();
  PACKTRAIN_ASSIGN(tar, open_members(context, source, members, is_shard, links));
  if (is_shard) {
    context.out.catalog().names.resize(names_before);
    return add_container(context, source);
  }
  warn_of_links(context.out.catalog(), source, links);
  context.out.add_container(std::move(tar), source.name);
  return add_members(context, source, members, Origin::container);
}

}  // namespace packtrain
