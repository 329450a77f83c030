// The formats that formats.cc lists, one constant per file of this folder.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

extern const Format kArrow;
extern const Format kHdf5;
extern const Format kHdf5Vlen;
extern const Format kLmdb;
extern const Format kNpz;
extern const Format kParquet;
extern const Format kSquashfs;
extern const Format kTar;
extern const Format kZarr;
extern const Format kZip;

// Counts a member that becomes no sample, and keeps its name if it is among the first.
void note_left_out(std::string_view name, MembersLeftOut& out);

// Damage in a container, with what a user can do about it.
Status with_way_out(const Status& damage);

// A container as a shard of an index: its name there, its size and time.
ShardSpec shard_spec(const Format& format, std::string_view path, const File& file,
                     const IndexOptions& options);

}  // namespace packtrain
