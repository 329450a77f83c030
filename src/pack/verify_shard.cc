#include "pack/verify_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/hash.h"
#include "base/words.h"
#include "format/own_checks.h"

namespace packtrain {
namespace {

// Below this a second look at bytes that are in the first-level cache is cheaper than joining two checks.
constexpr size_t kJoinBytes = 1 << 10;
constexpr size_t kLongestName = 100;  // that packtrain gives a member; a longer one is another's, or damage

void add_range(std::vector<RowRange>& ranges, uint64_t sample) {
  if (!ranges.empty() && ranges.back().second == sample + 1) return;
  if (!ranges.empty() && ranges.back().second == sample) {
    ++ranges.back().second;
  } else {
    ranges.push_back({sample, sample + 1});
  }
}

// By memcmp, which comparing vectors of std::byte is not.
bool same_bytes(Bytes a, Bytes b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace

std::vector<std::vector<RowRange>> samples_by_shard(const Dataset& dataset) {
  const Manifest& manifest = dataset.manifest();
  std::vector<std::vector<RowRange>> ranges(manifest.shards.size());
  const bool rows = manifest.form == "rows";
  for (uint64_t sample = 0; sample < manifest.samples; ++sample) {
    if (const uint32_t shard = dataset.shard_of(sample); shard < ranges.size())
      add_range(ranges[shard], sample);
    if (rows) continue;
    for (uint32_t field = 0; field < manifest.fields.size(); ++field) {
      const FieldLocation at = dataset.locate(sample, field);
      if (at.present && at.plain && at.shard < ranges.size()) add_range(ranges[at.shard], sample);
    }
  }
  return ranges;
}

// The field whose bytes are passing by.
struct ShardCheck::OpenField {
  const Extent* extent = nullptr;
  FieldLocation at;
  uint64_t left = 0;   // bytes still to come
  uint32_t check = 0;  // of those that came
};

// Follows one thread's pass and compares what lies between the fields, and labels, with what the format would
// write. It takes its bytes from the pass; only at the border of a range does it read again.
class ShardCheck::GapWatch {
 public:
  GapWatch(ShardCheck& check, uint64_t begin) : check_(check), by_read_(begin > 0) {
    if (check.dataset_ != nullptr) label_field_ = check.dataset_->manifest().field_id("cls");
  }
  bool active() const { return check_.structure_proved(); }

  // `part` of the gap came by. `whole`: it is all of it, and stays where it is until end_gap().
  void take(Bytes part, bool whole) {
    constexpr size_t kLargest = 64 << 10;  // heads are far smaller; what is larger is not of this layout
    if (by_read_ || !active()) return;
    if (whole && copied_.empty()) {
      in_place_ = part;
      return;
    }
    if (copied_.size() + part.size() > kLargest) return fail();
    copied_.insert(copied_.end(), part.begin(), part.end());
  }
  // The gap is over: a field, or the end of the container, begins.
  Status end_gap(const Extent* before, const Extent* after) {
    if (active()) {
      if (by_read_) {
        const auto [begin, end] = check_.gap(before, after);
        if (begin > end || end - begin > kLargestRead) return fail(), Status();
        copied_.resize(end - begin);
        PACKTRAIN_TRY(check_.storage_.read(*check_.file_, begin, copied_));
      }
      const Bytes found = in_place_.empty() ? Bytes(copied_) : in_place_;
      if (!check_.expect_gap(before, after, expected_) || !same_bytes(expected_.bytes, found)) fail();
    }
    by_read_ = false;
    in_place_ = {};
    copied_.clear();
    return {};
  }
  void take_field(const Extent& extent, Bytes part) {
    if (extent.field == label_field_ && active()) label_.append(as_text(part));
  }
  void end_field(const Extent& extent) {
    if (extent.field != label_field_ || !active()) return;
    int64_t label = 0;
    const char* const end = label_.data() + label_.size();
    const auto [stop, error] = std::from_chars(label_.data(), end, label);
    if (error != std::errc() || stop != end || label != check_.dataset_->label(extent.sample)) fail();
    label_.clear();
  }

 private:
  static constexpr uint64_t kLargestRead = 1 << 20;
  void fail() { check_.as_laid_out_.store(false, std::memory_order_relaxed); }

  ShardCheck& check_;
  bool by_read_;  // the gap began before the pass did
  uint32_t label_field_ = UINT32_MAX;
  Bytes in_place_;                 // the gap, if it is whole in what passes by
  std::vector<std::byte> copied_;  // else what came of it
  ExpectedGap expected_;
  std::string label_;
};

std::string ShardCheck::key_of(uint64_t sample) const {
  const Result<std::string_view> key = dataset_->key(sample);
  return key.ok() ? std::string(*key) : fmt::format("#{}", sample);
}

void ShardCheck::find_in_field(const Extent& extent, std::string what) {
  findings_.add({spec_.path, key_of(extent.sample), field_name(extent.field), extent.offset, std::move(what)},
                extent.sample);
  Lock lock(mutex_);
  field_damaged_ = true;
  if (extent.offset >= readable_) return;
  const uint64_t last = std::min(readable_, extent.offset + std::max<uint64_t>(1, extent.length)) - 1;
  for (uint64_t block = extent.offset / kBlockBytes; block <= last / kBlockBytes; ++block)
    explained_[block] = true;
}

Result<bool> ShardCheck::open() {
  Result<std::unique_ptr<File>> file = storage_.open(path_);
  if (!file.ok()) {
    if (file.status().code() != Code::not_found) return file.status().at(spec_.path);
    findings_.add({spec_.path, "", "", 0, "the shard is missing"});
    for (const auto& [first, end] : samples_) {
      for (uint64_t sample = first; sample < end; ++sample) {
        findings_.add({spec_.path, key_of(sample), "", 0, "its shard is missing"}, sample);
      }
    }
    return false;
  }
  file_ = std::move(*file);
  readable_ = std::min(file_->size(), spec_.bytes);
  if (foreign_ && file_->size() != spec_.bytes) {
    // Its rows say nothing of what is there now.
    findings_.add(
        {spec_.path, "", "", readable_,
         fmt::format("the container has {} bytes and had {} when it was indexed; index it again, or "
                     "restore it if it should not have changed",
                     file_->size(), spec_.bytes),
         Remedy::reindex});
    findings_.add_unchecked(dataset_ == nullptr ? 0 : spec_.samples);
    return false;
  }
  if (file_->size() != spec_.bytes) {
    whole_ = false;
    findings_.add({spec_.path, "", "", readable_,
                   fmt::format("the shard has {} bytes and should have {}", file_->size(), spec_.bytes)});
  } else if (spec_.mtime_ns != 0 && spec_.hash.empty() && file_->info().mtime_ns != spec_.mtime_ns) {
    findings_.add({spec_.path, "", "", 0,
                   "the container was written to after it was indexed, or copied without its date; index it "
                   "again (with --checksum the index is good for copies too)",
                   Remedy::reindex});
    findings_.add_unchecked(dataset_ == nullptr ? 0 : spec_.samples);
    return false;
  }
  {
    Lock lock(mutex_);
    explained_.assign(blocks(), false);
  }
  block_checks_.assign(blocks(), 0);
  has_checks_ = !spec_.hash.empty();
  if (dataset_ == nullptr) return true;
  PACKTRAIN_TRY(find_own_checks());
  collect_extents();
  const Format* const format = find_format(spec_.format);
  if (format != nullptr && format->layout != nullptr && !format->layout->needs_crc32)
    layout_ = format->layout;
  return true;
}

Status ShardCheck::find_own_checks() {
  Result<std::vector<CheckedStretch>> found = own_checks(storage_, spec_, path_);
  // Damage to its structure is told by whoever compares that.
  if (found.status().code() == Code::corrupt) return {};
  if (!found.ok()) return found.status().at(spec_.path);
  wider_ = std::move(*found);
  wider_wanted_.assign(wider_.size(), false);
  return {};
}

bool ShardCheck::has_wider_check(uint64_t offset, uint64_t bytes) {
  const auto behind = std::upper_bound(
      wider_.begin(), wider_.end(), offset,
      [](uint64_t wanted, const CheckedStretch& stretch) { return wanted < stretch.offset; });
  if (behind == wider_.begin()) return false;
  const CheckedStretch& stretch = *(behind - 1);
  if (bytes > stretch.bytes || offset - stretch.offset > stretch.bytes - bytes) return false;
  wider_wanted_[static_cast<size_t>(behind - wider_.begin()) - 1] = true;
  return true;
}

// Where one value has the stretch for itself, it is the damaged one; else the values in question are named.
void ShardCheck::find_in_stretch(const CheckedStretch& stretch) {
  const auto by_offset = [](const Extent& extent, uint64_t offset) { return extent.offset < offset; };
  const auto first = std::lower_bound(extents_.begin(), extents_.end(), stretch.offset, by_offset);
  const auto end = std::lower_bound(first, extents_.end(), stretch.offset + stretch.bytes, by_offset);
  std::string what = own_check_differs(stretch);
  if (end - first == 1) return find_in_field(*first, std::move(what));
  whole_ = false;
  if (first == end) {
    findings_.add({spec_.path, "", "", stretch.offset, what + "; some sample in it is damaged"});
    findings_.add_unchecked(spec_.samples);
    return;
  }
  const Extent& last = *(end - 1);
  findings_.add({spec_.path, "", first->field == last.field ? field_name(first->field) : "", stretch.offset,
                 fmt::format("{}; one of the {} in it, from {} to {}, is damaged, or several are", what,
                             counted(static_cast<uint64_t>(end - first), "value"), key_of(first->sample),
                             key_of(last.sample))});
  findings_.add_unchecked(
      std::min<uint64_t>(spec_.samples, static_cast<uint64_t>(last.sample - first->sample) + 1));
}

Status ShardCheck::compare_wider_checks() {
  for (size_t i = 0; i < wider_.size(); ++i) {
    if (!wider_wanted_[i]) continue;
    const Result<bool> same = has_own_check(storage_, *file_, wider_[i], [&](uint64_t bytes) {
      return meter_.add(0, bytes) ? Status() : Status(Code::stopped, "stopped; nothing was changed");
    });
    if (!same.ok()) return same.status().at(spec_.path);
    if (!*same) find_in_stretch(wider_[i]);
  }
  return {};
}

void ShardCheck::collect_extents() {
  const auto fields = static_cast<uint32_t>(dataset_->manifest().fields.size());
  std::vector<std::pair<Block, Slice>> slices;
  for (const auto& [first, end] : samples_) {
    for (uint64_t sample = first; sample < end; ++sample) {
      for (uint32_t field = 0; field < fields; ++field) {
        const FieldLocation at = dataset_->locate(sample, field);
        // What is compressed or scattered is decoded elsewhere; a block without a check may decode to
        // anything.
        if (at.present && !at.plain && (!lacks_checks_ || !wider_.empty())) {
          slices.clear();
          if (!dataset_->slices(sample, field, slices).ok()) slices.clear();
          for (const auto& [block, slice] : slices) {
            if (!lacks_check(dataset_->manifest(), block)) continue;
            if (block.shard != shard_ || !has_wider_check(block.offset, block.stored)) lacks_checks_ = true;
          }
        }
        if (!at.present || !at.plain || at.shard != shard_) continue;
        const Extent extent{at.offset, at.length, sample, field};
        if (at.offset > spec_.bytes || at.length > spec_.bytes - at.offset) {
          find_in_field(extent, "its row in the index points outside the shard");
        } else if (at.offset + at.length > readable_) {
          find_in_field(extent, "its bytes are cut off");
        } else if (at.length == 0) {
          if (at.check_kind != CheckKind::none && at.check != 0) {
            find_in_field(extent, "it is empty and its check is not that of nothing");
          }
        } else {
          extents_.push_back(extent);
          if (at.check_kind != CheckKind::none)
            has_checks_ = true;
          else if (!has_wider_check(at.offset, at.length))
            lacks_checks_ = true;
        }
      }
    }
  }
  const auto by_offset = [](const Extent& a, const Extent& b) { return a.offset < b.offset; };
  if (!std::is_sorted(extents_.begin(), extents_.end(), by_offset)) {
    std::stable_sort(extents_.begin(), extents_.end(), by_offset);
  }
  uint64_t end = 0;
  const auto overlapping = [&](const Extent& extent) {
    if (extent.offset < end) {
      overlaps_.push_back(extent);
      return true;
    }
    end = extent.offset + extent.length;
    return false;
  };
  extents_.erase(std::remove_if(extents_.begin(), extents_.end(), overlapping), extents_.end());
  if (!spec_.hash.empty()) lacks_checks_ = false;  // block checks cover every byte
}

Status ShardCheck::check_blocks(uint64_t first_block, uint64_t end_block, SequentialReader& reader) {
  const uint64_t begin = first_block * kBlockBytes, end = std::min(end_block * kBlockBytes, readable_);
  auto next = std::lower_bound(extents_.begin(), extents_.end(), begin,
                               [](const Extent& extent, uint64_t offset) { return extent.offset < offset; });
  // Fields belong to the range they begin in, so the last one may lead beyond the end.
  const auto behind = std::lower_bound(next, extents_.end(), end, [](const Extent& extent, uint64_t offset) {
    return extent.offset < offset;
  });
  uint64_t read_end = end;
  if (behind != next) {
    const Extent& last = *(behind - 1);
    read_end = std::max(end, last.offset + last.length);
  }

  reader.start(*file_, begin, read_end);
  GapWatch watch(*this, begin);
  const auto before = [&](auto extent) { return extent == extents_.begin() ? nullptr : &*(extent - 1); };
  OpenField open;
  uint32_t block_check = 0;
  uint64_t at = begin;
  while (true) {
    Result<Bytes> got = reader.next();
    if (!got.ok()) return got.status().at(fmt::format("{} @ {}", spec_.path, at));
    Bytes bytes = *got;
    if (bytes.empty()) break;
    const uint64_t piece_bytes = std::min<uint64_t>(bytes.size(), at < end ? end - at : 0);
    while (!bytes.empty()) {
      if (open.left == 0 && next != behind && next->offset == at) {
        PACKTRAIN_TRY(watch.end_gap(before(next), &*next));
        open.extent = &*next++;
        open.at = dataset_->locate(open.extent->sample, open.extent->field);
        open.left = open.at.length;
        open.check = 0;
      }
      const uint64_t until = open.left > 0 ? at + open.left : next != behind ? next->offset : read_end;
      const uint64_t block_end = (at / kBlockBytes + 1) * kBlockBytes;
      const Bytes part = bytes.first(std::min<uint64_t>(bytes.size(), std::min(until, block_end) - at));
      if (open.left == 0) {
        block_check = crc32c(part, block_check);
        watch.take(part, at + part.size() == until && part.size() < bytes.size());
      } else if (open.at.check_kind == CheckKind::crc32c) {
        // Every byte is looked at once: the block's check is joined from those of its parts.
        const bool begins = open.left == open.at.length;
        if (part.size() < kJoinBytes) {
          open.check = crc32c(part, open.check);
          block_check = crc32c(part, block_check);
        } else {
          const uint32_t check = crc32c(part);
          open.check = begins ? check : crc32c_join(open.check, check, part.size());
          block_check = crc32c_join(block_check, check, part.size());
        }
      } else {
        if (open.at.check_kind == CheckKind::crc32) open.check = crc32(part, open.check);
        if (!spec_.hash.empty()) block_check = crc32c(part, block_check);
      }
      at += part.size();
      bytes = bytes.subspan(part.size());
      if (open.left > 0) {
        watch.take_field(*open.extent, part);
        open.left -= part.size();
        if (open.left == 0) {
          watch.end_field(*open.extent);
          end_field(open);
        }
      }
      if (at <= end && (at == block_end || at == end)) {
        block_checks_[(at - 1) / kBlockBytes] = block_check;
        block_check = 0;
      }
    }
    if (!meter_.add(0, piece_bytes)) return Status(Code::stopped, "stopped; nothing was changed");
  }
  return end == readable_ ? watch.end_gap(before(extents_.end()), nullptr) : Status();
}

void ShardCheck::end_field(const OpenField& open) {
  if (open.at.check_kind == CheckKind::none || open.check == open.at.check) return;
  find_in_field(*open.extent, fmt::format("its {} bytes are not what was written: the {} differs",
                                          open.at.length, check_kind_name(open.at.check_kind)));
}

Result<bool> ShardCheck::finish() {
  PACKTRAIN_TRY(compare_wider_checks());
  std::vector<std::byte> bytes;
  for (const Extent& extent : overlaps_) {
    const Status read = dataset_->read(extent.sample, extent.field, bytes, true);
    if (read.code() == Code::io || read.code() == Code::limit) return read.at(spec_.path);
    if (!read.ok()) find_in_field(extent, read.message());
  }
  if (!spec_.hash.empty() && has_checks_) {
    const std::span<const uint32_t> recorded =
        dataset_ == nullptr ? std::span<const uint32_t>() : dataset_->block_checks(shard_);
    // A block that is cut off, or has bytes behind it that do not belong there, was named by its size.
    const uint64_t comparable = file_->size() == spec_.bytes ? blocks() : readable_ / kBlockBytes;
    bool same = true;
    for (uint64_t block = 0; block < std::min<uint64_t>(comparable, recorded.size()); ++block) {
      if (block_checks_[block] == recorded[block]) continue;
      same = whole_ = false;
      bool explained;
      {
        Lock lock(mutex_);
        explained = explained_[block];
      }
      PACKTRAIN_TRY(place_block_damage(block, explained));
    }
    const Bytes checks = std::as_bytes(std::span(block_checks_));
    if (same && file_->size() == spec_.bytes && xxh128_hex(checks) != spec_.hash) {
      whole_ = false;
      findings_.add({spec_.path, "", "", 0,
                     dataset_ == nullptr
                         ? "its bytes are not what was written (the index that would tell where is "
                           "damaged or missing)"
                         : "its hash is not that of the manifest"});
    }
  }
  Lock lock(mutex_);
  return whole_ && !field_damaged_;
}

Status ShardCheck::place_block_damage(uint64_t block, bool explained) {
  const uint64_t begin = block * kBlockBytes, end = std::min(begin + kBlockBytes, readable_);
  // Damaged fields were named already: what is left to look at lies between them.
  auto after = std::upper_bound(extents_.begin(), extents_.end(), begin,
                                [](uint64_t offset, const Extent& extent) { return offset < extent.offset; });
  const Extent* before = after == extents_.begin() ? nullptr : &*(after - 1);
  bool found = false;
  while (true) {
    const Extent* const next = after == extents_.end() ? nullptr : &*after;
    PACKTRAIN_ASSIGN(differs, compare_gap(begin, end, before, next));
    found = found || differs;
    if (next == nullptr || next->offset >= end) break;
    before = next;
    ++after;
  }
  if (found || explained) return {};
  const Extent* const near = before != nullptr ? before : extents_.empty() ? nullptr : &extents_.front();
  findings_.add(
      {spec_.path, near == nullptr ? "" : key_of(near->sample), "", begin,
       fmt::format("bytes {} to {} are not what was written, though every field among them that has a "
                   "check of its own is sound",
                   begin, end)});
  return {};
}

std::pair<uint64_t, uint64_t> ShardCheck::gap(const Extent* before, const Extent* after) const {
  const uint64_t begin = before == nullptr ? 0 : before->offset + before->length;
  return {begin, after == nullptr ? spec_.bytes : after->offset};
}

bool ShardCheck::expect_gap(const Extent* before, const Extent* after, ExpectedGap& expected) const {
  const auto [begin, end] = gap(before, after);
  expected.padding = before == nullptr ? 0 : layout_->padding(before->length);
  const uint64_t head = begin + expected.padding;
  if (head > end) return false;
  expected.bytes.resize(end - begin);
  std::fill_n(expected.bytes.begin(), expected.padding, std::byte{0});
  const MutableBytes rest = MutableBytes(expected.bytes).subspan(expected.padding);
  if (after == nullptr) {
    if (layout_->tail_bytes({}, head) != rest.size()) return false;
    layout_->write_tail({}, head, rest);
    return true;
  }
  const Result<std::string_view> key = dataset_->key(after->sample);
  if (!key.ok()) return false;
  expected.name.assign(*key).append(1, '.').append(field_name(after->field));
  if (expected.name.size() > kLongestName) return false;
  if (layout_->head_bytes(expected.name, after->length, head) != rest.size()) return false;
  layout_->write_head({expected.name, head, after->length, 0}, rest);
  return true;
}

Result<bool> ShardCheck::compare_gap(uint64_t from, uint64_t to, const Extent* before, const Extent* after) {
  ExpectedGap expected;
  if (layout_ == nullptr || foreign_ || !expect_gap(before, after, expected)) return false;
  const auto [begin, end] = gap(before, after);
  from = std::max(from, begin);
  to = std::min(to, end);
  if (from >= to) return false;
  std::vector<std::byte> found(to - from);
  PACKTRAIN_TRY(storage_.read(*file_, from, found));
  const auto difference =
      std::mismatch(found.begin(), found.end(), expected.bytes.begin() + (from - begin)).first;
  if (difference == found.end()) return false;
  const uint64_t at = from + static_cast<uint64_t>(difference - found.begin());
  if (at < begin + expected.padding) {
    findings_.add({spec_.path, key_of(before->sample), field_name(before->field), at,
                   "the padding behind it is not zero"},
                  before->sample);
  } else if (after != nullptr) {
    findings_.add({spec_.path, key_of(after->sample), field_name(after->field), at,
                   "the header in front of it is damaged"},
                  after->sample);
  } else {
    findings_.add({spec_.path, "", "", at, "the end mark of the container is damaged"});
  }
  return true;
}

}  // namespace packtrain
