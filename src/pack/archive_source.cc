// Archives of trees: zip and tar, compressed or not, read where they are.
#include <algorithm>
#include <memory>
#include <numeric>
#include <unordered_map>

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
    uint32_t source = 0;       // which container or stream
    int64_t label = kNoLabel;  // what a .cls says
  };
  Listing listing;  // ListedFile::number is the position in `places`
  std::vector<Place> places;
  uint64_t replaced = 0;  // members that a later one of the same name replaces

  // Keeps the member unless its name, or that of a folder above it, is hidden or temporary.
  void add(std::string_view name, const Place& place, BigString& names) {
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
  void sort(std::string_view names) {
    auto& files = listing.files;
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

void note_replaced(Catalog& catalog, const Source& source, uint64_t replaced) {
  if (replaced == 0) return;
  catalog.warnings.push_back(printable(source.path) + " holds " + counted(replaced, "member") +
                             " whose name comes again; the last of each name is packed, as tar would");
}

Status add_members(ScanContext& context, const Source& source, Members& members, Origin origin) {
  Catalog& catalog = context.out.catalog();
  members.sort(catalog.names);
  note_replaced(catalog, source, members.replaced);
  context.out.reserve(members.listing.files.size(), 2 * members.listing.files.size());
  ++catalog.files;
  TreeOptions options;
  options.enter_lone_folder = true;
  const auto fill = [&](size_t file, Cell& cell) {
    const Members::Place& place = members.places[members.listing.files[file].number];
    cell.origin = origin;
    cell.source = place.source;
    cell.where = place.where;
    cell.size = place.size;
  };
  return add_tree(context, source, members.listing, options, fill,
                  [&](size_t file) { return members.places[members.listing.files[file].number].label; });
}

void warn_of_links(Catalog& catalog, const Source& source, uint64_t links) {
  if (links == 0) return;
  catalog.skipped.special += links;
  catalog.warnings.push_back(
      printable(source.path) + " holds " + count_in_words(links) +
      (links == 1 ? " link, which has no bytes of its own and is left out"
                  : " links, which have no bytes of their own and are left out") +
      "; make the archive with tar --hard-dereference --dereference, or zip -r without -y, to keep what they "
      "lead to");
}

// Whether the members of a tar are samples of a WebDataset: a label beside its sample, or different fields of
// one key in a row. An archive of a tree can look like that too, but it has entries for folders, or fields of
// one key that lie apart, because a folder's files come in no order. Labels beside less than half of the
// samples of several folders are strays in a tree, whose folders say more. Looks at names only; 16 bytes and
// more a key.
class ShardDetector {
 public:
  void add(std::string_view name) {
    const auto split = split_member_name(name);
    if (!split) return;
    const std::string field = field_name(split->field);
    const bool is_label = is_label_member(name);
    const uint64_t bit = field_bit(field);
    labels_ += is_label;
    if (seen_ != nullptr && split->key == key_) {
      adjacent_ |= !is_label && !field_.empty() && field != field_;
      repeated_ |= (fields_in_a_row_ & bit) != 0;
    } else {
      const std::string_view folder = split->key.substr(0, split->key.rfind('/') + 1);
      if (seen_ == nullptr) folder_ = folder;
      several_folders_ |= folder != folder_;
      field_.clear();
      fields_in_a_row_ = 0;
      const auto [known, added] = fields_of_.try_emplace(xxh64(as_bytes(split->key)), 0);
      seen_ = &known->second;
      // A sample that comes again is another one; only a field that is new to a known key was torn off it.
      scattered_ |= !added && (*seen_ & bit) == 0;
      key_ = split->key;
    }
    *seen_ |= bit;
    fields_in_a_row_ |= bit;
    if (!is_label) field_ = field;
  }
  bool found(uint64_t folders) const { return found_labels() || (adjacent_ && !scattered_ && folders == 0); }
  bool found_labels() const { return labels_ > 0 && !scattered_ && !labels_are_strays(); }
  bool labels_are_strays() const { return several_folders_ && 2 * labels_ < fields_of_.size(); }
  // Whether a sample may hold a member twice.
  bool repeated() const { return repeated_; }

 private:
  // One for each of the first fields; the last one stands for all others.
  uint64_t field_bit(const std::string& field) {
    const auto at = std::find(fields_.begin(), fields_.end(), field) - fields_.begin();
    if (at == static_cast<ptrdiff_t>(fields_.size()) && at < kLastBit) fields_.push_back(field);
    return uint64_t{1} << std::min<ptrdiff_t>(at, kLastBit);
  }

  static constexpr ptrdiff_t kLastBit = 63;
  std::string key_, folder_;
  std::string field_;  // of key_, the last that is no label
  std::vector<std::string> fields_;
  std::unordered_map<uint64_t, uint64_t> fields_of_;  // hash of a key to the bits of its fields
  uint64_t* seen_ = nullptr;                          // of key_
  uint64_t fields_in_a_row_ = 0;                      // of key_, since it came last
  uint64_t labels_ = 0;
  bool adjacent_ = false, scattered_ = false, repeated_ = false, several_folders_ = false;
};

// What the member that the archive is at says as a label; kNoLabel if it is none.
Result<int64_t> read_label(ArchiveStream& archive, const ArchiveStream::Member& member) {
  if (member.size > kLabelBytes || !is_label_member(member.name)) return kNoLabel;
  std::byte text[kLabelBytes];
  const MutableBytes bytes = MutableBytes(text).first(static_cast<size_t>(member.size));
  PACKTRAIN_TRY(archive.read(bytes));
  return parse_label(bytes).value_or(kNoLabel);
}

// A dataset in memory of a tar's members, each a sample with one field.
Result<std::shared_ptr<Dataset>> open_members(ScanContext& context, const Source& source, Members& members,
                                              ShardDetector& detector, uint64_t& folders, uint64_t& links) {
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
  ArchiveStream::Member member;
  for (;;) {
    PACKTRAIN_ASSIGN(more, archive->next(member));
    if (!more) break;
    PACKTRAIN_TRY(context.progress.tick(member.number));
    detector.add(member.name);
    builder.begin_sample(std::to_string(member.number));
    builder.add_field("data", shard, member.offset, member.size, CheckKind::none, 0, {});
    PACKTRAIN_TRY(builder.end_sample());
    PACKTRAIN_ASSIGN(label, read_label(*archive, member));
    members.add(member.name, {member.number, member.size, number, label}, context.out.catalog().names);
  }
  folders = archive->folders();
  links = archive->links();
  const std::string folder = slash == std::string::npos ? "." : source.path.substr(0, slash);
  return Dataset::from_memory(context.storage, folder, builder.finish());
}

// A dataset in memory of a zip's members, each a sample with one field.
Result<std::shared_ptr<Dataset>> open_zip(ScanContext& context, const Source& source, const Format& format,
                                          MembersLeftOut& links) {
  IndexBuilder builder;
  IndexOptions options;
  options.links = &links;
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
  MembersLeftOut links;
  PACKTRAIN_ASSIGN(zip, open_zip(context, source, format, links));
  Members members;
  const auto number = static_cast<uint32_t>(context.out.catalog().containers.size());  // where it will be
  const size_t names_before = context.out.catalog().names.size();
  bool has_labels = false;
  for (uint64_t sample = 0; sample < zip->samples(); ++sample) {
    PACKTRAIN_TRY(context.progress.tick(sample));
    PACKTRAIN_ASSIGN(name, zip->key(sample));
    has_labels |= is_label_member(name);
    members.add(name, {sample, zip->locate(sample, 0).length, number}, context.out.catalog().names);
  }
  if (has_labels) {
    ShardDetector detector;
    for (uint64_t sample = 0; sample < zip->samples(); ++sample) {
      PACKTRAIN_ASSIGN(name, zip->key(sample));
      detector.add(name);
    }
    if (!detector.labels_are_strays()) {
      // Labels beside their samples: a WebDataset in a zip, as packtrain itself writes it.
      context.out.catalog().names.resize(names_before);
      return add_container(context, source);
    }
  }
  warn_of_links(context.out.catalog(), source, links.count);
  context.out.add_container(std::move(zip), source.name);
  return add_members(context, source, members, Origin::container);
}

// The members of a shard in its order; of those with one name in one sample the last, as for tar. A key that
// comes again further on is another sample.
std::vector<ListedFile> last_of_each_name(const Members& members, std::string_view names) {
  std::vector<ListedFile> kept;
  kept.reserve(members.listing.files.size());
  size_t sample = 0;  // where it begins in `kept`
  std::string_view key;
  for (const ListedFile& file : members.listing.files) {
    const std::string_view path = Listing::path(names, file);
    const auto split = split_member_name(path);
    if (split && split->key != key) {
      key = split->key;
      sample = kept.size();
    }
    const auto before =
        std::find_if(kept.begin() + static_cast<ptrdiff_t>(sample), kept.end(),
                     [&](const ListedFile& other) { return Listing::path(names, other) == path; });
    if (before != kept.end()) {
      *before = file;
    } else {
      kept.push_back(file);
    }
  }
  return kept;
}

// The samples of a WebDataset that has no index, since it is compressed or holds a member twice, by the rules
// for a plain one.
Status add_shard_members(ScanContext& context, const Source& source, const Members& members, Origin origin) {
  const std::string_view names = context.out.catalog().names;
  const std::vector<ListedFile> files = last_of_each_name(members, names);
  note_replaced(context.out.catalog(), source, members.listing.files.size() - files.size());
  MemberList list;
  for (const ListedFile& file : files) {
    const Members::Place& place = members.places[file.number];
    MemberPlace at;
    at.offset = file.number;  // nothing is read by it: it only has to lead back to the place
    at.stored = at.raw = place.size;
    at.label = place.label;
    list.add(Listing::path(names, file), at);
  }
  IndexBuilder builder;
  ShardSpec spec;
  spec.path = source.path;
  spec.format = "webdataset";
  const uint32_t shard = builder.add_shard(std::move(spec));
  MembersLeftOut without_number;
  IndexOptions options;
  options.without_number = &without_number;
  const Status grouped = list.add_samples(Adjacency::required, shard, options, builder);
  if (!grouped.ok()) return grouped.at(printable(source.path));
  if (without_number.count > 0)
    context.out.catalog().warnings.push_back(printable(source.path) + ": " +
                                             without_number_in_words(without_number));
  PACKTRAIN_ASSIGN(dataset, Dataset::from_memory(context.storage, "", builder.finish()));
  return add_samples_of(context, source, *dataset,
                        [&](uint64_t, uint32_t, const FieldLocation& location, Cell& cell) {
                          const Members::Place& place = members.places[location.offset];
                          cell.origin = origin;
                          cell.source = place.source;
                          cell.where = place.where;
                        });
}

}  // namespace

Status add_compressed_archive(ScanContext& context, const Source& source) {
  PACKTRAIN_ASSIGN(info, context.storage.stat(source.path));  // first: what changes from now on is noticed
  PACKTRAIN_ASSIGN(archive, ArchiveStream::open(context.storage, source.path));
  const uint32_t number = context.out.add_stream({source.path, info.size, info.mtime_ns}, source.name);
  Members members;
  ShardDetector detector;
  ArchiveStream::Member member;
  for (;;) {
    PACKTRAIN_ASSIGN(more, archive->next(member));
    if (!more) break;
    PACKTRAIN_TRY(context.progress.tick(member.number));
    detector.add(member.name);
    PACKTRAIN_ASSIGN(label, read_label(*archive, member));
    members.add(member.name, {member.number, member.size, number, label}, context.out.catalog().names);
  }
  warn_of_links(context.out.catalog(), source, archive->links());
  // People compress trees; what is a shard without a doubt is one, and as a tree gives the same samples.
  if (detector.found_labels()) return add_shard_members(context, source, members, Origin::stream);
  return add_members(context, source, members, Origin::stream);
}

Status add_archive(ScanContext& context, const Source& source) {
  PACKTRAIN_ASSIGN(format, recognise_format(context.storage, source.path));
  if (format->name == "zip") return add_zip(context, source, *format);
  if (format->name != "webdataset") return add_container(context, source);
  Members members;
  ShardDetector detector;
  uint64_t folders = 0, links = 0;
  const size_t names_before = context.out.catalog().names.size();
  PACKTRAIN_ASSIGN(tar, open_members(context, source, members, detector, folders, links));
  warn_of_links(context.out.catalog(), source, links);
  const bool is_shard = detector.found(folders);
  if (is_shard && detector.repeated()) {
    context.out.add_container(std::move(tar), source.name);
    return add_shard_members(context, source, members, Origin::container);
  }
  if (is_shard) {
    context.out.catalog().names.resize(names_before);
    return add_container(context, source);
  }
  context.out.add_container(std::move(tar), source.name);
  return add_members(context, source, members, Origin::container);
}

}  // namespace packtrain
