// The entries of a zip that its index leaves out: files whose names make no sample of a WebDataset, such as
// README.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/index.h"

namespace packtrain {

struct ZipLeftover {
  std::string name;
  uint64_t sample = 0;  // of the dataset; its only field is 0
  uint64_t bytes = 0;
};

// A dataset in memory of just those entries; null if there are none. The archive's index was made before, so
// its structure is known to be sound. Costs a read of the directory, and one for each such entry.
Result<std::shared_ptr<Dataset>> open_zip_leftovers(Storage& storage, const std::string& path,
                                                    std::vector<ZipLeftover>& out);

}  // namespace packtrain
