#include "pack/class_file.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/json.h"
#include "base/words.h"
#include "pack/table_text.h"

namespace packtrain {
namespace {

// One member of a JSON object, either way round.
bool read_member(const Json::Member& member, std::string& name, uint64_t& number) {
  if (member.second.is_integer()) {
    name = member.first;
    number = member.second.as_uint(UINT64_MAX);
    return true;
  }
  if (!member.second.is_string()) return false;
  name = member.second.as_string();
  const char* end = member.first.data() + member.first.size();
  const auto parsed = std::from_chars(member.first.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

Result<std::vector<std::string>> from_json(const Json& document) {
  std::vector<std::string> classes;
  if (document.is_array()) {
    for (const Json& name : document.items()) {
      if (!name.is_string())
        return Status(Code::invalid, "an entry of the list is no text; write the names of classes only");
      classes.push_back(name.as_string());
    }
    return classes;
  }
  classes.resize(document.members().size());
  for (const auto& member : document.members()) {
    std::string name;
    uint64_t number = 0;
    if (!read_member(member, name, number))
      return Status(Code::invalid,
                    "\"" + printable(member.first) +
                        "\" is neither name: number nor number: name; write one of them for each class");
    if (number >= classes.size() || !classes[number].empty())
      return Status(Code::invalid,
                    "\"" + printable(member.first) +
                        "\": numbers must run from 0 to the number of classes less one, each once");
    classes[number] = name;
  }
  return classes;
}

}  // namespace

Result<std::vector<std::string>> parse_class_file(std::string_view text) {
  std::vector<std::string> classes;
  const std::string_view content = trimmed(text);
  if (content.starts_with('[') || content.starts_with('{')) {
    PACKTRAIN_ASSIGN(document, Json::parse(content));
    PACKTRAIN_ASSIGN(named, from_json(document));
    classes = std::move(named);
  } else {
    TableText lines(text, '\n', Quotes::none);
    for (std::vector<std::string> row;;) {
      PACKTRAIN_ASSIGN(more, lines.next(row));
      if (!more) break;
      if (const std::string_view name = trimmed(row[0]); !name.empty()) classes.emplace_back(name);
    }
  }
  if (classes.empty())
    return Status(Code::invalid, "names no class; write one name a line, or a JSON list of names");
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : classes) {
    if (name.empty()) return Status(Code::invalid, "a class has no name; give it one");
    if (!seen.insert(name).second)
      return Status(Code::invalid, "class \"" + printable(name) + "\" comes twice; name each class once");
  }
  return classes;
}

Result<std::vector<std::string>> read_class_file(Storage& storage, const std::string& path) {
  PACKTRAIN_ASSIGN(text, read_whole(storage, path, uint64_t{1} << 30));
  auto classes = parse_class_file(text);
  if (!classes.ok()) return classes.status().at(printable(path));
  return classes;
}

}  // namespace packtrain
