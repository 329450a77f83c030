#include "pack/publish.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/give_back.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/words.h"
#include "index/npz.h"
#include "pack/shard_layout.h"
#include "pack/sidecars.h"
#include "pack/written_fields.h"
#include "packtrain/codec.h"

namespace packtrain {
namespace {

Status wrong_record(const ShardPlan& shard) {
  return Status(Code::corrupt,
                "the record of a shard does not fit the plan; remove the .part folder and pack again")
      .at(shard.name);
}

// That sizes and hashes are there for every member and sample, if the plan makes them.
Status check_conversion(const Plan& plan, const ShardPlan& shard, const ShardRows& rows) {
  const bool fits = plan.conversion.any()
                        ? rows.sizes.size() == rows.checks.size() &&
                              rows.source_hashes.size() == rows.widths.size() * kSourceHashBytes
                        : rows.sizes.empty() && rows.source_hashes.empty();
  return fits ? Status() : wrong_record(shard);
}

// The names of a dataset with one more column behind the others.
Result<std::string> with_column(const std::string& names_npz, std::string_view name, std::string_view bytes) {
  PACKTRAIN_ASSIGN(columns, read_npz(as_bytes(names_npz)));
  NpzWriter writer;
  writer.reserve(names_npz.size() + bytes.size() + 4096);
  for (const Column& column : columns) writer.add(column.name, column.type, column.count, column.data);
  writer.add(name, bytes);
  return writer.finish();
}

// Where each field lies in a shard that was planned, or written by its layout.
Status add_planned(const Plan& plan, const ShardPlan& shard, const Layout& layout, const ShardRows& rows,
                   uint32_t number, IndexBuilder& builder, SidecarShard& sidecar) {
  const Catalog& catalog = plan.catalog;
  PACKTRAIN_TRY(check_conversion(plan, shard, rows));
  size_t members = 0, samples = 0;
  Status status;
  const uint64_t tail = walk_shard(
      plan, shard, layout, rows.left_out,
      [&](const PlannedMember& member, std::string_view name, uint64_t sample) {
        if (!status.ok()) return;
        if (members >= rows.checks.size() || member.sample >= rows.widths.size() ||
            member.sample >= rows.heights.size()) {
          status = wrong_record(shard);
          return;
        }
        if (member.sample == samples) {
          if (samples > 0) status = builder.end_sample();
          ++samples;
          builder.begin_sample(plan.key(sample));
          builder.set_label(catalog.samples[sample].label);
          const uint32_t width = rows.widths[member.sample], height = rows.heights[member.sample];
          if (width != 0) builder.set_image_size(width, height);
          sidecar.begin_sample(member.head_offset);
        }
        const Cell cell = catalog.cell(member.cell, sample);
        builder.add_field(catalog.fields[cell.field], number, member.data_offset, member.size,
                          CheckKind::crc32c, rows.checks[members++], recorded_path(catalog, cell));
        sidecar.add_member(catalog.fields[cell.field], name, member.data_offset, member.size);
      },
      rows.sizes);
  PACKTRAIN_TRY(status);
  if (samples > 0) PACKTRAIN_TRY(builder.end_sample());
  // The tail of a zip follows from its members, which are not kept; that of a tar does not.
  const bool fits = layout.needs_crc32 || tail + layout.tail_bytes({}, tail) == rows.bytes;
  if (members != rows.checks.size() || samples != rows.widths.size() || samples != rows.heights.size() ||
      !fits)
    return wrong_record(shard);
  sidecar.end(tail);
  return {};
}

bool is_whole(const std::pair<Block, Slice>& piece) {
  return piece.second.start == 0 && piece.second.length == piece.first.raw;
}

// What several fields of a shard share, such as the header in front of each row of an array, and compressed
// blocks that hold several rows: their checks, which were not taken while writing, and their place in the
// index.
class SharedBlocks {
 public:
  SharedBlocks(Storage& storage, std::string path) : storage_(storage), path_(std::move(path)) {}

  // The number of a block in the index; the same one for whoever shares it.
  uint64_t number_of(const Block& block, IndexBuilder& builder) {
    if (const auto known = numbers_.find(place_of(block)); known != numbers_.end()) return known->second;
    if (numbers_.size() >= kMostKept) numbers_.clear();
    return numbers_.emplace(place_of(block), builder.add_block(block)).first->second;
  }

  // Of the decoded bytes of a block, read back once.
  Result<uint32_t> of(const Block& block, const Pipeline& pipeline) {
    if (const auto known = checks_.find(place_of(block)); known != checks_.end()) return known->second;
    if (!file_) {
      PACKTRAIN_ASSIGN(file, storage_.open(path_));
      file_ = std::move(file);
    }
    raw_.resize(static_cast<size_t>(block.raw));
    if (block.hole) {
      std::fill(raw_.begin(), raw_.end(), std::byte{0});
    } else if (pipeline.empty()) {
      PACKTRAIN_TRY(storage_.read(*file_, block.offset, raw_));
    } else {
      stored_.resize(static_cast<size_t>(block.stored));
      PACKTRAIN_TRY(storage_.read(*file_, block.offset, stored_));
      PACKTRAIN_TRY(decode(pipeline, stored_, raw_));
    }
    const uint32_t check = crc32c(raw_);
    if (checks_.size() >= kMostKept) checks_.clear();
    checks_.emplace(place_of(block), check);
    return check;
  }

 private:
  using Place = std::pair<uint64_t, uint64_t>;  // where it begins, and its decoded length
  static constexpr size_t kMostKept = 1 << 16;  // who shares a block comes soon
  static Place place_of(const Block& block) { return {block.offset, block.raw}; }

  Storage& storage_;
  const std::string path_;
  std::unique_ptr<File> file_;
  std::map<Place, uint32_t> checks_;
  std::map<Place, uint64_t> numbers_;
  std::vector<std::byte> stored_, raw_;
};

// Gives the pieces of a field the checks that they lack. `check` is that of the whole field.
Status check_pieces(std::vector<std::pair<Block, Slice>>& found, const std::vector<Pipeline>& pipelines,
                    uint32_t check, SharedBlocks& shared) {
  const auto is_ours = [&](const std::pair<Block, Slice>& piece) {
    return !piece.first.hole && pipelines[piece.first.pipeline].empty() && is_whole(piece);
  };
  bool known = found.size() > 1;  // the check of all pieces but the last
  uint32_t before = 0;
  for (size_t i = 0; i + 1 < found.size(); ++i) {
    auto& [block, slice] = found[i];
    if (block.hole || !is_whole(found[i])) {
      known = false;
      continue;
    }
    PACKTRAIN_ASSIGN(own, shared.of(block, pipelines[block.pipeline]));
    block.check_kind = CheckKind::crc32c;
    block.check = own;
    before = crc32c_join(before, own, slice.length);
  }
  auto& [block, slice] = found.back();
  if (known && is_ours(found.back())) {
    // The check of two stretches is that of the first, shifted by the length of the second, and that of the
    // second: known of both together and of the first, it is that of the second.
    block.check_kind = CheckKind::crc32c;
    block.check = check ^ crc32c_join(before, 0, slice.length);
    return {};
  }
  for (auto& [piece, part] : found) {
    if (piece.hole || piece.check_kind != CheckKind::none || pipelines[piece.pipeline].empty()) continue;
    PACKTRAIN_ASSIGN(own, shared.of(piece, pipelines[piece.pipeline]));
    piece.check_kind = CheckKind::crc32c;
    piece.check = own;
  }
  return {};
}

// One field as its container has it. Where its bytes lie in one piece that is nobody else's, the check is
// ours.
void add_found(std::string_view field, const std::vector<std::pair<Block, Slice>>& found,
               const std::vector<Pipeline>& pipelines, uint32_t check, std::string_view path, uint32_t number,
               SharedBlocks& shared, IndexBuilder& builder) {
  if (found.size() == 1) {
    const auto& [block, slice] = found.front();
    if (pipelines[block.pipeline].empty() && !block.hole) {
      builder.add_field(field, number, block.offset + slice.start, slice.length, CheckKind::crc32c, check,
                        path);
      return;
    }
  }
  std::vector<Slice> slices;
  for (const auto& [stored, slice] : found) {
    Block block = stored;
    block.shard = number;
    block.pipeline = builder.add_pipeline(pipelines[stored.pipeline]);
    if (found.size() == 1 && slice.start == 0 && slice.length == block.raw) {
      block.check_kind = CheckKind::crc32c;
      block.check = check;
    }
    const bool is_shared = !block.hole && (!is_whole({stored, slice}) || &slice != &found.back().second);
    slices.push_back(
        {is_shared ? shared.number_of(block, builder) : builder.add_block(block), slice.start, slice.length});
  }
  builder.add_field(field, slices, path);
}

// Where each field lies in a container whose writer decided: its own directory tells.
Status add_indexed(Storage& storage, const Plan& plan, const ShardPlan& shard, const Format& format,
                   const WrittenFields& written, const std::string& part, const ShardRows& rows,
                   uint32_t number, IndexBuilder& builder) {
  const Catalog& catalog = plan.catalog;
  PACKTRAIN_TRY(check_conversion(plan, shard, rows));
  IndexBuilder own;
  IndexOptions index_options;
  const std::vector<std::string> no_classes;
  index_options.classes = &no_classes;
  PACKTRAIN_TRY(format.index(storage, part + "/" + shard.name, index_options, own));
  PACKTRAIN_ASSIGN(dataset, Dataset::from_memory(storage, part, own.finish()));
  const std::vector<Pipeline>& pipelines = dataset->manifest().pipelines;
  std::vector<std::string> names = catalog.fields;
  for (std::string& name : names)
    if (!std::binary_search(written.names.begin(), written.names.end(), name)) name.clear();
  const std::vector<uint32_t> container_field = pair_fields(names, dataset->manifest());
  std::vector<std::pair<Block, Slice>> slices;
  SharedBlocks shared(storage, part + "/" + shard.name);
  size_t check = 0, row = 0;
  uint32_t split = shard.split;
  for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
    const uint64_t sample = plan.order[i];
    if (std::binary_search(rows.left_out.begin(), rows.left_out.end(), sample)) continue;
    if (row >= rows.widths.size()) return wrong_record(shard);
    uint64_t found = row;
    if (!format.keeps_order) {
      PACKTRAIN_ASSIGN(at, dataset->find(plan.key(sample)));
      found = at;
    }
    if (found >= dataset->samples()) return wrong_record(shard);
    if (catalog.samples[sample].split != split) {
      split = catalog.samples[sample].split;
      builder.begin_split(catalog.splits[split]);
    }
    builder.begin_sample(plan.key(sample));
    builder.set_label(catalog.samples[sample].label);
    if (rows.widths[row] != 0) builder.set_image_size(rows.widths[row], rows.heights[row]);
    ++row;
    for (const Cell& cell : SampleCells(catalog, sample)) {
      const std::string& field = catalog.fields[cell.field];
      if (!written.has(field)) continue;
      const uint32_t there = container_field[cell.field];
      if (there == UINT32_MAX || check >= rows.checks.size()) return wrong_record(shard);
      const FieldLocation at = dataset->locate(found, there);
      const uint64_t size = rows.sizes.empty() ? cell.size : rows.sizes[check];
      if (!at.present || at.length != size) return wrong_record(shard);
      PACKTRAIN_TRY(dataset->slices(found, there, slices));
      if (slices.size() > 1 || (slices.size() == 1 && !is_whole(slices.front())))
        PACKTRAIN_TRY(check_pieces(slices, pipelines, rows.checks[check], shared));
      add_found(field, slices, pipelines, rows.checks[check++], recorded_path(catalog, cell), number, shared,
                builder);
    }
    PACKTRAIN_TRY(builder.end_sample());
  }
  if (row != dataset->samples()) return wrong_record(shard);
  return {};
}

// Lists the second files of shards that are folders.
Status add_companions(Storage& storage, const std::string& part, const Format& format, Manifest& manifest) {
  if (format.companion.empty()) return {};
  for (const ShardSpec& shard : manifest.shards) {
    const std::string name = shard.path.substr(0, shard.path.rfind('/') + 1) + std::string(format.companion);
    const auto bytes = read_whole(storage, path_below(part, name));
    if (!bytes.ok() && bytes.status().code() == Code::not_found) continue;
    if (!bytes.ok()) return bytes.status();
    manifest.files.push_back({name, bytes->size(), xxh128_hex(as_bytes(*bytes))});
  }
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const FileSpec& a, const FileSpec& b) { return a.path < b.path; });
  return {};
}

void reserve_for(const Plan& plan, IndexBuilder& builder) {
  uint64_t key_bytes = 0, path_bytes = 0;
  for (const CatalogSample& sample : plan.catalog.samples) key_bytes += sample.stem.bytes;
  for (const Cell& cell : plan.catalog.cells) path_bytes += cell.path.bytes;
  builder.reserve(plan.catalog.samples.size(), plan.catalog.count_fields(), key_bytes, path_bytes);
}

Json source_facts(const Plan& plan, const std::vector<BadSample>& left_out, uint64_t samples_left_out) {
  Json facts = Json::object();
  // Paths of this machine stay out: the same source gives the same bytes wherever it is mounted.
  if (auto identity = Json::parse(plan.identity); identity.ok()) {
    for (const char* name : {"format", "order", "seed", "shards", "shard_bytes", "ranks", "compress"}) {
      facts.append(name, (*identity)[name]);
    }
    for (const char* name : {"image", "max_side", "baseline"})
      if (identity->has(name)) facts.append(name, (*identity)[name]);
  }
  if (plan.compress != "none") {
    Json fields = Json::array();
    for (const std::string& field : plan.compressed) fields.push(field);
    facts.append("compressed",
                 Json::object().append("codec", plan.compress).append("fields", std::move(fields)));
  }
  if (plan.renamed > 0) facts.append("renamed_keys", plan.renamed);
  if (samples_left_out > 0) {
    Json list = Json::array();
    for (const BadSample& bad : left_out) {
      Json item = Json::object().append("path", printable(bad.path)).append("what", bad.what);
      if (!bad.key.empty()) item.append("key", bad.key);
      list.push(std::move(item));
    }
    facts.append("left_out", std::move(list)).append("left_out_samples", samples_left_out);
  }
  return facts;
}

// Two files of one name would leave one of them, and a manifest that calls it damaged.
Status check_names(const Manifest& manifest) {
  std::set<std::string_view> names = {"manifest.json", "pack.log.json"};
  const auto take = [&](const std::string& path) {
    return names.insert(path).second
               ? Status()
               : Status(Code::invalid, "two files of the dataset would have the name " + printable(path) +
                                           "; choose other names for the splits, or fewer --sidecars");
  };
  for (const ShardSpec& shard : manifest.shards) PACKTRAIN_TRY(take(shard.path));
  for (const FileSpec& file : manifest.files) PACKTRAIN_TRY(take(file.path));
  return {};
}

// The path of a bad sample below its root, so that the manifest does not depend on where the root is.
std::string below_root(const Plan& plan, const std::string& path) {
  for (const CatalogRoot& root : plan.catalog.roots) {
    const std::string folder = root.folder.ends_with('/') ? root.folder : root.folder + "/";
    if (path.starts_with(folder)) return path.substr(folder.size());
  }
  return path;
}

}  // namespace

uint64_t inodes_of(const std::vector<std::string>& paths) {
  std::set<std::string_view> folders;
  for (const std::string& path : paths) {
    for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      folders.insert(std::string_view(path).substr(0, slash));
  }
  constexpr uint64_t kManifestLogAndFolder = 3;
  return paths.size() + folders.size() + kManifestLogAndFolder;
}

uint64_t inodes_of(const Manifest& manifest) {
  std::vector<std::string> paths;
  for (const ShardSpec& shard : manifest.shards) paths.push_back(shard.path);
  for (const FileSpec& file : manifest.files) paths.push_back(file.path);
  return inodes_of(paths);
}

std::vector<BadSample> bad_of_scan(const Catalog& catalog) {
  std::vector<BadSample> bad;
  for (const std::string& path : catalog.missing)
    bad.push_back({path, "is listed, but no file is there", ""});
  bad.insert(bad.end(), catalog.unreadable.begin(), catalog.unreadable.end());
  return bad;
}

Result<ShardRows> finished_shard(Storage& storage, const std::string& part, const ShardPlan& shard) {
  PACKTRAIN_ASSIGN(info, storage.stat(part + "/" + shard.name));
  PACKTRAIN_ASSIGN(text, read_whole(storage, part + "/" + rows_name(shard)));
  PACKTRAIN_ASSIGN(rows, decode_rows(as_bytes(text)));
  if (info.size != rows.bytes) return wrong_record(shard);
  return rows;
}

bool is_work_file(std::string_view name) {
  return name == "plan" || name == "planner" || name.ends_with(".rows") || name.find(".tmp-") != name.npos;
}

bool is_whole_part(Storage& storage, const std::string& part) {
  auto text = read_whole(storage, part + "/manifest.json");
  return text.ok() && Manifest::decode(*text).ok();
}

namespace {

// Removes what work has left in `folder` and does not belong to the dataset that it is.
Status remove_work(Storage& storage, const std::string& folder, const Manifest& manifest) {
  std::set<std::string> belongs = {"manifest.json", "pack.log.json"};
  for (const ShardSpec& shard : manifest.shards) belongs.insert(shard.path);
  for (const FileSpec& file : manifest.files) belongs.insert(file.path.substr(0, file.path.find('/')));
  std::vector<std::string> extra;
  const auto look_in = [&](const std::string& inner) {
    return storage.list(folder + "/" + inner, [&](FolderEntry&& entry) {
      std::string name = inner + entry.name;
      if (!belongs.contains(name) && is_work_file(entry.name)) extra.push_back(std::move(name));
      return true;
    });
  };
  PACKTRAIN_TRY(look_in(""));
  for (const ShardSpec& shard : manifest.shards) {  // some are folders, in which they were made
    if (const size_t slash = shard.path.rfind('/'); slash != shard.path.npos)
      PACKTRAIN_TRY(look_in(shard.path.substr(0, slash + 1)));
  }
  for (const std::string& name : extra) {
    if (Status status = remove_tree(storage, path_below(folder, name));
        !status.ok() && status.code() != Code::not_found)
      return status;
  }
  return {};
}

}  // namespace

Status publish_folder(Storage& storage, const std::string& part, const std::string& out) {
  PACKTRAIN_ASSIGN(text, read_whole(storage, part + "/manifest.json"));
  PACKTRAIN_ASSIGN(manifest, Manifest::decode(text));
  // What another process is adding to at this moment may resist; it is removed below.
  (void)remove_work(storage, part, manifest);
  PACKTRAIN_TRY(storage.sync_folder(part));
  PACKTRAIN_TRY(storage.rename(part, out));
  // From now on nobody finds the folder under its old name, and nothing more comes into it.
  PACKTRAIN_TRY(remove_work(storage, out, manifest));
  const size_t slash = out.rfind('/');
  return storage.sync_folder(slash == std::string::npos ? "." : slash == 0 ? "/" : out.substr(0, slash));
}

Status publish(Storage& storage, Plan& plan, const Format& format, const PublishRequest& request,
               PackReport& report) {
  const Layout* layout = plan.compress == "none" ? format.layout : nullptr;
  const WrittenFields written = layout ? WrittenFields() : written_fields(plan, format);
  IndexBuilder builder;
  reserve_for(plan, builder);
  Sidecars sidecars(request.sidecars);
  std::string source_hashes;
  std::vector<BadSample> left_out = bad_of_scan(plan.catalog);
  uint64_t samples_left_out = plan.catalog.missing_count + plan.catalog.unreadable_count;
  for (BadSample& bad : left_out) bad.path = below_root(plan, bad.path);
  report.bytes = 0;  // as planned until now
  for (const ShardPlan& shard : plan.shards) {
    PACKTRAIN_ASSIGN(rows, finished_shard(storage, request.part, shard));
    for (const BadSample& bad : rows.reasons)
      left_out.push_back({below_root(plan, bad.path), bad.what, bad.key});
    samples_left_out += rows.left_out.size();
    const uint32_t number =
        builder.add_shard({.path = shard.name, .format = std::string(format.name), .bytes = rows.bytes});
    builder.begin_split(plan.catalog.splits[shard.split]);
    const uint64_t before = builder.samples();
    SidecarShard& sidecar = sidecars.add_shard(shard.name, plan.catalog.splits[shard.split], rows.bytes);
    PACKTRAIN_TRY(
        layout ? add_planned(plan, shard, *layout, rows, number, builder, sidecar)
               : add_indexed(storage, plan, shard, format, written, request.part, rows, number, builder));
    source_hashes += rows.source_hashes;
    builder.set_block_checks(number, std::move(rows.block_checks));
    const uint64_t samples = builder.samples() - before;
    report.bytes += rows.bytes;
    report.smallest_shard_samples = number == 0 ? samples : std::min(report.smallest_shard_samples, samples);
    report.largest_shard_samples = std::max(report.largest_shard_samples, samples);
    report.smallest_shard_bytes =
        number == 0 ? rows.bytes : std::min(report.smallest_shard_bytes, rows.bytes);
    report.largest_shard_bytes = std::max(report.largest_shard_bytes, rows.bytes);
  }
  report.bad = left_out;
  report.bad_samples = samples_left_out;
  if (samples_left_out > request.skip_bad) {
    return Status(Code::corrupt,
                  counted(samples_left_out, "sample") + " would be left out, more than --skip-bad " +
                      std::to_string(request.skip_bad) + " allows; run the same command with --skip-bad " +
                      std::to_string(samples_left_out) + ", or mend them, remove " + printable(request.part) +
                      " and pack again");
  }
  std::vector<std::string> classes = plan.catalog.classes;
  for (std::string& name : classes) {
    if (!is_utf8(name)) name = printable(name);  // JSON holds no other bytes, and two names must stay two
  }
  builder.set_classes(std::move(classes));
  for (const auto& [field, array] : plan.catalog.arrays) builder.set_array(field, array);
  // All that the plan knows of samples is in the builder now; a large set need not be in memory twice.
  give_back(plan.catalog.samples);
  give_back(plan.catalog.cells);
  give_back(plan.catalog.names);
  give_back(plan.order);
  report.samples = builder.samples();
  // The plan is in memory too, and writing took a hundred times as long.
  IndexBuilder::Finished finished = builder.finish(/*side_by_side=*/false);
  finished.manifest.source_json = source_facts(plan, left_out, samples_left_out).dump();
  if (source_hashes.find_first_not_of('\0') != std::string::npos) {
    PACKTRAIN_ASSIGN(names, with_column(finished.names_npz, "source.hash", source_hashes));
    finished.names_npz = std::move(names);
    PACKTRAIN_ASSIGN(directory, npz_directory_hash(as_bytes(finished.names_npz)));
    finished.manifest.names_directory_hash = std::move(directory);
  }

  std::vector<std::pair<std::string, std::string>> files = sidecars.finish();
  files.emplace_back("index.npz", std::move(finished.index_npz));
  files.emplace_back("names.npz", std::move(finished.names_npz));
  std::sort(files.begin(), files.end());
  for (const auto& [name, bytes] : files)
    finished.manifest.files.push_back({name, bytes.size(), xxh128_hex(as_bytes(bytes))});
  PACKTRAIN_TRY(add_companions(storage, request.part, format, finished.manifest));
  const std::string manifest = finished.manifest.encode();
  files.emplace_back("pack.log.json", request.log_json);
  files.emplace_back("manifest.json", manifest);  // last: it makes the part whole
  PACKTRAIN_TRY(check_names(finished.manifest));
  report.inodes_after = inodes_of(finished.manifest);

  // Everything is written in a folder of our own within OUT.part and moved out of it whole. Should this
  // process be killed, whoever publishes removes that folder.
  const std::string own = request.part + "/publish.tmp-" + request.token;
  const auto write_all = [&]() -> Status {
    WriteOptions options;
    options.durable = request.durable;
    PACKTRAIN_TRY(storage.stat(request.part).status());  // making a folder would make this one again
    PACKTRAIN_TRY(storage.make_folder(own));
    for (const auto& [name, bytes] : files) {
      if (const size_t slash = name.rfind('/'); slash != name.npos) {
        PACKTRAIN_TRY(storage.make_folder(own + "/" + name.substr(0, slash)));
        PACKTRAIN_TRY(storage.stat(request.part).status());  // making a folder would make this one again
        PACKTRAIN_TRY(storage.make_folder(request.part + "/" + name.substr(0, slash)));
      }
      PACKTRAIN_TRY(write_whole(storage, path_below(own, name), as_bytes(bytes), options));
      PACKTRAIN_TRY(storage.rename(path_below(own, name), path_below(request.part, name)));
    }
    PACKTRAIN_TRY(remove_tree(storage, own));  // before the last step, so that nothing can be left behind it
    return publish_folder(storage, request.part, request.out);
  };
  Status status = write_all();
  if (status.ok()) return status;
  (void)remove_tree(storage, own);     // the failure itself is what matters
  (void)storage.remove(request.part);  // goes only if it is empty: made again by a lost race
  return status;
}

}  // namespace packtrain
