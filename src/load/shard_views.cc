#include "load/shard_views.h"

namespace packtrain {

const CachedView* ShardViews::of(const File& file) {
  const auto [at, is_new] = views_.try_emplace(&file);
  if (is_new && file.size() <= most_bytes_ - bytes_) {
    at->second = CachedView::of_whole(file);
    if (at->second) bytes_ += file.size();
  }
  return at->second.get();
}

}  // namespace packtrain
