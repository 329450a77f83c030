// Which files are one sample: the rule that makes a.jpg, a.json and a.seg.png the fields jpg, json and
// seg.png of the sample `a`. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace packtrain {

// An extension is at most this long; what follows the last dot of a name and is longer belongs to the stem.
inline constexpr size_t kLongestField = 40;

enum class NameKind : uint8_t {
  ordinary,
  hidden,     // .x, ._x, Thumbs.db, desktop.ini, __MACOSX
  temporary,  // x~, x.tmp, x.part, .nfs*
};
NameKind name_kind(std::string_view name);

// A field's name from an extension: lower case, of [a-z0-9._-] only; "bin" for an empty one.
std::string field_name(std::string_view extension);

struct NameParts {
  size_t stem_bytes = 0;       // the stem is what the name begins with
  std::string_view extension;  // behind the dot; empty if there is none
};
// One name by itself: the extension is what follows its last dot. A dot at either end separates nothing.
NameParts split_name(std::string_view name);

// A name of a folder and the sample it belongs to. 12 bytes, for folders of millions of files.
struct GroupedName {
  uint32_t name = 0;        // position in the names given
  uint32_t sample = 0;      // ascending; samples are in the order of their first name
  uint32_t stem_bytes = 0;  // all of the name: the sample is this name's own
};
// The field that a grouped name is.
std::string field_of(std::string_view name, const GroupedName& grouped);

// The samples of one folder, from its sorted names. Each name is split at its last dot, but for one of
// several dots, a.seg.png, that joins the shorter stem `a` if that one has a file with a single extension
// (a.jpg) there. Parts between dots that do not begin with a letter are dates and counters and never fields,
// so IMG.2019.01.jpg is no field of IMG.jpg. Of two names that want the same field of one sample (a.JPG,
// a.jpg) the one that is spelt as the field keeps it, and the other becomes a sample of its own with its
// whole name as the stem.
std::vector<GroupedName> group_by_stem(std::span<const std::string_view> sorted_names);

}  // namespace packtrain
