#include "pack/archive_stream.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "base/words.h"
#include "format/table.h"
#include "format/tar_header.h"
#include "format/window.h"
#include "packtrain/codec.h"

namespace packtrain {
namespace {

constexpr uint64_t kLongestRecords = uint64_t{1}
                                     << 20;  // names and pax records; real ones have a few hundred
constexpr size_t kScratchBytes = size_t{1} << 18;
constexpr size_t kTypeAt = 156;
constexpr char kFolderType = '5';

// The archive's bytes in order.
struct Input {
  virtual ~Input() = default;
  virtual Result<size_t> read(MutableBytes into) = 0;  // less than asked only at the end
  virtual Status skip(uint64_t bytes) = 0;             // Code::corrupt if there are fewer
};

Status cut_short() { return Status(Code::corrupt, "the archive is cut short"); }

class PlainInput : public Input {
 public:
  PlainInput(Storage& storage, std::unique_ptr<File> file)
      : storage_(storage), file_(std::move(file)), window_(storage, *file_) {}

  Result<size_t> read(MutableBytes into) override {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(into.size(), file_->size() - at_));
    if (bytes == 0) return bytes;
    if (bytes <= kTarBlock) {  // a header: the window knows how to hop between those
      PACKTRAIN_ASSIGN(seen, window_.at(at_, bytes));
      std::memcpy(into.data(), seen.data(), bytes);
    } else {
      PACKTRAIN_TRY(storage_.read(*file_, at_, into.first(bytes)));
    }
    at_ += bytes;
    return bytes;
  }

  Status skip(uint64_t bytes) override {
    if (bytes > file_->size() - at_) return cut_short();
    at_ += bytes;
    return {};
  }

 private:
  Storage& storage_;
  std::unique_ptr<File> file_;
  Window window_;
  uint64_t at_ = 0;
};

class CompressedInput : public Input {
 public:
  static Result<std::unique_ptr<Input>> open(Storage& storage, std::unique_ptr<File> file,
                                             std::string_view codec) {
    auto input = std::unique_ptr<CompressedInput>(new CompressedInput(storage, std::move(file)));
    CompressedInput* self = input.get();
    PACKTRAIN_ASSIGN(decoder,
                     make_stream_decoder(codec, [self](MutableBytes into) { return self->stored(into); }));
    self->decoder_ = std::move(decoder);
    return std::unique_ptr<Input>(std::move(input));
  }

  Result<size_t> read(MutableBytes into) override { return decoder_->read(into); }

  Status skip(uint64_t bytes) override {
    if (scratch_.empty()) scratch_.resize(kScratchBytes);
    while (bytes > 0) {
      const MutableBytes into =
          MutableBytes(scratch_).first(static_cast<size_t>(std::min<uint64_t>(bytes, scratch_.size())));
      PACKTRAIN_ASSIGN(got, decoder_->read(into));
      if (got < into.size()) return cut_short();
      bytes -= got;
    }
    return {};
  }

 private:
  CompressedInput(Storage& storage, std::unique_ptr<File> file) : storage_(storage), file_(std::move(file)) {}

  Result<size_t> stored(MutableBytes into) {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(into.size(), file_->size() - at_));
    if (bytes > 0) PACKTRAIN_TRY(storage_.read(*file_, at_, into.first(bytes)));
    at_ += bytes;
    return bytes;
  }

  Storage& storage_;
  std::unique_ptr<File> file_;
  uint64_t at_ = 0;
  std::unique_ptr<StreamDecoder> decoder_;
  std::vector<std::byte> scratch_;
};

class TarStream : public ArchiveStream {
 public:
  TarStream(std::string path, std::unique_ptr<Input> input, bool plain)
      : path_(std::move(path)), input_(std::move(input)), plain_(plain) {}

  Result<bool> next(Member& out) override {
    auto found = find_next(out);
    if (found.ok()) return found;
    // Behind a damaged header there may be sound members; the indexer finds them, in a file that is not
    // compressed.
    const Status status = found.status();
    const bool can_recover = plain_ && status.code() == Code::corrupt && header_at_ > 0;
    if (!can_recover && status.code() == Code::corrupt) {
      return Status(status.code(), status.message() + "; fetch or make the archive again")
          .at("@ " + std::to_string(header_at_))
          .at(path_);
    }
    return (can_recover ? with_way_out(status) : status).at("@ " + std::to_string(header_at_)).at(path_);
  }

  Status read(MutableBytes into) override {
    assert(into.size() <= left_);
    auto got = input_->read(into);
    if (!got.ok()) return got.status().at("@ " + std::to_string(at_)).at(path_);
    if (*got < into.size()) return cut_short().at("@ " + std::to_string(at_ + *got)).at(path_);
    at_ += into.size();
    left_ -= into.size();
    return {};
  }

  uint64_t links() const override { return links_; }
  uint64_t folders() const override { return folders_; }

 private:
  Result<bool> find_next(Member& out) {
    header_at_ = at_;
    PACKTRAIN_TRY(skip(left_ + padding_));
    left_ = padding_ = 0;
    records_.clear();
    long_name_.clear();
    for (;;) {
      header_at_ = at_;
      PACKTRAIN_ASSIGN(got, input_->read(block_));
      at_ += got;
      if (got == 0) {
        if (header_at_ == 0) return Status(Code::corrupt, "holds no tar archive: it is empty");
        return false;  // no end blocks, but a sound end
      }
      if (is_zero(Bytes(block_).first(got))) return finish();
      if (got < kTarBlock) return Status(Code::corrupt, "header is cut short by the end of the archive");
      auto header = parse_tar_header(block_);
      if (!header.ok()) {
        if (header_at_ == 0)
          return Status(Code::corrupt, "holds no tar archive: " + header.status().message());
        return header.status();
      }
      switch (header->kind) {
        case TarKind::regular:
          return take_member(*header, out);
        case TarKind::without_data:
          links_ += header->is_link;
          folders_ += static_cast<char>(block_[kTypeAt]) == kFolderType;
          records_.clear();
          long_name_.clear();
          break;
        case TarKind::long_link:
          PACKTRAIN_TRY(skip(header->size + tar_padding(header->size)));
          break;
        case TarKind::long_name: {
          PACKTRAIN_TRY(read_records(header->size));
          const std::string_view name = as_text(extension_);
          long_name_ = name.substr(0, name.find('\0'));
          break;
        }
        case TarKind::pax:
        case TarKind::pax_global:
          PACKTRAIN_TRY(read_records(header->size));
          PACKTRAIN_TRY(parse_pax(extension_, header->kind == TarKind::pax ? records_ : global_records_));
          break;
        case TarKind::sparse:
          return sparse(header->name);
        case TarKind::other_volume:
          return Status(Code::unsupported,
                        "is one of several volumes; join them with tar --multi-volume first");
      }
    }
  }

  Result<bool> take_member(const TarHeader& header, Member& out) {
    if (records_.sparse || global_records_.sparse) return sparse(header.name);
    if (!records_.path.empty()) {
      name_ = records_.path;
    } else if (!long_name_.empty()) {
      name_ = long_name_;
    } else if (!global_records_.path.empty()) {
      name_ = global_records_.path;
    } else {
      name_.assign(header.prefix);
      if (!name_.empty()) name_ += '/';
      name_ += header.name;
    }
    if (name_.find('\0') != std::string::npos)
      return Status(Code::corrupt, "name of a member holds a NUL byte");
    left_ = records_.size ? *records_.size : global_records_.size ? *global_records_.size : header.size;
    if (left_ > UINT64_MAX - at_ - kTarBlock)
      return Status(Code::corrupt, "member " + printable(name_) + " has an impossible size");
    padding_ = tar_padding(left_);
    out = {name_, left_, number_++, at_};
    return true;
  }

  // Behind a zero block: nothing but zeros may follow.
  Result<bool> finish() {
    std::vector<std::byte> rest(kScratchBytes);
    for (;;) {
      PACKTRAIN_ASSIGN(got, input_->read(rest));
      if (!is_zero(Bytes(rest).first(got)))
        return Status(
            Code::corrupt,
            "a zero block, and more data behind it: a header was wiped out, or archives were joined by cat");
      at_ += got;
      if (got < rest.size()) return false;
    }
  }

  static Status sparse(std::string_view name) {
    return Status(Code::unsupported,
                  "member " + printable(name) + " is sparse; make the archive again without tar --sparse");
  }

  Status skip(uint64_t bytes) {
    if (bytes == 0) return {};
    PACKTRAIN_TRY(input_->skip(bytes));
    at_ += bytes;
    return {};
  }

  Status read_records(uint64_t size) {
    if (size > kLongestRecords)
      return Status(Code::corrupt, "extended header of " + std::to_string(size) + " bytes");
    extension_.resize(static_cast<size_t>(size));
    PACKTRAIN_ASSIGN(got, input_->read(extension_));
    if (got < size) return cut_short();
    at_ += size;
    return skip(tar_padding(size));
  }

  const std::string path_;
  std::unique_ptr<Input> input_;
  const bool plain_;
  uint64_t at_ = 0, header_at_ = 0;
  uint64_t left_ = 0, padding_ = 0;  // of the member that next() gave last
  uint64_t number_ = 0, links_ = 0, folders_ = 0;
  std::byte block_[kTarBlock];
  std::vector<std::byte> extension_;
  PaxRecords records_, global_records_;
  std::string long_name_, name_;
};

}  // namespace

std::string_view stream_codec(Bytes head) {
  const std::string_view text = as_text(head);
  if (text.starts_with("\x1f\x8b")) return "gzip";
  if (text.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  return "";
}

Result<std::unique_ptr<ArchiveStream>> ArchiveStream::open(Storage& storage, std::string_view path) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  std::byte head[4] = {};
  if (file->size() >= sizeof head) PACKTRAIN_TRY(storage.read(*file, 0, head).at(path));
  const std::string_view codec = stream_codec(head);
  std::unique_ptr<Input> input;
  if (codec.empty()) {
    input = std::make_unique<PlainInput>(storage, std::move(file));
  } else {
    auto compressed = CompressedInput::open(storage, std::move(file), codec);
    if (!compressed.ok()) return compressed.status().at(path);
    input = std::move(*compressed);
  }
  return std::unique_ptr<ArchiveStream>(
      std::make_unique<TarStream>(std::string(path), std::move(input), codec.empty()));
}

}  // namespace packtrain
