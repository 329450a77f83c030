// Where a shard lies says who wrote it.
#pragma once

#include "packtrain/index.h"

namespace packtrain {

// Whether it is in the dataset's own folder, where packtrain wrote it. A container that was indexed in place
// lies elsewhere.
inline bool lies_inside(const ShardSpec& shard) {
  return !shard.path.starts_with('/') && !shard.path.starts_with("../");
}

}  // namespace packtrain
