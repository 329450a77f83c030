#include "pack/source_changes.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "base/words.h"

namespace packtrain {
namespace {

constexpr std::string_view kIsNew = " is new", kSaysOther = " has another label, text or size";

// Numbers and texts, each of known length, into one hash. One thread at a time.
class Fingerprint {
 public:
  void add(uint64_t number) {
    char bytes[sizeof number];
    for (size_t i = 0; i < sizeof number; ++i) bytes[i] = static_cast<char>(number >> (8 * i));
    pending_.append(bytes, sizeof bytes);
  }
  void add(std::string_view text) {
    add(uint64_t{text.size()});
    pending_ += text;
    if (pending_.size() >= kPendingBytes) pass_on();
  }
  std::string hex() {
    pass_on();
    return hash_.hex();
  }

 private:
  static constexpr size_t kPendingBytes = 1 << 16;
  void pass_on() {
    hash_.add(as_bytes(pending_));
    pending_.clear();
  }

  Xxh128 hash_;
  std::string pending_;
};

// What a container's shard is known by, as the plan has it.
PieceFile shard_facts(const Dataset& dataset, uint32_t shard) {
  const ShardSpec& spec = dataset.manifest().shards[shard];
  return {dataset.shard_path(shard), spec.bytes, spec.hash.empty() ? spec.mtime_ns : 0};
}

// Whether sample `i` of one and `j` of the other have the same key, label, split and made text.
bool same_but_for_files(const Catalog& a, size_t i, const Catalog& b, size_t j) {
  const CatalogSample &x = a.samples[i], &y = b.samples[j];
  if (a.name(x.stem) != b.name(y.stem) || x.label != y.label || a.splits[x.split] != b.splits[y.split])
    return false;
  const SampleCells these(a, i), those(b, j);
  if (these.size() != those.size()) return false;
  for (auto p = these.begin(), q = those.begin(); p != these.end(); ++p, ++q) {
    if (p->origin != q->origin || p->size != q->size || a.fields[p->field] != b.fields[q->field])
      return false;
    if (p->origin == Origin::text && a.texts.compare(p->where, p->size, b.texts, q->where, q->size) != 0)
      return false;
  }
  return true;
}

// Names differences one kind after the other, until there are enough of them.
class Differences {
 public:
  Differences(const Plan& planned, const Catalog& now, const std::vector<uint64_t>& left_out, size_t limit)
      : plan_(planned), then_(planned.catalog), now_(now), left_out_(left_out), limit_(limit) {}

  SourceChanges find() {
    compare_files();
    const size_t of_files = touched_paths_.size();
    compare_containers();
    if (found_.empty()) compare_samples();
    if (found_.empty() && left_out_.empty()) add("what is listed", kSaysOther);
    std::sort(found_.begin(), found_.end());
    const bool only_touched = found_.size() == of_files && of_files < limit_;
    return {std::move(found_), touched_samples(), only_touched};
  }

 private:
  struct Known {
    const Cell* cell;
    bool left_out;  // and so are all samples that are made of it
    bool seen = false;
  };

  void add(std::string_view name, std::string_view what) {
    if (found_.size() < limit_) found_.push_back(printable(name) + std::string(what));
  }
  void add_file(std::string_view path, std::string_view what) {
    if (found_.size() < limit_) touched_paths_.insert(path);
    add(path, what);
  }
  // A list may name a file more than once.
  std::vector<uint64_t> touched_samples() const {
    std::vector<uint64_t> touched;
    if (touched_paths_.empty()) return touched;
    for (size_t sample = 0; sample < then_.samples.size(); ++sample) {
      for (uint64_t c = then_.samples[sample].first_cell; c < then_.end_cell(sample); ++c) {
        const Cell& cell = then_.cells[c];
        if (cell.origin != Origin::file || !touched_paths_.contains(then_.name(cell.path))) continue;
        touched.push_back(sample);
        break;
      }
    }
    return touched;
  }
  bool is_left_out(uint64_t sample) const {
    return std::binary_search(left_out_.begin(), left_out_.end(), sample);
  }

  // By path, since one file more shifts all that follow.
  void compare_files() {
    std::unordered_map<std::string_view, Known> before;
    for (size_t sample = 0; sample < then_.samples.size(); ++sample) {
      for (uint64_t c = then_.samples[sample].first_cell; c < then_.end_cell(sample); ++c) {
        if (then_.cells[c].origin != Origin::file) continue;
        const Known known{&then_.cells[c], is_left_out(sample)};
        const auto [at, is_new] = before.emplace(then_.name(known.cell->path), known);
        if (!is_new) at->second.left_out = at->second.left_out && known.left_out;
      }
    }
    for (const Cell& cell : now_.cells) {
      if (cell.origin != Origin::file || found_.size() >= limit_) continue;
      const auto at = before.find(now_.name(cell.path));
      if (at == before.end()) {
        add(now_.name(cell.path), kIsNew);
        continue;
      }
      Known& known = at->second;
      if (!known.seen && !known.left_out &&
          (known.cell->size != cell.size || known.cell->mtime_ns() != cell.mtime_ns()))
        add_file(at->first, " has changed");
      known.seen = true;
    }
    for (const auto& [path, known] : before)
      if (!known.seen && !known.left_out) add_file(path, " is gone");
  }

  void compare_containers() {
    std::vector<PieceFile> files;
    for (const auto& container : now_.containers)
      for (uint32_t i = 0; i < container->manifest().shards.size(); ++i)
        files.push_back(shard_facts(*container, i));
    compare(plan_.piece_files, files);
    compare(then_.streams, now_.streams);
  }
  void compare(const std::vector<PieceFile>& before, const std::vector<PieceFile>& after) {
    for (size_t i = 0; i < before.size(); ++i) {
      if (i >= after.size() || before[i].path != after[i].path) {
        add(before[i].path, " is no longer among the sources");
      } else if (before[i].bytes != after[i].bytes || before[i].mtime_ns != after[i].mtime_ns) {
        add(before[i].path, " has changed");
      }
    }
    for (size_t i = before.size(); i < after.size(); ++i) add(after[i].path, kIsNew);
  }

  // The same files, but a list may say something else of them now.
  void compare_samples() {
    std::unordered_set<std::string_view> keys_left_out;
    for (const uint64_t sample : left_out_) keys_left_out.insert(then_.name(then_.samples[sample].stem));
    const auto skip = [&](const Catalog& catalog, size_t& i) {
      while (i < catalog.samples.size() && keys_left_out.contains(catalog.name(catalog.samples[i].stem))) ++i;
      return i < catalog.samples.size();
    };
    for (size_t i = 0, j = 0;; ++i, ++j) {
      const bool more_then = skip(then_, i), more_now = skip(now_, j);
      if (!more_then && !more_now) return;
      if (!more_now) return add(then_.name(then_.samples[i].stem), " is gone");
      if (!more_then || !same_but_for_files(then_, i, now_, j))
        return add(now_.name(now_.samples[j].stem), kSaysOther);
    }
  }

  const Plan& plan_;
  const Catalog& then_;
  const Catalog& now_;
  const std::vector<uint64_t>& left_out_;
  const size_t limit_;
  std::unordered_set<std::string_view> touched_paths_;
  std::vector<std::string> found_;
};

}  // namespace

std::string source_fingerprint(const Catalog& catalog) {
  Fingerprint print;
  for (size_t sample = 0; sample < catalog.samples.size(); ++sample) {
    const CatalogSample& of = catalog.samples[sample];
    print.add(catalog.name(of.stem));
    print.add(static_cast<uint64_t>(of.label));
    print.add(catalog.splits[of.split]);
    for (const Cell& cell : SampleCells(catalog, sample)) {
      print.add(catalog.fields[cell.field]);
      print.add(static_cast<uint64_t>(cell.origin));
      print.add(cell.size);
      print.add(static_cast<uint64_t>(cell.mtime_ns()));
      print.add(cell.origin == Origin::text ? std::string_view(catalog.texts).substr(cell.where, cell.size)
                                            : catalog.name(cell.path));
    }
  }
  const auto add_file = [&](const PieceFile& file) {
    print.add(file.path);
    print.add(file.bytes);
    print.add(static_cast<uint64_t>(file.mtime_ns));
  };
  for (const auto& container : catalog.containers)
    for (uint32_t i = 0; i < container->manifest().shards.size(); ++i) add_file(shard_facts(*container, i));
  for (const PieceFile& file : catalog.streams) add_file(file);
  for (const std::string& name : catalog.classes) print.add(name);
  return print.hex();
}

SourceChanges differences(const Plan& planned, Catalog& now, const std::vector<uint64_t>& left_out,
                          size_t limit) {
  if (source_fingerprint(now) == planned.fingerprint) return {};
  make_keys(now);  // as in the plan
  return Differences(planned, now, left_out, limit).find();
}

}  // namespace packtrain
