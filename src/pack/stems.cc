#include "pack/stems.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "base/words.h"

namespace packtrain {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "seg" and "seg.v2" may be the front part of a field's name, "2019.01" may not.
bool may_begin_field(std::string_view middle) {
  for (size_t at = 0; at <= middle.size();) {
    const size_t dot = std::min(middle.find('.', at), middle.size());
    if (at == dot || !is_letter(middle[at])) return false;
    at = dot + 1;
  }
  return true;
}

// How long the stem of `name` is, given the stems that names with a single extension have.
size_t joined_stem_bytes(std::string_view name, size_t own_bytes,
                         const std::unordered_set<std::string_view>& stems) {
  for (size_t dot = name.find('.', 1); dot < own_bytes; dot = name.find('.', dot + 1)) {
    if (name.size() - dot - 1 > kLongestField) continue;
    const std::string_view middle = name.substr(dot + 1, own_bytes - dot - 1);
    if (may_begin_field(middle) && stems.count(name.substr(0, dot)) != 0) return dot;
  }
  return own_bytes;
}

// Of every name, by the rule of group_by_stem.
std::vector<uint32_t> stem_lengths(std::span<const std::string_view> names) {
  std::vector<uint32_t> bytes(names.size());
  bool several_dots = false;
  for (size_t i = 0; i < names.size(); ++i) {
    bytes[i] = static_cast<uint32_t>(split_name(names[i]).stem_bytes);
    several_dots |= names[i].substr(0, bytes[i]).find('.', 1) < bytes[i];
  }
  if (!several_dots) return bytes;
  std::unordered_set<std::string_view> stems;
  for (size_t i = 0; i < names.size(); ++i)
    if (bytes[i] < names[i].size()) stems.insert(names[i].substr(0, bytes[i]));
  for (size_t i = 0; i < names.size(); ++i)
    if (bytes[i] < names[i].size())
      bytes[i] = static_cast<uint32_t>(joined_stem_bytes(names[i], bytes[i], stems));
  return bytes;
}

// Names of one stem: one sample, and one more for each name whose field is taken.
void append_sample(std::span<const std::string_view> names, std::span<const uint32_t> members,
                   uint32_t stem_bytes, std::vector<GroupedName>& out) {
  if (members.size() == 1) {
    out.push_back({members[0], members[0], stem_bytes});
    return;
  }
  struct Wish {
    std::string field;
    bool spelt_otherwise;
    uint32_t name;
  };
  std::vector<Wish> wishes;
  for (const uint32_t name : members) {
    std::string field = field_of(names[name], {name, 0, stem_bytes});
    const bool spelt_otherwise =
        names[name].substr(std::min<size_t>(stem_bytes + 1, names[name].size())) != field;
    wishes.push_back({std::move(field), spelt_otherwise, name});
  }
  std::sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) {
    return std::tie(a.field, a.spelt_otherwise, a.name) < std::tie(b.field, b.spelt_otherwise, b.name);
  });
  const auto granted = [&](size_t i) { return i == 0 || wishes[i].field != wishes[i - 1].field; };
  uint32_t first_name = UINT32_MAX;
  for (size_t i = 0; i < wishes.size(); ++i)
    if (granted(i)) first_name = std::min(first_name, wishes[i].name);
  for (size_t i = 0; i < wishes.size(); ++i) {
    const uint32_t name = wishes[i].name;
    if (granted(i)) {
      out.push_back({name, first_name, stem_bytes});
    } else {
      out.push_back({name, name, static_cast<uint32_t>(names[name].size())});
    }
  }
}

}  // namespace

NameKind name_kind(std::string_view name) {
  if (name.starts_with(".nfs") || ends_with_any(name, {"~", ".tmp", ".part", ".TMP"}))
    return NameKind::temporary;
  if (name.starts_with('.') || name == "Thumbs.db" || name == "desktop.ini" || name == "__MACOSX")
    return NameKind::hidden;
  return NameKind::ordinary;
}

std::string field_name(std::string_view extension) {
  if (extension.empty()) return "bin";
  std::string field(extension);
  for (char& c : field) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    } else if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-')) {
      c = '_';
    }
  }
  if (field.starts_with("__")) field.insert(0, "x");  // "__key__" and its like are webdataset's own
  return field;
}

NameParts split_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size() ||
      name.size() - dot - 1 > kLongestField)
    return {name.size(), {}};
  return {dot, name.substr(dot + 1)};
}

std::string field_of(std::string_view name, const GroupedName& grouped) {
  if (grouped.stem_bytes >= name.size()) return field_name(split_name(name).extension);
  return field_name(name.substr(grouped.stem_bytes + 1));
}

std::vector<GroupedName> group_by_stem(std::span<const std::string_view> names) {
  const std::vector<uint32_t> stem_bytes = stem_lengths(names);
  const auto stem = [&](uint32_t i) { return names[i].substr(0, stem_bytes[i]); };
  const auto before = [&](uint32_t a, uint32_t b) {
    const int order = stem(a).compare(stem(b));
    return order != 0 ? order < 0 : a < b;
  };
  std::vector<uint32_t> by_stem(names.size());
  std::iota(by_stem.begin(), by_stem.end(), 0U);
  // Most folders have their names in this order already.
  if (!std::is_sorted(by_stem.begin(), by_stem.end(), before))
    std::sort(by_stem.begin(), by_stem.end(), before);

  // `sample` is the position of the sample's first name until all are known.
  std::vector<GroupedName> grouped;
  grouped.reserve(names.size());
  for (size_t first = 0; first < by_stem.size();) {
    size_t end = first + 1;
    while (end < by_stem.size() && stem(by_stem[end]) == stem(by_stem[first])) ++end;
    append_sample(names, std::span(by_stem).subspan(first, end - first), stem_bytes[by_stem[first]], grouped);
    first = end;
  }
  const auto in_order = [](const GroupedName& a, const GroupedName& b) {
    return a.sample != b.sample ? a.sample < b.sample : a.name < b.name;
  };
  if (!std::is_sorted(grouped.begin(), grouped.end(), in_order))
    std::sort(grouped.begin(), grouped.end(), in_order);
  uint32_t samples = 0;
  for (size_t i = 0, first_name = 0; i < grouped.size(); ++i) {
    if (i > 0 && grouped[i].sample != first_name) ++samples;
    first_name = grouped[i].sample;
    grouped[i].sample = samples;
  }
  return grouped;
}

}  // namespace packtrain
