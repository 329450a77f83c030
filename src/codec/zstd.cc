// Zstandard, in blocks and as a stream, through libzstd. The only file that includes it.
#include <zstd.h>
#include <zstd_errors.h>

#include <string>
#include <utility>

#include "codec/block_codecs.h"

namespace packtrain {
namespace {

struct FreeZstdContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using ZstdContext = std::unique_ptr<ZSTD_DCtx, FreeZstdContext>;

Status status_of(size_t code) {
  switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
      return Status(Code::no_room, "no memory for a zstd decoder");
    case ZSTD_error_frameParameter_windowTooLarge:
      return Status(Code::unsupported,
                    "zstd data need a window of more than 128 MiB; compress them again without --long");
    case ZSTD_error_dictionary_wrong:
      return Status(Code::unsupported, "zstd data need a dictionary; compress them again without one");
    case ZSTD_error_dstSize_tooSmall:
      return Status(Code::corrupt, "zstd data decode to more bytes than recorded");
    default:
      return Status(Code::corrupt, std::string("zstd data are damaged: ") + ZSTD_getErrorName(code));
  }
}

// Frames one after the other. Memory: the input buffer and the frame's window, at most 128 MiB.
class ZstdStream : public StreamDecoder {
 public:
  ZstdStream(ByteSource source, ZstdContext context)
      : source_(std::move(source)), context_(std::move(context)), input_(ZSTD_DStreamInSize()) {}

  Result<size_t> read(MutableBytes into) override {
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    while (out.pos < out.size) {
      if (in_.pos == in_.size && !source_ended_) {
        PACKTRAIN_ASSIGN(got, source_(input_));
        source_ended_ = got == 0;
        in_ = {input_.data(), got, 0};
      }
      if (source_ended_) {
        if (!between_frames_) return Status(Code::corrupt, "zstd stream is cut short");
        break;
      }
      size_t left = ZSTD_decompressStream(context_.get(), &out, &in_);
      if (ZSTD_isError(left)) return status_of(left);
      between_frames_ = left == 0;
    }
    return out.pos;
  }

 private:
  ByteSource source_;
  ZstdContext context_;
  std::vector<std::byte> input_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool source_ended_ = false;
  bool between_frames_ = false;  // a stream without a single frame counts as cut short
};

}  // namespace

Result<size_t> zstd_decode(Bytes stored, MutableBytes raw) {
  thread_local ZstdContext context(ZSTD_createDCtx());
  if (context == nullptr) return Status(Code::no_room, "no memory for a zstd decoder");
  size_t made = ZSTD_decompressDCtx(context.get(), raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(made)) return status_of(made);
  return made;
}

Result<std::vector<std::byte>> zstd_encode(Bytes raw, int level) {
  if (level < 0 || level > ZSTD_maxCLevel()) {
    return Status(Code::invalid, "zstd level " + std::to_string(level) + " is not within 0 to " +
                                     std::to_string(ZSTD_maxCLevel()));
  }
  std::vector<std::byte> stored(ZSTD_compressBound(raw.size()));
  size_t made = ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(),
                              level == 0 ? ZSTD_CLEVEL_DEFAULT : level);
  if (ZSTD_isError(made)) return Status(Code::no_room, std::string("zstd: ") + ZSTD_getErrorName(made));
  stored.resize(made);
  return stored;
}

Result<std::unique_ptr<StreamDecoder>> make_zstd_stream(ByteSource source) {
  ZstdContext context(ZSTD_createDCtx());
  if (context == nullptr) return Status(Code::no_room, "no memory for a zstd decoder");
  return std::unique_ptr<StreamDecoder>(new ZstdStream(std::move(source), std::move(context)));
}

}  // namespace packtrain
