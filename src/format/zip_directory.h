// The members of a zip archive and where their bytes lie, for every format that is a zip: zip itself, NPZ,
// Zarr's ZipStore.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/big_vector.h"
#include "format/merged_reads.h"
#include "format/pace.h"
#include "format/zip_records.h"
#include "packtrain/codec.h"
#include "packtrain/format.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

struct ZipMember {
  ZipEntry record;
  uint64_t data_offset = 0;
  Status damage;  // why it cannot be used
};

// How the member's bytes are stored. Only for members without damage.
Pipeline zip_pipeline(const ZipEntry& entry);

// Whether the file looks like a zip by its first or its last bytes. Read errors count as no.
bool looks_like_zip(Storage& storage, const File& file);

// Reads the structure of one archive: its directory and every local header, near ones together and many in
// flight; payload only where it is asked for. Folders and special files are left out. One thread at a time.
// Memory: the directory, and about 150 bytes a member.
class ZipDirectory {
 public:
  // How many of the first stored bytes of a member are wanted along with its header; at most `stored`.
  using Wanted = std::function<uint64_t(const ZipEntry&)>;
  // Gets them, in no order; `member` is into members(). Code::corrupt becomes the member's damage, any other
  // failure ends the walk. Where `calls` says so, several threads call both, for different members.
  using Take = std::function<Status(size_t member, Bytes first_stored)>;

  ZipDirectory(Storage& storage, const File& file, const IndexOptions& options)
      : storage_(storage), file_(file), options_(options), pace_(options.progress) {}

  // Damage is an error, or is told and passed over, as `options` says; what is not supported is an error.
  Status read(const Wanted& wanted, const Take& take, EachCall calls = EachCall::one_by_one);
  // In the order of the directory. Views into this object.
  const HugeVector<ZipMember>& members() const { return members_; }

 private:
  Status find_directory();
  Status find_zip64_end(uint64_t end_at, ZipEnd& end);
  Status read_directory();
  Status check_entry(ZipEntry& entry) const;
  Status read_local_headers(EachCall calls);
  uint64_t wanted_end(const ZipEntry& entry) const;
  Status take_head(Bytes head, size_t number);
  static Status take_local(Bytes head, ZipMember& member);
  Status hand_on(Bytes head, size_t number, uint64_t wanted);
  void find_overlaps();
  Status tell_damage();

  Storage& storage_;
  const File& file_;
  const IndexOptions& options_;
  Pace pace_;
  const Wanted* wanted_ = nullptr;
  const Take* take_ = nullptr;
  ZipEnd end_;
  uint64_t directory_start_ = 0, directory_end_ = 0;
  uint64_t shift_ = 0;  // bytes in front of the archive
  HugeVector<std::byte> directory_;
  HugeVector<ZipMember> members_;  // views into directory_
  HugeVector<size_t> order_;       // the sound ones, by place in the file
};

// Adds the members of a zip as samples, by the rules of grouping.h: zip's own way, and NPZ's where each array
// is a sample.
Status index_zip_members(Storage& storage, std::string_view path, const File& file, const Format& format,
                         const IndexOptions& options, IndexBuilder& out);

// The CRC-32 of members that are stored as they are: Format::own_checks of NPZ and of Zarr in a zip.
Status zip_own_checks(Storage& storage, std::string_view path, std::vector<CheckedStretch>& out);

}  // namespace packtrain
