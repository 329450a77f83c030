#include "format/zip_write.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/words.h"
#include "format/appender.h"
#include "format/compress_value.h"
#include "format/zip_records.h"
#include "packtrain/codec.h"

namespace packtrain {
namespace {

constexpr size_t kLongestZipName = 0xFFFF;

ZipWritten stored_entry(const LaidMember& member) {
  return {.name = member.name,
          .method = ZipMethod::store,
          .crc32 = member.crc32,
          .stored = member.size,
          .raw = member.size,
          .local_offset = member.offset};
}

uint64_t directory_bytes(std::span<const LaidMember> members) {
  uint64_t bytes = 0;
  for (const LaidMember& member : members) bytes += zip_central_bytes(stored_entry(member));
  return bytes;
}

// Entries go out as they come; the directory follows them. One thread at a time.
class ZipWriter : public ContainerWriter {
 public:
  ZipWriter(std::unique_ptr<Writer> writer, const WriteSpec& spec, Pipeline pipeline, std::string path)
      : out_(std::move(writer), spec.expected_bytes),
        spec_(spec),
        pipeline_(std::move(pipeline)),
        path_(std::move(path)) {}

  Status add(const SampleToWrite& sample) override {
    for (const SampleToWrite::Field& field : sample.fields) {
      name_.assign(sample.key).append(".").append(field.name);
      Status status = add_entry(field.bytes, is_for_field(spec_, field.name));
      if (!status.ok()) return status.at(printable(name_)).at(path_);
    }
    return {};
  }

  Status finish() override {
    uint64_t directory_offset = out_.position();
    PACKTRAIN_TRY(out_.append(directory_));
    std::vector<std::byte> end(zip_end_bytes(entries_, directory_offset, directory_.size()));
    write_zip_end(entries_, directory_offset, directory_.size(), end.data());
    PACKTRAIN_TRY(out_.append(end));
    PACKTRAIN_TRY(out_.settle());
    return out_.commit();
  }

 private:
  Status add_entry(Bytes raw, bool compress) {
    if (name_.size() > kLongestZipName) return Status(Code::invalid, "a zip name has at most 65,535 bytes");
    ZipWritten entry{.name = name_,
                     .crc32 = crc32(raw),
                     .stored = raw.size(),
                     .raw = raw.size(),
                     .local_offset = out_.position()};
    std::vector<std::byte> encoded;
    Bytes data = raw;
    if (compress && !is_compressed_content(raw)) {
      PACKTRAIN_ASSIGN(smaller, encode_if_it_saves(pipeline_, raw));
      encoded = std::move(smaller);
      if (!encoded.empty()) {
        data = encoded;
        entry.method = ZipMethod::deflate;
        entry.stored = data.size();
      }
    }
    std::vector<std::byte> head(zip_local_bytes(entry));
    write_zip_local(entry, head.data());
    size_t record = directory_.size();
    directory_.resize(record + zip_central_bytes(entry));
    write_zip_central(entry, directory_.data() + record);
    ++entries_;
    PACKTRAIN_TRY(out_.append(head));
    return out_.append(data);
  }

  Appender out_;
  const WriteSpec spec_;
  const Pipeline pipeline_;
  const std::string path_;
  std::vector<std::byte> directory_;
  std::string name_;
  uint64_t entries_ = 0;
};

}  // namespace

const Layout kZipLayout = {
    .head_bytes =
        [](std::string_view name, uint64_t size, uint64_t) {
          return uint64_t{zip_local_bytes({.name = name, .stored = size, .raw = size})};
        },
    .padding = [](uint64_t) { return uint64_t{0}; },
    .tail_bytes =
        [](std::span<const LaidMember> members, uint64_t tail_offset) {
          uint64_t directory = directory_bytes(members);
          return directory + zip_end_bytes(members.size(), tail_offset, directory);
        },
    .write_head = [](const LaidMember& member,
                     MutableBytes out) { write_zip_local(stored_entry(member), out.data()); },
    .write_tail =
        [](std::span<const LaidMember> members, uint64_t tail_offset, MutableBytes out) {
          std::byte* at = out.data();
          for (const LaidMember& member : members) {
            write_zip_central(stored_entry(member), at);
            at += zip_central_bytes(stored_entry(member));
          }
          write_zip_end(members.size(), tail_offset, static_cast<uint64_t>(at - out.data()), at);
        },
    .needs_crc32 = true,
};

Result<std::unique_ptr<ContainerWriter>> create_zip(Storage& storage, std::string_view path,
                                                    const WriteSpec& spec) {
  PACKTRAIN_ASSIGN(pipeline, write_pipeline("zip", kZipCodecs, spec));
  PACKTRAIN_ASSIGN(writer, storage.create(path, spec.expected_bytes, spec.write));
  return std::unique_ptr<ContainerWriter>(
      new ZipWriter(std::move(writer), spec, std::move(pipeline), std::string(path)));
}

}  // namespace packtrain
