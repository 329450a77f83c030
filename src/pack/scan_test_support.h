// What the tests of sources share: a scan in one line, and a catalog as text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io/test_storage.h"
#include "pack/catalog.h"

namespace packtrain {

inline ScanOptions scan_options(std::vector<SourceSpec> sources) {
  ScanOptions options;
  options.sources = std::move(sources);
  return options;
}

inline Catalog scan_ok(Storage& storage, const ScanOptions& options) {
  auto catalog = scan(storage, options);
  EXPECT_TRUE(catalog.ok()) << catalog.status().text();
  return catalog.ok() ? std::move(*catalog) : Catalog();
}
inline Catalog scan_ok(Storage& storage, const std::string& path) {
  return scan_ok(storage, scan_options({{"", path}}));
}

// A sample as "split/label stem: field=what …"; what is the path of a file or member, or the text itself.
inline std::vector<std::string> described(const Catalog& catalog) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < catalog.samples.size(); ++i) {
    const CatalogSample& sample = catalog.samples[i];
    std::string line = catalog.splits[sample.split] + "/";
    line += sample.label == kNoLabel ? "-" : std::to_string(sample.label);
    line += " " + std::string(catalog.name(sample.stem)) + ":";
    for (const Cell& cell : SampleCells(catalog, i)) {
      line += " " + catalog.fields[cell.field] + "=";
      if (cell.origin == Origin::text) {
        line += "'" + catalog.texts.substr(cell.where, cell.size) + "'";
      } else if (cell.origin == Origin::label) {
        line += "'" + label_text(static_cast<int64_t>(cell.where)) + "'";
      } else {
        line += std::string(catalog.name(cell.path));
      }
    }
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

inline Lines key_names(Catalog catalog) {
  Lines names;
  make_keys(catalog);
  for (const CatalogSample& sample : catalog.samples) names.emplace_back(catalog.name(sample.stem));
  return names;
}

}  // namespace packtrain
