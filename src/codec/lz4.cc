// LZ4 in its two forms: bare blocks, which know neither their length nor a checksum, and frames, which know
// both. Through liblz4. The only file that includes it.
#include <lz4.h>
#include <lz4frame.h>
#include <lz4hc.h>

#include <limits>
#include <string>

#include "codec/block_codecs.h"

namespace packtrain {
namespace {

struct FreeContext {
  void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
};
using Context = std::unique_ptr<LZ4F_dctx, FreeContext>;

Context make_context() {
  LZ4F_dctx* made = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION))) return nullptr;
  return Context(made);
}

constexpr size_t kLongestBlock = LZ4_MAX_INPUT_SIZE;  // liblz4 counts blocks in ints

Status check_level(int level) {
  if (level >= 0 && level <= LZ4HC_CLEVEL_MAX) return {};
  return Status(Code::invalid, "lz4 level " + std::to_string(level) + " is not within 0 to " +
                                   std::to_string(LZ4HC_CLEVEL_MAX));
}

}  // namespace

Result<size_t> lz4_decode(Bytes stored, MutableBytes raw) {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  if (stored.size() > kMost || raw.size() > kMost)
    return Status(Code::unsupported, "lz4 blocks of more than 2 GiB cannot be decoded");
  std::byte nothing{};  // liblz4 wants an address even where there is no room
  int made = LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()),
                                 reinterpret_cast<char*>(raw.empty() ? &nothing : raw.data()),
                                 static_cast<int>(stored.size()), static_cast<int>(raw.size()));
  if (made < 0) return Status(Code::corrupt, "lz4 data are damaged, or decode to more bytes than recorded");
  return static_cast<size_t>(made);
}

Result<std::vector<std::byte>> lz4_encode(Bytes raw, int level) {
  PACKTRAIN_TRY(check_level(level));
  if (raw.size() > kLongestBlock)
    return Status(Code::unsupported,
                  "an lz4 block holds at most " + std::to_string(kLongestBlock) + " bytes");
  auto bytes = static_cast<int>(raw.size());
  std::vector<std::byte> stored(static_cast<size_t>(LZ4_compressBound(bytes)));
  const auto* from = reinterpret_cast<const char*>(raw.data());
  auto* to = reinterpret_cast<char*>(stored.data());
  auto room = static_cast<int>(stored.size());
  int made = level < LZ4HC_CLEVEL_MIN ? LZ4_compress_default(from, to, bytes, room)
                                      : LZ4_compress_HC(from, to, bytes, room, level);
  if (made <= 0) return Status(Code::no_room, "no memory for an lz4 encoder");
  stored.resize(static_cast<size_t>(made));
  return stored;
}

Result<size_t> lz4_frame_decode(Bytes stored, MutableBytes raw) {
  thread_local Context context = make_context();
  if (context == nullptr) return Status(Code::no_room, "no memory for an lz4 decoder");
  LZ4F_resetDecompressionContext(context.get());
  LZ4F_decompressOptions_t options{};
  options.stableDst = 1;  // what is decoded stays in place while the frame lasts
  size_t taken = 0, made = 0;
  while (taken < stored.size()) {
    size_t in = stored.size() - taken, out = raw.size() - made;
    std::byte nothing{};
    size_t left = LZ4F_decompress(context.get(), out == 0 ? &nothing : raw.data() + made, &out,
                                  stored.data() + taken, &in, &options);
    if (LZ4F_isError(left))
      return Status(Code::corrupt, std::string("lz4 data are damaged: ") + LZ4F_getErrorName(left));
    taken += in;
    made += out;
    if (left == 0) {  // the frame is at its end
      if (taken == stored.size()) return made;
      return Status(Code::corrupt, "bytes follow the end of the lz4 frame");
    }
    if (in == 0 && out == 0) break;  // no room for what comes
  }
  return Status(Code::corrupt, "lz4 data are cut short, or decode to more bytes than recorded");
}

Result<std::vector<std::byte>> lz4_frame_encode(Bytes raw, int level) {
  PACKTRAIN_TRY(check_level(level));
  LZ4F_preferences_t preferences{};
  preferences.compressionLevel = level;
  preferences.frameInfo.contentSize = raw.size();
  std::vector<std::byte> stored(LZ4F_compressFrameBound(raw.size(), &preferences));
  size_t made = LZ4F_compressFrame(stored.data(), stored.size(), raw.data(), raw.size(), &preferences);
  if (LZ4F_isError(made)) return Status(Code::no_room, std::string("lz4: ") + LZ4F_getErrorName(made));
  stored.resize(made);
  return stored;
}

}  // namespace packtrain
