#include "pack/verify_structure.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/give_back.h"
#include "base/words.h"
#include "pack/written_fields.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

// The bytes of a block without the checks that stand around them, which are taken out of the pipeline too. An
// index that was made before these were compared leads to the bytes alone, and is not wrong.
std::pair<uint64_t, uint64_t> without_checks(const Block& block, Pipeline& pipeline) {
  uint64_t front = 0, back = 0;
  const auto last_is = [&](std::string_view name) {
    return !pipeline.empty() && pipeline.back().name == name;
  };
  if (last_is(kStoredCheck)) pipeline.pop_back();
  for (; last_is("crc32c"); pipeline.pop_back()) {
    front += pipeline.back().parameter;
    back += 4;
  }
  if (last_is("zlib")) {
    front += 2;
    back += 4;
  } else if (last_is("gzip_member")) {
    front += 10;
    back += 8;
  }
  if (block.stored < front + back) return {block.offset, block.stored};
  return {block.offset + front, block.stored - front - back};
}

// One field as a list of stretches: equal lists are equal places.
Status stretches(const Dataset& dataset, uint64_t sample, uint32_t field,
                 std::vector<std::pair<uint64_t, uint64_t>>& out) {
  out.clear();
  const FieldLocation at = dataset.locate(sample, field);
  if (!at.present) return {};
  if (at.plain) {
    out.emplace_back(at.offset, at.length);
    return {};
  }
  std::vector<std::pair<Block, Slice>> slices;
  PACKTRAIN_TRY(dataset.slices(sample, field, slices));
  for (const auto& [block, slice] : slices) {
    Pipeline pipeline = dataset.manifest().pipelines[block.pipeline];
    const auto [offset, stored] = without_checks(block, pipeline);
    if (pipeline.empty()) {
      out.emplace_back(offset + slice.start, slice.length);
    } else {
      out.emplace_back(offset, stored);
      out.emplace_back(slice.start, slice.length);
    }
  }
  return {};
}

// The rows of one shard against a fresh index of it. One thread at a time.
class StructureCheck {
 public:
  StructureCheck(const Dataset& dataset, const Dataset& fresh, uint32_t shard, Findings& findings)
      : dataset_(dataset), fresh_(fresh), shard_(shard), findings_(findings) {
    std::vector<std::string> names;
    for (const FieldSpec& field : dataset.manifest().fields) names.push_back(field.name);
    fresh_field_ = pair_fields(names, fresh.manifest());
    known_field_.assign(fresh.manifest().fields.size(), UINT32_MAX);
    for (uint32_t field = 0; field < fresh_field_.size(); ++field)
      if (fresh_field_[field] != UINT32_MAX) known_field_[fresh_field_[field]] = field;
  }

  Status by_key(const std::vector<RowRange>& samples);
  Status by_order(const std::vector<RowRange>& samples);

 private:
  Status compare(uint64_t sample, uint64_t fresh_sample);
  void find(uint64_t sample, std::string field, uint64_t offset, std::string what) {
    const Result<std::string_view> key = dataset_.key(sample);
    findings_.add({shard_name(), key.ok() ? std::string(*key) : fmt::format("#{}", sample), std::move(field),
                   offset, std::move(what)},
                  sample);
  }
  const std::string& shard_name() const { return dataset_.manifest().shards[shard_].path; }
  uint64_t first_byte(uint64_t fresh_sample) const {
    uint64_t least = UINT64_MAX;
    for (uint32_t field = 0; field < known_field_.size(); ++field) {
      const FieldLocation at = fresh_.locate(fresh_sample, field);
      if (at.present && at.plain) least = std::min(least, at.offset);
    }
    return least == UINT64_MAX ? 0 : least;
  }

  const Dataset& dataset_;
  const Dataset& fresh_;
  const uint32_t shard_;
  Findings& findings_;
  std::vector<uint32_t> fresh_field_,
      known_field_;  // the other's number of a field, UINT32_MAX if it has none
  std::vector<std::pair<uint64_t, uint64_t>> expected_, found_;
};

Status StructureCheck::compare(uint64_t sample, uint64_t fresh_sample) {
  const Manifest& manifest = dataset_.manifest();
  for (uint32_t field = 0; field < fresh_field_.size(); ++field) {
    const FieldLocation row = dataset_.locate(sample, field);
    if (!row.present || (row.plain && row.shard != shard_)) continue;
    if (fresh_field_[field] == UINT32_MAX || !fresh_.locate(fresh_sample, fresh_field_[field]).present) {
      find(sample, manifest.fields[field].name, row.offset,
           "the index has this field, the container does not");
      continue;
    }
    PACKTRAIN_TRY(stretches(dataset_, sample, field, expected_));
    PACKTRAIN_TRY(stretches(fresh_, fresh_sample, fresh_field_[field], found_));
    if (expected_ != found_) {
      find(sample, manifest.fields[field].name, row.offset,
           fmt::format("the index has it at {} with {} bytes, the container at {} with {}",
                       expected_.front().first, row.length, found_.front().first,
                       fresh_.locate(fresh_sample, fresh_field_[field]).length));
    }
  }
  for (uint32_t field = 0; field < known_field_.size(); ++field) {
    const FieldLocation at = fresh_.locate(fresh_sample, field);
    if (!at.present) continue;
    if (known_field_[field] == UINT32_MAX || !dataset_.locate(sample, known_field_[field]).present) {
      find(sample, fresh_.manifest().fields[field].name, at.offset,
           "the container has this field, the index does not");
    }
  }
  // Class numbers of the whole set are not those of one container on its own.
  const int64_t label = fresh_.label(fresh_sample);
  if (label != kNoLabel && fresh_.manifest().classes.empty() && label != dataset_.label(sample)) {
    find(sample, "", first_byte(fresh_sample),
         dataset_.label(sample) == kNoLabel
             ? fmt::format("the container has label {}, the index has none", label)
             : fmt::format("the index has label {}, the container {}", dataset_.label(sample), label));
  }
  return {};
}

Status StructureCheck::by_key(const std::vector<RowRange>& samples) {
  uint64_t next = 0, matched = 0;
  for (const auto& [first, end] : samples) {
    for (uint64_t sample = first; sample < end; ++sample) {
      PACKTRAIN_ASSIGN(key, dataset_.key(sample));
      uint64_t fresh_sample = next;
      bool here = false;
      if (next < fresh_.samples()) {
        PACKTRAIN_ASSIGN(fresh_key, fresh_.key(next));
        here = fresh_key == key;
      }
      if (!here) {
        const Result<uint64_t> elsewhere = fresh_.find(key);
        if (!elsewhere.ok() && elsewhere.status().code() != Code::not_found) return elsewhere.status();
        if (!elsewhere.ok()) {
          find(sample, "", 0, "the index has this sample, the container does not");
          continue;
        }
        fresh_sample = *elsewhere;
      }
      next = fresh_sample + 1;
      ++matched;
      PACKTRAIN_TRY(compare(sample, fresh_sample));
    }
  }
  if (matched == fresh_.samples()) return {};
  for (uint64_t fresh_sample = 0; fresh_sample < fresh_.samples(); ++fresh_sample) {
    PACKTRAIN_ASSIGN(key, fresh_.key(fresh_sample));
    const Result<uint64_t> known = dataset_.find(key);
    if (!known.ok() && known.status().code() != Code::not_found) return known.status();
    const bool ours = known.ok() && std::any_of(samples.begin(), samples.end(), [&](const RowRange& range) {
                        return *known >= range.first && *known < range.second;
                      });
    if (!ours) {
      findings_.add({shard_name(), std::string(key), "", first_byte(fresh_sample),
                     "the container has this sample, the index does not"});
    }
  }
  return {};
}

Status StructureCheck::by_order(const std::vector<RowRange>& samples) {
  uint64_t next = 0;
  for (const auto& [first, end] : samples) {
    for (uint64_t sample = first; sample < end && next < fresh_.samples(); ++sample, ++next) {
      PACKTRAIN_TRY(compare(sample, next));
    }
  }
  uint64_t rows = 0;
  for (const auto& [first, end] : samples) rows += end - first;
  if (rows != fresh_.samples()) {
    findings_.add({shard_name(), "", "", 0,
                   fmt::format("the index has {} samples, the container {}", rows, fresh_.samples())});
  }
  return {};
}

Result<std::shared_ptr<Dataset>> index_again(Storage& storage, std::string_view format_name,
                                             const std::string& path, const IndexOptions& options) {
  const Format* format = find_format(format_name);
  if (format == nullptr) {
    return Status(Code::unsupported,
                  fmt::format("this build does not read containers of format {}", format_name));
  }
  IndexBuilder builder;
  PACKTRAIN_TRY(format->index(storage, path, options, builder));
  return Dataset::from_memory(storage, ".", builder.finish());
}

// What says nothing of the data.
bool is_of_system(Code code) { return code == Code::io || code == Code::limit; }

}  // namespace

Status check_structure(Storage& storage, const Dataset& dataset, uint32_t shard, const std::string& path,
                       const std::vector<RowRange>& samples, bool names_sound, Findings& findings) {
  const ShardSpec& spec = dataset.manifest().shards[shard];
  const Format* format = find_format(spec.format);
  // One file of a container that is a folder of many says nothing by itself.
  if (format && format->folder && format->inner_file.empty() && !format->recognise(storage, path)) return {};
  Result<std::shared_ptr<Dataset>> fresh = index_again(storage, spec.format, path, {});
  if (!fresh.ok()) {
    if (fresh.status().code() != Code::corrupt) return fresh.status().at(spec.path);
    findings.add(finding_of(spec.path, path, fresh.status()));
    return {};
  }
  StructureCheck check(dataset, **fresh, shard, findings);
  // A container that keeps order may keep no keys.
  if (!format->layout && format->keeps_order) return check.by_order(samples);
  return names_sound ? check.by_key(samples) : check.by_order(samples);
}

Status check_names(const Dataset& dataset, uint64_t first, uint64_t end, Findings& findings) {
  for (uint64_t sample = first; sample < end; ++sample) {
    const Result<std::string_view> key = dataset.key(sample);
    if (!key.ok()) {
      if (is_of_system(key.status().code())) return key.status();
      findings.add({"names.npz", fmt::format("#{}", sample), "", 0, key.status().text()}, sample);
      continue;
    }
    const Result<uint64_t> found = dataset.find(*key);
    if (found.ok() && *found == sample) continue;
    // Foreign containers, whose time is recorded, may use a key in every shard; packtrain's own keys are
    // unique.
    const uint32_t shard = dataset.shard_of(sample);
    const std::vector<ShardSpec>& shards = dataset.manifest().shards;
    const bool foreign = shard < shards.size() && shards[shard].mtime_ns != 0;
    if (found.ok() && foreign && dataset.key(*found).ok() && *dataset.key(*found) == *key) continue;
    if (is_of_system(found.status().code())) return found.status();
    findings.add({"names.npz", std::string(*key), "", 0,
                  found.ok() ? fmt::format("samples {} and {} have the same key", std::min(*found, sample),
                                           std::max(*found, sample))
                             : fmt::format("looking for the key of sample {} does not find it", sample)},
                 sample);
  }
  return {};
}

Status check_decoded(const Dataset& dataset, uint64_t first, uint64_t end, MemoryGate& gate,
                     Findings& findings) {
  std::vector<std::byte> bytes;
  std::vector<std::pair<Block, Slice>> slices;
  for (uint64_t sample = first; sample < end; ++sample) {
    for (uint32_t field = 0; field < dataset.manifest().fields.size(); ++field) {
      const FieldLocation at = dataset.locate(sample, field);
      if (!at.present || at.plain) continue;
      PACKTRAIN_ASSIGN(hold, gate.hold(at.length));
      Status read = dataset.read(sample, field, bytes, true);
      if (at.length >= MemoryGate::kSmall) give_back(bytes);
      if (read.ok()) continue;
      if (read.code() != Code::corrupt && read.code() != Code::not_found) return read;
      const Result<std::string_view> key = dataset.key(sample);
      slices.clear();
      const bool placed = dataset.slices(sample, field, slices).ok() && !slices.empty();
      const uint32_t shard = placed ? slices.front().first.shard : dataset.shard_of(sample);
      // Of a container that is another than was indexed, that is said once, and nothing of its samples.
      if (dataset.manifest().shards[shard].mtime_ns != 0 && !dataset.shard_file(shard).ok()) continue;
      findings.add(
          {dataset.manifest().shards[shard].path, key.ok() ? std::string(*key) : fmt::format("#{}", sample),
           dataset.manifest().fields[field].name, placed ? slices.front().first.offset : 0, read.message()},
          sample);
    }
  }
  return {};
}

std::string recoverable_in_words(Storage& storage, const std::string& name, const std::string& path,
                                 uint64_t samples_expected) {
  const Result<const Format*> format = recognise_format(storage, path);
  if (!format.ok()) return fmt::format("{}: nothing: {}", name, format.status().text());
  std::vector<Damage> damage;
  IndexOptions options;
  options.recover = true;
  options.damage = &damage;
  const Result<std::shared_ptr<Dataset>> walked = index_again(storage, (*format)->name, path, options);
  if (!walked.ok()) return fmt::format("{}: nothing: {}", name, walked.status().text());
  std::string words =
      fmt::format("{}: a walk to its end finds {}", name, count_in_words((*walked)->samples()));
  if (samples_expected > 0) words += " of " + count_in_words(samples_expected);
  words += " samples";
  constexpr size_t kNamed = 10;
  for (size_t i = 0; i < std::min(kNamed, damage.size()); ++i) {
    words += fmt::format("; {} bytes @ {}: {}", damage[i].bytes, damage[i].offset, damage[i].what);
  }
  if (damage.size() > kNamed) words += fmt::format("; and {} more gaps", damage.size() - kNamed);
  return words;
}

}  // namespace packtrain
