// The formats that formats.cc lists, one constant per file of this folder.
#pragma once

#include "packtrain/format.h"

namespace packtrain {

extern const Format kArrow;
extern const Format kHdf5;
extern const Format kHdf5Vlen;
extern const Format kLmdb;
extern const Format kNpy;
extern const Format kNpz;
extern const Format kParquet;
extern const Format kSquashfs;
extern const Format kTar;
extern const Format kZarr;
extern const Format kZip;

// Counts a member that becomes no sample, and keeps its name if it is among the first.
void note_left_out(std::string_view name, MembersLeftOut& out);

// Adds a sentence that the user should read, unless it is there or nobody asks for it.
void add_note(const IndexOptions& options, std::string note);
// The same for a column that is called as labels are and is none, where a sample has no other.
void note_no_labels(const IndexOptions& options, std::string_view column, std::string_view what_it_is);

// The same for a column that holds labels beside the one that they are taken from, and becomes a field.
void note_other_labels(const IndexOptions& options, std::string_view column, std::string_view other);

// Damage in a container, with what a user can do about it.
Status with_way_out(const Status& damage);

// A container as a shard of an index: its name there, its size and time.
ShardSpec shard_spec(const Format& format, std::string_view path, const File& file,
                     const IndexOptions& options);

}  // namespace packtrain
