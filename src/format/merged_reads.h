// Many small stretches of one file, wherever they lie: near ones together, many reads in flight.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

struct Stretch {
  uint64_t offset = 0, bytes = 0;
};

enum class EachCall : uint8_t {
  one_by_one,
  side_by_side,  // several threads may call at once, for different stretches
};

// Calls `each` once for every stretch, in the order in which they arrive; `position` is into `wanted`, the
// bytes are valid during the call. All stretches must lie within the file; they may overlap. Of several
// failures the one of the stretch that lies first in the file is told. Memory: 16 MiB, or 32 times the
// longest stretch if that is more.
Status read_merged(Storage& storage, const File& file, std::span<const Stretch> wanted,
                   const std::function<Status(size_t position, Bytes bytes)>& each,
                   EachCall calls = EachCall::one_by_one);

}  // namespace packtrain
