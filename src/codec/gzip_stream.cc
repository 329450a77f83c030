// gzip (RFC 1952) as a stream, several members too, through zlib. The only file that includes it.
#include <zlib.h>

#include <algorithm>
#include <string>
#include <utility>

#include "codec/block_codecs.h"

namespace packtrain {
namespace {

constexpr size_t kInputBytes = size_t{128} << 10;
constexpr int kGzipOnly = 15 + 16;  // zlib's way to ask for the largest window and a gzip header

// zlib checks the CRC-32 and the length at each member's end. Zero bytes behind the last member are
// padding, as gzip itself takes them; anything else there is damage.
class GzipStream : public StreamDecoder {
 public:
  explicit GzipStream(ByteSource source) : source_(std::move(source)), input_(kInputBytes) {}
  ~GzipStream() override { inflateEnd(&zlib_); }

  bool start() { return inflateInit2(&zlib_, kGzipOnly) == Z_OK; }

  Result<size_t> read(MutableBytes into) override {
    size_t made = 0;
    while (made < into.size()) {
      if (zlib_.avail_in == 0) PACKTRAIN_TRY(refill());
      if (between_members_) {
        PACKTRAIN_TRY(skip_padding());
        if (source_ended_) break;
        if (zlib_.avail_in == 0) continue;
        inflateReset(&zlib_);
        between_members_ = false;
      }
      size_t room = std::min<size_t>(into.size() - made, size_t{1} << 30);
      zlib_.next_out = reinterpret_cast<Bytef*>(into.data() + made);
      zlib_.avail_out = static_cast<uInt>(room);
      int result = inflate(&zlib_, Z_NO_FLUSH);
      made += room - zlib_.avail_out;
      if (result == Z_STREAM_END) {
        between_members_ = true;
      } else if (result == Z_BUF_ERROR) {
        if (source_ended_) return Status(Code::corrupt, "gzip stream is cut short");
      } else if (result == Z_MEM_ERROR) {
        return Status(Code::no_room, "no memory for a gzip decoder");
      } else if (result != Z_OK) {
        return Status(Code::corrupt,
                      std::string("gzip data are damaged: ") + (zlib_.msg ? zlib_.msg : "unknown"));
      }
    }
    return made;
  }

 private:
  Status refill() {
    if (source_ended_) return {};
    PACKTRAIN_ASSIGN(got, source_(input_));
    source_ended_ = got == 0;
    zlib_.next_in = reinterpret_cast<Bytef*>(input_.data());
    zlib_.avail_in = static_cast<uInt>(got);
    return {};
  }

  Status skip_padding() {
    while (zlib_.avail_in > 0 && *zlib_.next_in == 0) {
      padding_seen_ = true;
      ++zlib_.next_in;
      --zlib_.avail_in;
    }
    if (zlib_.avail_in > 0 && padding_seen_) {
      return Status(Code::corrupt, "bytes that are no gzip member follow the padding of a gzip stream");
    }
    return {};
  }

  ByteSource source_;
  std::vector<std::byte> input_;
  z_stream zlib_{};
  bool source_ended_ = false, between_members_ = false, padding_seen_ = false;
};

}  // namespace

Result<std::unique_ptr<StreamDecoder>> make_gzip_stream(ByteSource source) {
  auto stream = std::make_unique<GzipStream>(std::move(source));
  if (!stream->start()) return Status(Code::no_room, "no memory for a gzip decoder");
  return std::unique_ptr<StreamDecoder>(std::move(stream));
}

}  // namespace packtrain
