// Data go out as they come, raw or compressed block by block; inodes and listings follow once every path is
// known. No fragments: every file keeps to itself. Metadata are stored as they are, so that each place in
// them is known without a second pass, and nothing depends on a clock: the same samples give the same bytes.
#include "format/squashfs_write.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/little_endian.h"
#include "base/words.h"
#include "format/appender.h"
#include "format/compress_value.h"
#include "format/squashfs_meta.h"
#include "format/squashfs_tree.h"
#include "packtrain/codec.h"

namespace packtrain {
namespace {

constexpr uint32_t kDefaultBlock = 128 << 10;
constexpr uint64_t kImageUnit = 4096;  // images are mounted through devices of whole pages
constexpr uint32_t kAdlerModulus = 65521;

// Of a zlib stream.
uint32_t adler32(Bytes data) {
  uint32_t a = 1, b = 0;
  while (!data.empty()) {
    const Bytes some = data.first(std::min<size_t>(data.size(), 5552));  // no sum overflows before that
    for (const std::byte byte : some) {
      a += static_cast<uint32_t>(byte);
      b += a;
    }
    a %= kAdlerModulus;
    b %= kAdlerModulus;
    data = data.subspan(some.size());
  }
  return b << 16 | a;
}

// One thread at a time. Memory: see SquashTree.
class SquashWriter : public ContainerWriter {
 public:
  SquashWriter(std::unique_ptr<Writer> writer, const WriteSpec& spec, SquashCodec codec, Pipeline pipeline,
               uint32_t block_bytes, std::string path)
      : file_(std::move(writer), spec.expected_bytes, kSquashSuperBytes),
        spec_(spec),
        codec_(codec),
        pipeline_(std::move(pipeline)),
        block_bytes_(block_bytes),
        path_(std::move(path)),
        tree_(block_bytes) {}

  Status add(const SampleToWrite& sample) override {
    for (const SampleToWrite::Field& field : sample.fields) {
      name_.assign(sample.key).append(".").append(field.name);
      Status status = add_file(field.bytes, is_for_field(spec_, field.name));
      if (!status.ok()) return status.at(printable(name_)).at(path_);
    }
    return {};
  }

  Status finish() override {
    if (Status status = tree_.finish(); !status.ok()) return status.at(path_);
    SquashStream owners;
    store_le(owners.add(sizeof(uint32_t)), uint32_t{0});  // root
    SquashSuper super{.inodes = tree_.inode_count(),
                      .block_bytes = block_bytes_,
                      .codec = static_cast<uint16_t>(codec_),
                      .flags = kSquashRawInodes | kSquashRawFragments | kSquashNoFragments | kSquashNoXattrs |
                               kSquashRawOwners,
                      .root = tree_.root()};
    if (pipeline_.empty()) super.flags |= kSquashRawData;
    // The padding lies in front of the tables, and not behind them: an image that is cut short shows it.
    const uint64_t tables =
        tree_.inodes().disk_bytes() + tree_.listings().disk_bytes() + owners.disk_bytes() + sizeof(uint64_t);
    const uint64_t over = (file_.position() + tables) % kImageUnit;
    PACKTRAIN_TRY(file_.append_zeros(over == 0 ? 0 : kImageUnit - over));
    super.inode_table = file_.position();
    PACKTRAIN_TRY(file_.append(tree_.inodes().to_disk()));
    super.folder_table = file_.position();
    PACKTRAIN_TRY(file_.append(tree_.listings().to_disk()));
    super.fragment_table = file_.position();  // empty
    const uint64_t owners_at = file_.position();
    PACKTRAIN_TRY(file_.append(owners.to_disk()));
    super.owner_table = file_.position();
    std::byte place[sizeof owners_at];
    store_le(place, owners_at);
    PACKTRAIN_TRY(file_.append(place));
    super.bytes = file_.position();
    PACKTRAIN_TRY(file_.settle());
    std::byte record[kSquashSuperBytes];
    write_squash_super(super, record);
    PACKTRAIN_TRY(file_.overwrite(0, record));
    return file_.commit();
  }

 private:
  Status add_file(Bytes data, bool compress) {
    compress = compress && !is_compressed_content(data);
    std::vector<uint32_t> words;
    const uint64_t start = file_.position();
    if (pipeline_.empty()) {
      PACKTRAIN_TRY(file_.append(data));
    } else {
      for (Bytes rest = data; !rest.empty();) {
        const Bytes block = rest.first(std::min<size_t>(rest.size(), block_bytes_));
        PACKTRAIN_TRY(compress ? add_block(block, words) : add_raw_block(block, words));
        rest = rest.subspan(block.size());
      }
    }
    return tree_.add_file(name_, start, data.size(), std::move(words));
  }

  Status add_block(Bytes raw, std::vector<uint32_t>& words) {
    PACKTRAIN_ASSIGN(encoded, encode(pipeline_, raw));
    std::byte head[2] = {}, tail[4] = {};
    Bytes before, behind;
    if (codec_ == SquashCodec::gzip) {
      store_le<uint16_t>(head, 0x9C78);   // DEFLATE, a window of 32 KiB, the default level
      const uint32_t sum = adler32(raw);  // the one number here that is big-endian
      for (size_t i = 0; i < sizeof tail; ++i) tail[i] = static_cast<std::byte>(sum >> (24 - 8 * i));
      before = head;
      behind = tail;
    }
    const size_t stored = before.size() + encoded.size() + behind.size();
    if (!saves_enough(stored, raw.size())) return add_raw_block(raw, words);
    words.push_back(static_cast<uint32_t>(stored));
    PACKTRAIN_TRY(file_.append(before));
    PACKTRAIN_TRY(file_.append(encoded));
    return file_.append(behind);
  }

  Status add_raw_block(Bytes raw, std::vector<uint32_t>& words) {
    words.push_back(static_cast<uint32_t>(raw.size()) | kSquashRaw);
    return file_.append(raw);
  }

  Appender file_;
  const WriteSpec spec_;
  const SquashCodec codec_;
  const Pipeline pipeline_;
  const uint32_t block_bytes_;
  const std::string path_;
  std::string name_;
  SquashTree tree_;
};

// Most files should be one compressed block, and no block longer than it needs to be.
uint32_t block_for(const WriteSpec& spec) {
  if (spec.samples == 0) return kDefaultBlock;
  const uint64_t wanted = std::min<uint64_t>(2 * (spec.expected_bytes / spec.samples), kSquashLargestBlock);
  return std::clamp(static_cast<uint32_t>(std::bit_ceil(wanted)), kDefaultBlock, kSquashLargestBlock);
}

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_squashfs(Storage& storage, std::string_view path,
                                                         const WriteSpec& spec) {
  PACKTRAIN_ASSIGN(pipeline, write_pipeline("squashfs", kSquashfsCodecs, spec));
  // gzip is what every reader knows, where nothing is compressed.
  const SquashCodec codec = spec.compress == "zstd" ? SquashCodec::zstd : SquashCodec::gzip;
  const uint32_t block_bytes = pipeline.empty() ? kDefaultBlock : block_for(spec);
  PACKTRAIN_ASSIGN(writer, storage.create(path, spec.expected_bytes, spec.write));
  return std::unique_ptr<ContainerWriter>(
      new SquashWriter(std::move(writer), spec, codec, std::move(pipeline), block_bytes, std::string(path)));
}

}  // namespace packtrain
