// What kind of bytes a field holds, told by content and never by name.
#pragma once

#include <cstdint>
#include <string_view>

#include "packtrain/status.h"

namespace packtrain {

enum class MediaKind : uint8_t { unknown, jpeg, png, gif, webp, bmp, pnm, wav, flac, npy, json, text };
std::string_view media_kind_name(MediaKind kind);

// What the first bytes say; `unknown` if they say nothing. Looks at no more than 64 KiB.
MediaKind media_kind(Bytes head);

}  // namespace packtrain
