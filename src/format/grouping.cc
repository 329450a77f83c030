#include "format/grouping.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <unordered_map>

#include "base/words.h"
#include "format/table.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

constexpr size_t kManyMembers = 8;  // of one kind in one sample

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }

// Where the last component of a path begins. The C library looks at many letters at once.
size_t component_begin(std::string_view path) {
  if (path.empty()) return 0;
  const auto* slash = static_cast<const char*>(::memrchr(path.data(), '/', path.size()));
  return slash == nullptr ? 0 : static_cast<size_t>(slash - path.data()) + 1;
}

// webdataset's own members: "__name__" or what lies below it, at the top.
bool is_meta_member(std::string_view name) {
  if (!name.starts_with("__")) return false;
  std::string_view top = name.substr(0, name.find('/'));
  return top.size() >= 4 && top.starts_with("__") && top.ends_with("__");
}

std::string_view folder_of(std::string_view name) {
  const size_t base = component_begin(name);
  if (base == 0) return {};
  std::string_view folder = name.substr(0, base - 1);
  while (folder.starts_with("./")) folder.remove_prefix(2);
  return folder == "." ? std::string_view() : folder;
}

std::string_view last_component(std::string_view path) { return path.substr(component_begin(path)); }

// The bytes of `a` that are whole components shared with `b`.
size_t common_components(std::string_view a, std::string_view b) {
  size_t same = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  bool whole_a = same == a.size(), whole_b = same == b.size();
  if ((whole_a || a[same] == '/') && (whole_b || b[same] == '/')) return same;
  size_t slash = a.substr(0, same).rfind('/');
  return slash == std::string_view::npos ? 0 : slash;
}

}  // namespace

std::optional<MemberName> split_member_name(std::string_view name, Divider divider) {
  const size_t base = component_begin(name);
  const size_t dot = divider == Divider::first_dot ? name.find('.', base) : name.rfind('.');
  if (dot == std::string_view::npos || dot <= base || dot + 1 == name.size()) return std::nullopt;
  if (name[base] == '.' || is_meta_member(name)) return std::nullopt;
  return MemberName{name.substr(0, dot), name.substr(dot + 1)};
}

bool lacks_extension(std::string_view name) {
  std::string_view last = last_component(name);
  if (last.empty() || last.starts_with('.') || is_meta_member(name)) return false;
  return last.find('.') >= last.size() - 1;
}

bool is_label_member(std::string_view name) {
  // Nearly all others are told by their last letter.
  if (name.empty() || lower(name.back()) != 's') return false;
  auto split = split_member_name(name);
  return split && split->field.size() == 3 && lower(split->field[0]) == 'c' &&
         lower(split->field[1]) == 'l' && lower(split->field[2]) == 's';
}

std::optional<int64_t> parse_label(Bytes bytes) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  std::string_view text = as_text(bytes);
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(kBlank) + 1));
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t label = 0;
  auto parsed = std::from_chars(text.data(), text.data() + text.size(), label);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return label;
}

void MemberList::add(std::string_view name, const MemberPlace& place) {
  members_.push_back({place, names_.size(), static_cast<uint32_t>(name.size()), kNoSample, 0, 0});
  names_.append(name);
}

void MemberList::add(std::string_view name, std::span<const Slice> slices, int64_t label) {
  add(name, {.offset = slices_.size(), .label = label});
  members_.back().slices = static_cast<uint32_t>(slices.size());
  slices_.insert(slices_.end(), slices.begin(), slices.end());
}

std::string_view MemberList::name(size_t member) const { return name_of(members_[member]); }

std::string_view MemberList::name_of(const Member& member) const {
  return std::string_view(names_).substr(member.name_at, member.name_bytes);
}

std::string_view MemberList::key(const Member& member) const {
  return std::string_view(names_).substr(member.name_at, member.key_bytes);
}

uint32_t MemberList::field_id(std::string_view lower_case) {
  auto fields = static_cast<uint32_t>(fields_.size());
  for (uint32_t step = 1; step <= fields; ++step) {
    uint32_t id = (last_field_ + step) % fields;
    if (fields_[id] == lower_case) return last_field_ = id;
  }
  fields_.emplace_back(lower_case);
  return last_field_ = fields;
}

bool MemberList::divide(Divider divider) {
  fields_.clear();
  std::string lower_case;
  for (Member& member : members_) {
    auto split = split_member_name(name_of(member), divider);
    member.key_bytes = split ? static_cast<uint32_t>(split->key.size()) : kNoSample;
    if (!split) continue;
    // Mostly the field that came after this one before, in lower case already.
    if (const uint32_t next = last_field_ + 1 < fields_.size() ? last_field_ + 1 : 0;
        next < fields_.size() && fields_[next] == split->field) {
      member.field = last_field_ = next;
      continue;
    }
    lower_case.assign(split->field);
    std::transform(lower_case.begin(), lower_case.end(), lower_case.begin(), lower);
    member.field = field_id(lower_case);
    if (fields_.size() > kMostFields) return false;
  }
  return true;
}

// The members that belong to samples, those of a sample next to each other.
HugeVector<uint32_t> MemberList::in_sample_order(Adjacency adjacency) const {
  HugeVector<uint32_t> order;
  order.reserve(members_.size());
  for (uint32_t i = 0; i < members_.size(); ++i) {
    if (members_[i].key_bytes != kNoSample) order.push_back(i);
  }
  if (adjacency == Adjacency::required) return order;
  // Sorted containers have the members of a sample next to each other, and need no table of all keys.
  if (std::is_sorted(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return key(members_[a]) < key(members_[b]); }))
    return order;

  std::unordered_map<std::string_view, uint32_t> samples;
  samples.reserve(order.size());
  std::vector<uint32_t> sample_of(members_.size());
  for (uint32_t i : order) {
    sample_of[i] = samples.try_emplace(key(members_[i]), static_cast<uint32_t>(samples.size())).first->second;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return sample_of[a] < sample_of[b]; });
  return order;
}

// The folder that holds a member is its class if all members lie equally deep in one tree: behind what their
// folders share, one component is left. All in one folder: that one, a class only if others know it as such.
std::vector<std::string> MemberList::class_folders() const {
  bool any = false;
  std::string_view common;
  for (const Member& member : members_) {
    if (member.key_bytes == kNoSample) continue;
    std::string_view folder = folder_of(name_of(member));
    if (folder.empty()) return {};
    common = any ? common.substr(0, common_components(common, folder)) : folder;
    any = true;
  }
  if (!any) return {};
  std::set<std::string_view> classes;
  std::string_view last;
  bool at_common = false, below_common = false;
  for (const Member& member : members_) {
    if (member.key_bytes == kNoSample) continue;
    std::string_view folder = folder_of(name_of(member));
    std::string_view rest = folder.substr(common.size());
    if (rest.starts_with('/')) rest.remove_prefix(1);
    (rest.empty() ? at_common : below_common) = true;
    if (rest.find('/') != std::string_view::npos) return {};
    std::string_view name = rest.empty() ? last_component(folder) : rest;
    if (name == last) continue;
    last = name;
    classes.insert(name);
  }
  if (at_common && below_common) return {};
  return {classes.begin(), classes.end()};
}

Status MemberList::add_samples(Adjacency adjacency, uint32_t shard, const IndexOptions& options,
                               IndexBuilder& out) {
  if (options.each_member) {
    for (const Member& member : members_) {
      out.begin_sample(name_of(member));
      add_field("data", member, shard, out);
      PACKTRAIN_TRY(out.end_sample());
    }
    return {};
  }
  if (!divide(Divider::first_dot) && !divide(Divider::last_dot)) {
    return Status(Code::unsupported,
                  "its members have more than " + std::to_string(kMostFields) +
                      " different extensions; give the files one extension per kind and make it again");
  }
  if (options.without_extension != nullptr) {
    for (const Member& member : members_) {
      if (member.key_bytes == kNoSample && lacks_extension(name_of(member))) {
        note_left_out(name_of(member), *options.without_extension);
      }
    }
  }
  bool has_labels = std::find(fields_.begin(), fields_.end(), "cls") != fields_.end();
  std::vector<std::string> folders, classes;
  if (!has_labels) folders = class_folders();
  if (options.classes != nullptr) {
    classes = folders.empty() ? std::vector<std::string>() : *options.classes;
  } else if (folders.size() > 1) {
    classes = folders;
  }
  if (options.class_folders != nullptr) *options.class_folders = folders;
  if (!classes.empty()) out.set_classes(classes);

  const HugeVector<uint32_t> order = in_sample_order(adjacency);
  // Of a single container; where there are many, each would ask for a little more than it has.
  if (out.samples() == 0) out.reserve(order.size(), order.size(), names_.size(), names_.size());
  bool noted = false;
  for (size_t first = 0; first < order.size();) {
    size_t last = first + 1;
    std::string_view sample = key(members_[order[first]]);
    while (last < order.size() && key(members_[order[last]]) == sample) ++last;
    if (!noted && last - first > kManyMembers)
      noted = note_merged(order.data() + first, order.data() + last, options);
    PACKTRAIN_TRY(add_sample(order.data() + first, order.data() + last, shard, classes, out));
    if (has_labels && options.without_number != nullptr)
      note_without_number(order.data() + first, order.data() + last, *options.without_number);
    first = last;
  }
  return {};
}

void MemberList::note_without_number(const uint32_t* first, const uint32_t* last, MembersLeftOut& out) const {
  for (const uint32_t* at = first; at != last; ++at) {
    const Member& member = members_[*at];
    if (fields_[member.field] == "cls" && member.place.label == kNoLabel) note_left_out(name_of(member), out);
  }
}

// Keys end at the first dot, so that "v1.0/a.b.1.jpg" and "v1.0/a.b.2.jpg" are fields of one sample. That is
// webdataset's rule, and rarely what was meant where there are many.
bool MemberList::note_merged(const uint32_t* first, const uint32_t* last, const IndexOptions& options) const {
  std::unordered_map<std::string_view, size_t> kinds;  // by what stands behind the last dot
  for (const uint32_t* at = first; at != last; ++at) {
    const std::string_view name = name_of(members_[*at]);
    const std::string_view kind = name.substr(name.rfind('.') + 1);
    if (++kinds[kind] != kManyMembers + 1) continue;
    add_note(options, "more than " + std::to_string(kManyMembers) + " members that end in ." +
                          printable(kind) + " are fields of the one sample " +
                          printable(key(members_[*first])) +
                          ", because a key ends at the first dot of a name; if each of them is a sample, "
                          "rename them without dots in front of the extension, or pack the files: packtrain "
                          "pack FOLDER OUT");
    return true;
  }
  return false;
}

void MemberList::add_field(std::string_view field, const Member& member, uint32_t shard,
                           IndexBuilder& out) const {
  const MemberPlace& place = member.place;
  if (member.slices > 0) {
    out.add_field(field, std::span(slices_).subspan(place.offset, member.slices), name_of(member));
    return;
  }
  if (place.pipeline == 0) {
    out.add_field(field, shard, place.offset, place.raw, place.check_kind, place.check, name_of(member));
    return;
  }
  Block block{.shard = shard,
              .pipeline = place.pipeline,
              .check_kind = place.check_kind,
              .offset = place.offset,
              .stored = place.stored,
              .raw = place.raw,
              .check = place.check};
  Slice slice{.block = out.add_block(block), .start = 0, .length = place.raw};
  out.add_field(field, std::span(&slice, 1), name_of(member));
}

Status MemberList::add_sample(const uint32_t* first, const uint32_t* last, uint32_t shard,
                              const std::vector<std::string>& classes, IndexBuilder& out) const {
  const Member& head = members_[*first];
  out.begin_sample(key(head));
  int64_t label = kNoLabel;
  for (const uint32_t* at = first; at != last; ++at) {
    const Member& member = members_[*at];
    for (const uint32_t* before = first; before != at; ++before) {
      if (members_[*before].field != member.field) continue;
      const bool same_name = name_of(members_[*before]) == name_of(member);  // else .jpg beside .JPG
      return Status(Code::corrupt,
                    "field \"" + fields_[member.field] + "\" of sample " + printable(key(head)) +
                        " comes twice: " + printable(name_of(members_[*before])) + " @ " +
                        std::to_string(members_[*before].place.offset) + " and " +
                        printable(name_of(member)) + " @ " + std::to_string(member.place.offset) +
                        "; an index cannot have both; packtrain pack " +
                        (same_name ? "takes the last, as tar would" : "makes two samples of them"));
    }
    add_field(fields_[member.field], member, shard, out);
    if (member.place.label != kNoLabel) label = member.place.label;
  }
  if (!classes.empty()) {
    std::string_view folder = last_component(folder_of(name_of(head)));
    auto found = std::lower_bound(classes.begin(), classes.end(), folder);
    if (found != classes.end() && *found == folder) label = found - classes.begin();
  }
  if (label != kNoLabel) out.set_label(label);
  return out.end_sample();
}

}  // namespace packtrain
