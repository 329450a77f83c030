// Names: keys that every reader of tar shards takes, and paths that are safe to extract.
#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "pack/catalog.h"
#include "pack/stems.h"

namespace packtrain {
namespace {

constexpr size_t kMostNameBytes = 100;  // of a tar header: key, dot, field
constexpr size_t kHashBytes = 1 + 16;   // "-" and hex digits
constexpr size_t kLeastKeyBytes = 1 + kHashBytes;

bool fits_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

std::string_view prefix_of(const Catalog& catalog, const Cell& cell) {
  switch (cell.origin) {
    case Origin::file:
      return catalog.roots[cell.source].prefix;
    case Origin::container:
      return cell.source < catalog.container_prefixes.size() ? catalog.container_prefixes[cell.source]
                                                             : std::string_view();
    case Origin::stream:
      return cell.source < catalog.stream_prefixes.size() ? catalog.stream_prefixes[cell.source]
                                                          : std::string_view();
    case Origin::text:
    case Origin::label:
      break;
  }
  return {};
}

// The key a sample would have if there were no others and names might be of any length. webdataset passes
// over members below "__name__", Hugging Face over names that begin with "__" or ".": no part begins so.
void make_safe(std::string_view original, std::string& out) {
  out.clear();
  for (size_t at = 0; at <= original.size();) {
    const size_t end = std::min(original.find('/', at), original.size());
    std::string_view part = original.substr(at, end - at);
    at = end + 1;
    if (part.empty()) continue;
    if (!out.empty()) out += '/';
    const size_t begin = out.size();
    for (const char c : part) {
      const char safe = fits_key(c) && (c != '-' || out.size() > begin) ? c : '_';
      if (safe == '_' && out.size() == begin + 1 && out.back() == '_') continue;
      out += safe;
    }
  }
  if (out.empty()) out = "_";
}

// A key of at most `limit` bytes that ends in a hash.
void add_hash(std::string_view original, uint64_t attempt, size_t limit, std::string& key) {
  key.resize(std::min(key.size(), limit - kHashBytes));
  while (key.ends_with('/')) key.pop_back();
  if (key.empty()) key = "_";
  key += '-';
  key += hex64(xxh64(as_bytes(original), attempt));
}

// The keys given out so far, each to one sample. Open addressing over the keys themselves: 8 to 16 bytes a
// key.
class KeyTable {
 public:
  explicit KeyTable(Catalog& catalog)
      : catalog_(catalog),
        keys_(catalog.samples.size()),
        slots_(std::bit_ceil(keys_.size() * 2 + 2), kFree),
        mask_(slots_.size() - 1) {}

  // False if another sample has this key already.
  bool give(size_t sample, std::string_view key) {
    size_t slot = xxh64(as_bytes(key)) & mask_;
    for (; slots_[slot] != kFree; slot = (slot + 1) & mask_) {
      if (catalog_.name(keys_[slots_[slot]]) == key) return false;
    }
    slots_[slot] = static_cast<uint32_t>(sample);
    const NameRef stem = catalog_.samples[sample].stem;
    keys_[sample] = key == catalog_.name(stem) ? stem : catalog_.keep(key);
    return true;
  }
  bool has_key(size_t sample) const { return keys_[sample].bytes != 0; }
  // Gives the samples their keys in place of their stems; how many differ.
  uint64_t settle() {
    uint64_t renamed = 0;
    for (size_t i = 0; i < keys_.size(); ++i) {
      NameRef& stem = catalog_.samples[i].stem;
      renamed += keys_[i].at != stem.at || keys_[i].bytes != stem.bytes;
      stem = keys_[i];
    }
    return renamed;
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  Catalog& catalog_;
  BigVector<NameRef> keys_;
  BigVector<uint32_t> slots_;
  const size_t mask_;
};

}  // namespace

uint64_t make_keys(Catalog& catalog) {
  const size_t samples = catalog.samples.size();
  KeyTable table(catalog);
  std::string original, safe, key;
  const auto set_original = [&](size_t i) {
    const CatalogSample& sample = catalog.samples[i];
    original.clear();
    for (uint64_t c = sample.first_cell; c < catalog.end_cell(i) && original.empty(); ++c)
      original = prefix_of(catalog, catalog.cells[c]);
    if (!original.empty()) original += '/';
    original += catalog.name(sample.stem);
    make_safe(original, safe);
  };
  const auto limit_of = [&](size_t i) {
    size_t longest = 0;
    for (const Cell& cell : SampleCells(catalog, i))
      longest = std::max(longest, catalog.fields[cell.field].size());
    return std::max(kLeastKeyBytes, kMostNameBytes - std::min(kMostNameBytes, longest + 1));
  };

  // Names that need no change come first, whatever their place: nobody else may take their key.
  for (size_t i = 0; i < samples; ++i) {
    set_original(i);
    if (safe == original && safe.size() <= limit_of(i)) (void)table.give(i, safe);
  }
  for (size_t i = 0; i < samples; ++i) {
    if (table.has_key(i)) continue;
    set_original(i);
    const size_t limit = limit_of(i);
    if (safe.size() <= limit && table.give(i, safe)) continue;
    // Ends: every attempt is another hash, and only so many keys are taken.
    for (uint64_t attempt = 0;; ++attempt) {
      key = safe;
      add_hash(original, attempt, limit, key);
      if (table.give(i, key)) break;
    }
  }
  return table.settle();
}

std::string recorded_path(const Catalog& catalog, const Cell& cell) {
  const std::string_view path = catalog.name(cell.path);
  if (cell.origin == Origin::text || path.empty()) return {};
  std::string out(prefix_of(catalog, cell));
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (!out.empty()) out += '/';
    out += part == ".." ? "_parent" : part;
  }
  std::replace(out.begin(), out.end(), '\0', '_');
  if (cell.converted) {
    const std::string& field = catalog.fields[cell.field];
    const size_t name = out.rfind('/') + 1;
    const NameParts parts = split_name(std::string_view(out).substr(name));
    if (field_name(parts.extension) != field) {
      out.resize(name + parts.stem_bytes);
      out.append(1, '.').append(field);
    }
  }
  return out.empty() ? "_" : out;
}

}  // namespace packtrain
