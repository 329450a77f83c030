// Decoding where the size of what comes is not recorded.
#pragma once

#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

// How many bytes one block decodes to; they are put into `raw`, and more than fit are Code::corrupt. A codec
// that is not compiled in is Code::unsupported. Thread-safe.
Result<size_t> decode_up_to(std::string_view codec, Bytes stored, MutableBytes raw);

}  // namespace packtrain
