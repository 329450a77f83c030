// The table of codecs and the pipelines made of them.
#include "packtrain/codec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codec/block_codecs.h"
#include "codec/decode_up_to.h"

#ifndef PACKTRAIN_HAVE_BLOSC
#define PACKTRAIN_HAVE_BLOSC 0
#endif
#ifndef PACKTRAIN_HAVE_DEFLATE
#define PACKTRAIN_HAVE_DEFLATE 0
#endif
#ifndef PACKTRAIN_HAVE_ZSTD
#define PACKTRAIN_HAVE_ZSTD 0
#endif
#ifndef PACKTRAIN_HAVE_LZ4
#define PACKTRAIN_HAVE_LZ4 0
#endif
#ifndef PACKTRAIN_HAVE_ZLIB
#define PACKTRAIN_HAVE_ZLIB 0
#endif

namespace packtrain {
namespace {

struct Codec {
  CodecInfo info;
  // Null: the codec has no such form, or its library is absent.
  Result<size_t> (*decode)(Bytes stored, MutableBytes raw);
  Result<std::vector<std::byte>> (*encode)(Bytes raw, int level);
  Result<std::unique_ptr<StreamDecoder>> (*stream)(ByteSource source);
  // In place of encode and decode, where the step's parameter counts.
  Result<std::vector<std::byte>> (*encode_by)(Bytes raw, uint32_t parameter, int level) = nullptr;
  Result<size_t> (*decode_by)(Bytes stored, const CodecStep& step, MutableBytes raw) = nullptr;
};

constexpr std::string_view kOwnCode = "packtrain itself";

constexpr std::array kCodecs = {
#if PACKTRAIN_HAVE_DEFLATE
    Codec{{"deflate", true, "libdeflate", "libdeflate-dev"}, deflate_decode, deflate_encode, nullptr},
    Codec{{"zlib", true, "libdeflate", "libdeflate-dev"}, zlib_decode, zlib_encode, nullptr},
    Codec{{"gzip_member", true, "libdeflate", "libdeflate-dev"}, gzip_member_decode, nullptr, nullptr},
#else
    Codec{{"deflate", false, "libdeflate", "libdeflate-dev"}, nullptr, nullptr, nullptr},
    Codec{{"zlib", false, "libdeflate", "libdeflate-dev"}, nullptr, nullptr, nullptr},
    Codec{{"gzip_member", false, "libdeflate", "libdeflate-dev"}, nullptr, nullptr, nullptr},
#endif
#if PACKTRAIN_HAVE_ZSTD
    Codec{{"zstd", true, "libzstd", "libzstd-dev"}, zstd_decode, zstd_encode, make_zstd_stream},
#else
    Codec{{"zstd", false, "libzstd", "libzstd-dev"}, nullptr, nullptr, nullptr},
#endif
#if PACKTRAIN_HAVE_LZ4
    Codec{{"lz4", true, "liblz4", "liblz4-dev"}, lz4_decode, lz4_encode, nullptr},
    Codec{{"lz4_frame", true, "liblz4", "liblz4-dev"}, lz4_frame_decode, lz4_frame_encode, nullptr},
#else
    Codec{{"lz4", false, "liblz4", "liblz4-dev"}, nullptr, nullptr, nullptr},
    Codec{{"lz4_frame", false, "liblz4", "liblz4-dev"}, nullptr, nullptr, nullptr},
#endif
#if PACKTRAIN_HAVE_BLOSC
    Codec{{"blosc", true, "libblosc", "libblosc-dev"}, blosc_decode, nullptr, nullptr, blosc_encode},
#else
    Codec{{"blosc", false, "libblosc", "libblosc-dev"}, nullptr, nullptr, nullptr},
#endif
#if PACKTRAIN_HAVE_ZLIB
    Codec{{"gzip", true, "zlib", "zlib1g-dev"}, nullptr, nullptr, make_gzip_stream},
#else
    Codec{{"gzip", false, "zlib", "zlib1g-dev"}, nullptr, nullptr, nullptr},
#endif
    Codec{{"snappy", true, kOwnCode, ""}, snappy_decode, nullptr, nullptr},
    Codec{{"lzf", true, kOwnCode, ""}, lzf_decode, nullptr, nullptr},
    Codec{{"fletcher32", true, kOwnCode, ""}, fletcher32_decode, fletcher32_encode, nullptr},
    Codec{{"crc32c", true, kOwnCode, ""}, nullptr, nullptr, nullptr, nullptr, crc32c_decode},
    Codec{{kStoredCheck, true, kOwnCode, ""}, nullptr, nullptr, nullptr},
    Codec{{"shuffle", true, kOwnCode, ""}, nullptr, nullptr, nullptr, shuffle_encode, shuffle_decode},
    Codec{{"fill", true, kOwnCode, ""}, nullptr, nullptr, nullptr, nullptr, fill_decode},
};

Result<const Codec*> find_codec(std::string_view name) {
  for (const Codec& codec : kCodecs) {
    if (codec.info.name != name) continue;
    if (codec.info.compiled_in) return &codec;
    return Status(Code::unsupported, "codec " + std::string(name) + ": built without " +
                                         std::string(codec.info.library) + "; rebuild with " +
                                         std::string(codec.info.package));
  }
  return Status(Code::unsupported,
                "codec \"" + std::string(name) + "\" is unknown to this version of packtrain");
}

Result<const Codec*> find_block_codec(const CodecStep& step) {
  PACKTRAIN_ASSIGN(codec, find_codec(step.name));
  if (codec->decode == nullptr && codec->decode_by == nullptr) {
    return Status(Code::unsupported, "codec " + step.name + " decodes streams, not single blocks");
  }
  return codec;
}

// An upper bound for what any sensible encoder makes of `raw` bytes: incompressible data grow by a few
// bytes per 16 KiB at worst. It keeps the memory of a pipeline in proportion to its result.
size_t encoded_bound(size_t raw) { return raw + raw / 64 + 1024; }

}  // namespace

Status decode(const Pipeline& pipeline, Bytes stored, MutableBytes raw) {
  // bounds[i]: the room for what step i encoded, that is for what steps i and later decode to.
  std::vector<size_t> bounds(pipeline.size());
  for (size_t i = 1; i < pipeline.size(); ++i) {
    bounds[i] = encoded_bound(i == 1 ? raw.size() : bounds[i - 1]);
  }
  std::vector<std::byte> held, next;
  for (size_t i = pipeline.size() - (checks_stored(pipeline) ? 1 : 0); i-- > 0;) {
    PACKTRAIN_ASSIGN(codec, find_block_codec(pipeline[i]));
    if (i > 0) next.resize(bounds[i]);
    const MutableBytes into = i == 0 ? raw : MutableBytes(next);
    PACKTRAIN_ASSIGN(
        made, codec->decode_by ? codec->decode_by(stored, pipeline[i], into) : codec->decode(stored, into));
    if (i == 0) {
      if (made == raw.size()) return {};
      return Status(Code::corrupt, pipeline[i].name + " data decode to " + std::to_string(made) +
                                       " bytes where " + std::to_string(raw.size()) + " are recorded");
    }
    next.resize(made);
    held.swap(next);
    stored = held;
  }
  if (stored.size() != raw.size()) {
    return Status(Code::corrupt, std::to_string(stored.size()) + " bytes are stored where " +
                                     std::to_string(raw.size()) + " are recorded");
  }
  std::copy(stored.begin(), stored.end(), raw.begin());
  return {};
}

bool decoding_checks(const Pipeline& pipeline) {
  return std::any_of(pipeline.begin(), pipeline.end(), [](const CodecStep& step) {
    return step.name == "zlib" || step.name == "gzip_member" || step.name == "fletcher32" ||
           step.name == "crc32c";
  });
}

Result<size_t> decode_up_to(std::string_view codec, Bytes stored, MutableBytes raw) {
  const CodecStep step{std::string(codec)};
  PACKTRAIN_ASSIGN(found, find_block_codec(step));
  return found->decode_by ? found->decode_by(stored, step, raw) : found->decode(stored, raw);
}

Result<std::vector<std::byte>> encode(const Pipeline& pipeline, Bytes raw, int level) {
  std::vector<std::byte> held;
  bool encoded = false;
  for (const CodecStep& step : pipeline) {
    PACKTRAIN_ASSIGN(codec, find_block_codec(step));
    if (codec->encode == nullptr && codec->encode_by == nullptr)
      return Status(Code::unsupported, "codec " + step.name + " is only decoded");
    const Bytes from = encoded ? Bytes(held) : raw;
    PACKTRAIN_ASSIGN(
        made, codec->encode_by ? codec->encode_by(from, step.parameter, level) : codec->encode(from, level));
    held = std::move(made);
    encoded = true;
  }
  if (!encoded) held.assign(raw.begin(), raw.end());
  return held;
}

const std::vector<CodecInfo>& codecs() {
  static const std::vector<CodecInfo> all = [] {
    std::vector<CodecInfo> infos;
    infos.reserve(std::size(kCodecs));
    for (const Codec& codec : kCodecs) infos.push_back(codec.info);
    return infos;
  }();
  return all;
}

Result<std::unique_ptr<StreamDecoder>> make_stream_decoder(std::string_view codec, ByteSource source) {
  PACKTRAIN_ASSIGN(found, find_codec(codec));
  if (found->stream == nullptr) {
    return Status(Code::unsupported, "codec " + std::string(codec) + " decodes single blocks, not streams");
  }
  return found->stream(std::move(source));
}

}  // namespace packtrain
