// Which values a container compresses, and which stay as they are: one rule for all that write.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "packtrain/codec.h"
#include "packtrain/format.h"
#include "packtrain/status.h"

namespace packtrain {

// Ok for "none" and "auto" (which pack resolves; a writer takes it as "none") and for a codec of the list;
// otherwise Code::unsupported with what there is.
Status check_codec(std::string_view format, std::span<const std::string_view> codecs,
                   std::string_view compress);
// What WriteSpec::compress asks for; empty for none. Code::unsupported too if the codec is not compiled in,
// so that this is said before the first value comes.
Result<Pipeline> write_pipeline(std::string_view format, std::span<const std::string_view> codecs,
                                const WriteSpec& spec);
// Whether the spec's codec is for this field.
bool is_for_field(const WriteSpec& spec, std::string_view field);

// Whether the value's first bytes are those of content that is compressed already: JPEG, PNG, WebP, GIF,
// FLAC.
bool is_compressed_content(Bytes value);
// Whether storing `raw` bytes as `stored` ones saves at least 1/16. Less does not make up for the decoding,
// and for what a stored value has: one plain read that needs no memory but its own.
constexpr bool saves_enough(uint64_t stored, uint64_t raw) {
  return stored < raw && raw - stored >= (raw + 15) / 16;
}
// The value compressed, or nothing if it is to stay as it is. Looks at no content. Thread-safe.
Result<std::vector<std::byte>> encode_if_it_saves(const Pipeline& pipeline, Bytes raw);

}  // namespace packtrain
