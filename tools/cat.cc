// packtrain cat: one field of one sample to stdout.
#include <charconv>

#include "base/words.h"
#include "packtrain/storage.h"
#include "tools/command.h"
#include "tools/dataset_argument.h"

namespace packtrain::tools {
namespace {

struct CatArguments {
  std::string dataset, sample, field;
};

std::string base64(Bytes bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - at);
    uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i)
      three = three << 8 | (i < have ? std::to_integer<uint32_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) out += i <= have ? kLetters[three >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

// A key, or "#12", or a number where no key is spelled like it.
Result<uint64_t> find_sample(const Dataset& dataset, const std::string& name) {
  Result<uint64_t> found = dataset.find(name);
  if (found.ok() || found.status().code() != Code::not_found) return found;
  std::string_view digits = name;
  if (digits.starts_with('#')) digits.remove_prefix(1);
  uint64_t index = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || stop != digits.data() + digits.size()) {
    return Status(Code::not_found,
                  "there is no sample '" + printable(name) + "'; packtrain ls lists the keys");
  }
  if (index < dataset.samples()) return index;
  return Status(Code::not_found, "there is no sample " + std::to_string(index) + "; the dataset has " +
                                     count_in_words(dataset.samples()) + ", counted from 0");
}

// The field that was named, or the only one that is not the class.
Result<uint32_t> find_field(const Dataset& dataset, uint64_t sample, const std::string& name) {
  const Manifest& manifest = dataset.manifest();
  std::vector<uint32_t> present;
  std::string names;
  for (uint32_t field = 0; field < manifest.fields.size(); ++field) {
    if (!dataset.locate(sample, field).present) continue;
    names += (names.empty() ? "" : ", ") + manifest.fields[field].name;
    if (name.empty() ? manifest.fields[field].name != "cls" : manifest.fields[field].name == name) {
      present.push_back(field);
    }
  }
  if (present.size() == 1) return present[0];
  if (!name.empty()) {
    return Status(Code::not_found,
                  "the sample has no field '" + printable(name) + "'; it has " + printable(names));
  }
  return Status(Code::invalid, "name one of the sample's fields: " + printable(names));
}

Status run_cat(const CatArguments& arguments, Run& run) {
  PACKTRAIN_ASSIGN(dataset, open_for(run, arguments.dataset));
  PACKTRAIN_ASSIGN(sample, find_sample(*dataset, arguments.sample));
  PACKTRAIN_ASSIGN(field, find_field(*dataset, sample, arguments.field));
  std::vector<std::byte> bytes;
  PACKTRAIN_TRY(dataset->read(sample, field, bytes));
  run.say_raw(as_text(bytes));
  if (!run.json()) return {};
  PACKTRAIN_ASSIGN(key, dataset->key(sample));
  run.result().set("index", sample).set("key", key).set("field", dataset->manifest().fields[field].name);
  run.result().set("bytes", static_cast<uint64_t>(bytes.size()));
  if (is_utf8(as_text(bytes))) {
    run.result().set("text", as_text(bytes));
  } else {
    run.result().set("base64", base64(bytes));
  }
  return {};
}

}  // namespace

std::function<Status(Run&)> declare_cat(Options& options) {
  auto arguments = std::make_shared<CatArguments>();
  options.summary("Writes one field of one sample to stdout.")
      .example("packtrain cat photos.pt cat/0001 jpg > cat.jpg")
      .example("packtrain cat photos.pt '#12'")
      .positional("DATASET", arguments->dataset, kDatasetHelp)
      .positional("KEY|INDEX", arguments->sample,
                  "the sample's key, or its number from 0 (#12, or 12 if no key is 12)")
      .positional("FIELD", arguments->field, "may be left out where there is one besides cls", false);
  return [arguments](Run& run) { return run_cat(*arguments, run); };
}

}  // namespace packtrain::tools
