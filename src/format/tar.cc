// WebDataset shards: plain tar archives.
//
// Reading. Every header's checksum is verified, and the walk never ends before the file does without saying
// so: the archive's end is zero blocks and nothing else up to the file's end, or the file's end where a
// member ends. Whatever else is found is Code::corrupt with its offset, or with `recover` a Damage, behind
// which the walk goes on at the next block with a right checksum.
// Writing. The profile that all known readers take: see write_tar_header.
#include <algorithm>
#include <cstring>

#include "base/words.h"
#include "format/grouping.h"
#include "format/pace.h"
#include "format/table.h"
#include "format/tar_header.h"
#include "format/window.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

constexpr uint64_t kTailBytes = 2 * kTarBlock;
constexpr uint64_t kLongestRecords = uint64_t{1}
                                     << 20;  // names and pax records; real ones have a few hundred

// Walks one archive from header to header. One thread at a time.
class TarWalk {
 public:
  TarWalk(Storage& storage, const File& file, const IndexOptions& options)
      : window_(storage, file), options_(options), pace_(options.progress) {}

  Status run(MemberList& members) {
    if (window_.size() == 0) return Status(Code::corrupt, "file is empty: copy or make it again");
    while (at_ < window_.size()) {
      Status status = step(members);
      if (status.ok()) continue;
      if (status.code() != Code::corrupt) return status;
      if (!options_.recover) return with_way_out(status);
      PACKTRAIN_TRY(resume(status, members));
    }
    if (options_.damage == nullptr) return {};
    for (Gap& gap : gaps_) {
      gap.what += neighbours_in_words(members, gap.members_before);
      options_.damage->push_back({gap.offset, gap.bytes, std::move(gap.what)});
    }
    return {};
  }

 private:
  struct Gap {
    uint64_t offset, bytes;
    std::string what;
    size_t members_before;
  };

  // Takes one header with what belongs to it and moves `at_` behind it. A corrupt one leaves `at_` where the
  // damage begins.
  Status step(MemberList& members) {
    if (window_.size() - at_ < kTarBlock) {
      PACKTRAIN_ASSIGN(rest, window_.at(at_, static_cast<size_t>(window_.size() - at_)));
      if (!is_zero(rest)) return damaged("header is cut short by the end of the file");
      at_ = window_.size();
      return {};
    }
    PACKTRAIN_ASSIGN(block, window_.at(at_, kTarBlock));
    if (is_zero(block)) return finish();
    PACKTRAIN_TRY(pace_.tell({.phase = "index",
                              .items = members.size(),
                              .bytes = at_,
                              .bytes_total = window_.size(),
                              .unit = "members"}));
    auto parsed = parse_tar_header(block);
    if (!parsed.ok()) return damaged(parsed.status().message());
    const TarHeader& header = *parsed;
    switch (header.kind) {
      case TarKind::regular:
        return take_member(header, members);
      case TarKind::without_data:
        if (header.is_link && options_.links != nullptr) note_left_out(full_name(header), *options_.links);
        at_ += kTarBlock;
        break;
      case TarKind::long_link:
        return skip_data(header.size);
      case TarKind::long_name:
        return take_long_name(header.size);
      case TarKind::pax:
        return take_records(header.size, records_);
      case TarKind::pax_global:
        return take_records(header.size, global_records_);
      case TarKind::sparse:
        return refuse_sparse(header.name);
      case TarKind::other_volume:
        return Status(Code::unsupported, "the archive is one of several volumes (member " +
                                             printable(header.name) + " @ " + std::to_string(at_) +
                                             "); join them with tar --multi-volume first");
    }
    forget_extensions();
    return {};
  }

  Status take_member(const TarHeader& header, MemberList& members) {
    if (records_.sparse || global_records_.sparse) return refuse_sparse(header.name);
    if (lost_its_name(header)) return pass_over(header);
    std::string_view name = full_name(header);
    uint64_t size = records_.size          ? *records_.size
                    : global_records_.size ? *global_records_.size
                                           : header.size;
    PACKTRAIN_TRY(check_data(name, size));
    if (name.find('\0') != std::string_view::npos) return damaged("name of a member holds a NUL byte");
    MemberPlace place{.offset = at_ + kTarBlock, .stored = size, .raw = size};
    if (size <= kLabelBytes && is_label_member(name)) {
      name_.assign(name);  // the block that the name lies in may move away
      name = name_;
      PACKTRAIN_ASSIGN(text, window_.at(place.offset, static_cast<size_t>(size)));
      place.label = parse_label(text).value_or(kNoLabel);
    }
    members.add(name, place);
    at_ = place.offset + size + tar_padding(size);
    forget_extensions();
    return {};
  }

  // Whether the member behind a gap may be called otherwise: a long name stands in a header of its own before
  // it, and its own has the beginning, or something else.
  bool lost_its_name(const TarHeader& header) {
    constexpr size_t kNameBytes = 100;
    if (!is_behind_gap_) return false;
    is_behind_gap_ = false;
    if (!records_.path.empty() || !long_name_.empty()) return false;
    return gap_had_name_ || (header.prefix.empty() && header.name.size() >= kNameBytes);
  }

  // Makes the gap longer by a member.
  Status pass_over(const TarHeader& header) {
    PACKTRAIN_TRY(check_data(header.name, header.size));
    Gap& gap = gaps_.back();
    at_ += kTarBlock + header.size + tar_padding(header.size);
    gap.bytes = at_ - gap.offset;
    gap.what += "; the name of the file behind it is lost, and the file with it";
    forget_extensions();
    return {};
  }

  std::string_view full_name(const TarHeader& header) {
    if (!records_.path.empty()) return records_.path;
    if (!long_name_.empty()) return long_name_;
    if (!global_records_.path.empty()) return global_records_.path;
    if (header.prefix.empty()) return header.name;
    name_.assign(header.prefix).append("/").append(header.name);
    return name_;
  }

  // That the data behind the header at `at_`, with their padding, lie within the file.
  Status check_data(std::string_view name, uint64_t size) const {
    uint64_t room = window_.size() - at_ - kTarBlock;
    if (size <= room && tar_padding(size) <= room - size) return {};
    return damaged("file ends at byte " + std::to_string(window_.size()) + ", inside the " +
                   std::to_string(size) + " bytes of " + printable(name));
  }

  Status skip_data(uint64_t size) {
    PACKTRAIN_TRY(check_data("a long link name", size));
    at_ += kTarBlock + size + tar_padding(size);
    return {};
  }

  Result<Bytes> small_data(uint64_t size) {
    PACKTRAIN_TRY(check_data("an extended header", size));
    if (size > kLongestRecords) return damaged("extended header of " + std::to_string(size) + " bytes");
    return window_.at(at_ + kTarBlock, static_cast<size_t>(size));
  }

  Status take_long_name(uint64_t size) {
    PACKTRAIN_ASSIGN(data, small_data(size));
    std::string_view name = as_text(data);
    long_name_ = name.substr(0, name.find('\0'));
    return skip_data(size);
  }

  Status take_records(uint64_t size, PaxRecords& records) {
    PACKTRAIN_ASSIGN(data, small_data(size));
    Status status = parse_pax(data, records);
    if (!status.ok()) return damaged(status.message());
    return skip_data(size);
  }

  Status refuse_sparse(std::string_view name) const {
    return Status(Code::unsupported, "member " + printable(records_.path.empty() ? name : records_.path) +
                                         " @ " + std::to_string(at_) +
                                         " is sparse; make the archive again without tar --sparse");
  }

  // At a zero block: the end, if zeros are all that is left.
  Status finish() {
    for (uint64_t at = at_; at < window_.size();) {
      auto take = static_cast<size_t>(std::min<uint64_t>(window_.size() - at, kTarBlock));
      PACKTRAIN_ASSIGN(block, window_.at(at, take));
      if (!is_zero(block)) {
        return damaged(std::to_string(at - at_) + " zero bytes, and more data behind them @ " +
                       std::to_string(at) + ": a header was wiped out, or archives were joined by cat");
      }
      at += take;
    }
    at_ = window_.size();
    return {};
  }

  // Moves to the next sound header behind the damage at `at_`, or to the end.
  Status resume(const Status& why, const MemberList& members) {
    uint64_t from = at_, at = from + kTarBlock;
    PACKTRAIN_ASSIGN(names, holds_name(from));
    gap_had_name_ = names;
    is_behind_gap_ = true;
    for (; at + kTarBlock <= window_.size(); at += kTarBlock) {
      PACKTRAIN_ASSIGN(block, window_.at(at, kTarBlock));
      if (is_tar_header(block)) break;
    }
    at_ = at + kTarBlock <= window_.size() ? at : window_.size();
    forget_extensions();
    gaps_.push_back({from, at_ - from, why.message(), members.size()});
    return {};
  }

  // Whether the damaged block looks like a header that gives a name to the member behind it.
  Result<bool> holds_name(uint64_t at) {
    constexpr size_t kKindAt = 156;
    if (window_.size() - at < kTarBlock) return false;
    PACKTRAIN_ASSIGN(block, window_.at(at, kTarBlock));
    const auto kind = static_cast<char>(block[kKindAt]);
    return kind == 'L' || kind == 'x';
  }

  // Which samples a gap may have taken files from: those that its neighbours belong to.
  static std::string neighbours_in_words(const MemberList& members, size_t behind) {
    const auto key = [&](size_t member) {
      const auto name = member < members.size() ? split_member_name(members.name(member)) : std::nullopt;
      return name ? printable(name->key) : std::string();
    };
    const std::string before = behind > 0 ? key(behind - 1) : "", after = key(behind);
    if (before.empty() && after.empty()) return {};
    if (before == after) return "; the sample " + before + " may lack files";
    if (before.empty()) return "; the sample " + after + " behind it may lack files";
    if (after.empty()) return "; the sample " + before + " before it may lack files";
    return "; the samples " + before + " before it and " + after + " behind it may lack files";
  }

  Status damaged(std::string what) const {
    return Status(Code::corrupt, std::move(what)).at("@ " + std::to_string(at_));
  }

  void forget_extensions() {
    records_.clear();
    long_name_.clear();
  }

  Window window_;
  const IndexOptions& options_;
  Pace pace_;
  uint64_t at_ = 0;
  PaxRecords records_, global_records_;  // of the next member, of all
  std::string long_name_, name_;
  std::vector<Gap> gaps_;  // what was passed over, with recover
  // That no member was taken since the last one, and that it held a name for the next.
  bool is_behind_gap_ = false, gap_had_name_ = false;
};

bool recognise_tar(Storage& storage, std::string_view path) {
  auto file = storage.open(path);
  if (!file.ok() || (*file)->size() < kTarBlock) return false;
  std::byte block[kTarBlock];
  return storage.read(**file, 0, block).ok() && is_tar_header(block);
}

Status index_tar(Storage& storage, std::string_view path, const IndexOptions& options, IndexBuilder& out) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  MemberList members;
  Status status = TarWalk(storage, *file, options).run(members);
  if (!status.ok()) return status.at(path);
  uint32_t shard = out.add_shard(shard_spec(kTar, path, *file, options));
  status = members.add_samples(Adjacency::required, shard, options, out);
  return status.ok() ? status : status.at(path);
}

constexpr Layout kTarLayout = {
    .head_bytes = [](std::string_view, uint64_t, uint64_t) { return kTarBlock; },
    .padding = tar_padding,
    .tail_bytes = [](std::span<const LaidMember>, uint64_t) { return kTailBytes; },
    .write_head = [](const LaidMember& member,
                     MutableBytes out) { write_tar_header(member.name, member.size, out); },
    .write_tail = [](std::span<const LaidMember>, uint64_t,
                     MutableBytes out) { std::memset(out.data(), 0, kTailBytes); },
    .needs_crc32 = false,
};

}  // namespace

const Format kTar = {
    .name = "webdataset",
    .suffix = ".tar",
    .summary = "tar shards that webdataset, DALI, Energon, HF datasets and GNU tar read",
    .recognise = recognise_tar,
    .index = index_tar,
    .layout = &kTarLayout,
    .create = nullptr,
};

}  // namespace packtrain
