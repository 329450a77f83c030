#include "tools/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <new>

#include "base/out_of_memory.h"
#include "base/version.h"
#include "base/words.h"
#include "tools/console.h"

namespace packtrain::tools {
namespace {

constexpr size_t kHelpColumns = 100;

// Edits that turn one word into the other: letters put in, taken out or changed, neighbours swapped.
size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// "; did you mean …?", or nothing if no known word is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string* nearest = nullptr;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    size_t edits = edits_between(word, candidate);
    if (word.size() >= 2 && candidate.starts_with(word)) edits = std::min<size_t>(edits, 1);
    if (edits < std::min(least, candidate.size())) {
      least = edits;
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? "" : fmt::format("; did you mean {}?", *nearest);
}

// Adds `text` to `out` in lines of at most kHelpColumns, those behind the first indented to `column`.
void append_wrapped(std::string& out, size_t column, std::string_view text) {
  size_t at = column;
  bool first = true;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (!first && at + 1 + word.size() > kHelpColumns) {
      out += "\n" + std::string(column, ' ');
      at = column;
      first = true;
    }
    if (!first) out += ' ', ++at;
    out += word;
    at += word.size();
    first = false;
  }
  out += '\n';
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

// The options of one verb, over one CLI::App. Throws CLI11's errors; run_command catches them.
class VerbOptions final : public Options {
 public:
  explicit VerbOptions(std::string_view verb) : verb_(verb) {
    app_.set_help_flag("");
    app_.allow_extras();  // so that unknown options are named in our words
  }

  Options& summary(std::string text) override {
    summary_ = std::move(text);
    return *this;
  }
  Options& example(std::string command) override {
    examples_.push_back(std::move(command));
    return *this;
  }
  Options& positional(std::string name, std::string& into, std::string help, bool required) override {
    app_.add_option(internal_name(), [&into](const CLI::results_t& words) {
      into = words.front();
      return true;
    });
    usage_ += required ? " " + name : " [" + name + "]";
    positionals_.push_back({name, std::move(help)});
    if (required) missing_.push_back([&into, name] { return into.empty() ? name : std::string(); });
    return *this;
  }
  Options& positionals(std::string name, std::vector<std::string>& into, std::string help,
                       size_t at_least) override {
    app_.add_option(internal_name(), into)->expected(-1);
    usage_ += " " + name + (name.find("…") == std::string::npos ? "…" : "");
    positionals_.push_back({name, std::move(help)});
    missing_.push_back([&into, name, at_least] { return into.size() < at_least ? name : std::string(); });
    return *this;
  }
  Options& text(std::string flags, std::string& into, std::string help) override {
    add(flags, value_name(flags), std::move(help), into.empty() ? "" : into,
        [&into](const std::string& word) {
          into = word;
          return std::string(word.empty() ? "an empty text names nothing" : "");
        });
    return *this;
  }
  Options& choice(std::string flags, std::string& into, std::vector<std::string> choices,
                  std::string help) override {
    add(flags, joined(choices, "|"), std::move(help), into, [&into, choices](const std::string& word) {
      if (std::find(choices.begin(), choices.end(), word) == choices.end()) {
        return fmt::format("'{}' is none of {}{}", printable(word), joined(choices, ", "),
                           suggestion(word, choices));
      }
      into = word;
      return std::string();
    });
    return *this;
  }
  Options& list(std::string flags, std::vector<std::string>& into, std::string help) override {
    add(
        flags, value_name(flags) + ",…", std::move(help), joined(into, ","),
        [&into, first = true](const std::string& word) mutable {
          if (first) into.clear();  // what the user says replaces the default
          first = false;
          for (size_t at = 0; at <= word.size();) {
            const size_t comma = std::min(word.find(',', at), word.size());
            if (comma > at) into.push_back(word.substr(at, comma - at));
            at = comma + 1;
          }
          return std::string(into.empty() ? "an empty list names nothing" : "");
        },
        true);
    return *this;
  }
  Options& number(std::string flags, uint64_t& into, std::string help) override {
    add(flags, "N", std::move(help), into == 0 ? "" : std::to_string(into),
        [&into](const std::string& word) { return take_number(word, into); });
    return *this;
  }
  Options& number(std::string flags, std::optional<uint64_t>& into, std::string help) override {
    add(flags, "N", std::move(help), into ? std::to_string(*into) : "",
        [&into](const std::string& word) { return take_number(word, into.emplace()); });
    return *this;
  }
  Options& size(std::string flags, uint64_t& into, std::string help) override {
    add(flags, "SIZE", std::move(help), into == 0 ? "" : bytes_in_words(into),
        [&into](const std::string& word) {
          Result<uint64_t> bytes = parse_bytes(word);
          if (!bytes.ok()) return bytes.status().message();
          into = *bytes;
          return std::string();
        });
    return *this;
  }
  Options& flag(std::string flags, bool& into, std::string help) override {
    app_.add_flag(flags, into);
    options_.push_back({spelled(flags), std::move(help)});
    return *this;
  }

  const std::string& summary() const { return summary_; }

  Status parse(const std::vector<std::string>& words) {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    try {
      app_.parse(std::move(reversed));
    } catch (const CLI::ArgumentMismatch& error) {
      const std::string_view what = error.what();  // begins with the option's name and a colon
      return wrong(fmt::format("{} needs a value", what.substr(0, what.find(':'))));
    } catch (const CLI::ConversionError& error) {
      return wrong(trouble_.empty() ? value_for_flag(words, error.what()) : trouble_);
    } catch (const CLI::ParseError& error) {
      return wrong(error.what());
    }
    for (const std::string& word : app_.remaining()) {
      if (word == "--") continue;  // CLI11 leaves the mark itself over
      if (word.size() > 1 && word[0] == '-') {
        const std::string name = word.substr(0, word.find('='));
        return wrong(fmt::format("there is no option {}{}", printable(name), suggestion(name, flags_)));
      }
      return wrong(fmt::format("'{}' is one argument too many", printable(word)));
    }
    for (const auto& missing : missing_) {
      if (const std::string name = missing(); !name.empty()) return wrong(name + " is missing");
    }
    return {};
  }

  std::string help() const {
    std::string out;
    append_wrapped(out, 0, summary_);
    out += fmt::format("\nusage: packtrain {} [options]{}\n", verb_, usage_);
    append_table(out, "", positionals_);
    append_table(out, "options:\n", options_);
    if (!examples_.empty()) {
      out += examples_.size() == 1 ? "\nexample:\n" : "\nexamples:\n";
      for (const std::string& command : examples_) out += "  " + command + "\n";
    }
    return out;
  }

 private:
  struct Row {
    std::string name, help;
  };

  static std::string take_number(const std::string& word, uint64_t& into) {
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, into);
    if (error == std::errc() && stop == end) return "";
    if (error == std::errc::result_out_of_range && stop == end)
      return fmt::format("'{}' is too large; give a whole number up to {}", printable(word), UINT64_MAX);
    if (word.size() > 1 && word[0] == '-' && word.find_first_not_of("0123456789", 1) == word.npos)
      return fmt::format("'{}' is below 0; give a whole number from 0 on", printable(word));
    return fmt::format("'{}' is not a whole number", printable(word));
  }

  // Takes one word; returns what is wrong with it, or nothing.
  using Take = std::function<std::string(const std::string& word)>;

  void add(const std::string& flags, const std::string& value, std::string help, const std::string& otherwise,
           Take take, bool repeatable = false) {
    const std::string name = flags.substr(flags.rfind(',') + 1);
    CLI::Option* option = app_.add_option(flags, [this, name, take, repeatable](const CLI::results_t& words) {
      std::string wrong_with_it = words.size() > 1 && !repeatable ? "is given twice" : "";
      for (size_t i = 0; i < words.size() && wrong_with_it.empty(); ++i) wrong_with_it = take(words[i]);
      if (!wrong_with_it.empty()) trouble_ = name + ": " + wrong_with_it;
      return wrong_with_it.empty();
    });
    option->expected(1);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);  // so that we say what is wrong with two
    if (!otherwise.empty()) help += fmt::format(" (default: {})", otherwise);
    options_.push_back({spelled(flags) + " " + value, std::move(help)});
  }

  std::string spelled(const std::string& flags) {
    std::string out;
    for (size_t at = 0; at < flags.size();) {
      const size_t comma = std::min(flags.find(',', at), flags.size());
      flags_.push_back(flags.substr(at, comma - at));
      out += (out.empty() ? "" : ", ") + flags_.back();
      at = comma + 1;
    }
    return out;
  }

  static std::string value_name(const std::string& flags) {
    std::string name = flags.substr(flags.rfind(',') + 1);
    name.erase(0, name.find_first_not_of('-'));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return c == '-' ? '_' : std::toupper(c); });
    return name;
  }

  // The flag among the words that was given a value; `otherwise` if there is none.
  std::string value_for_flag(const std::vector<std::string>& words, std::string_view otherwise) const {
    for (const std::string& word : words) {
      const std::string name = word.substr(0, word.find('='));
      if (name.size() < word.size() && std::find(flags_.begin(), flags_.end(), name) != flags_.end())
        return name + " takes no value";
    }
    return std::string(otherwise);
  }

  // CLI11 does not take every name that a user should see ("[NAME=]SOURCE").
  std::string internal_name() const { return "positional" + std::to_string(positionals_.size()); }

  Status wrong(std::string_view what) const {
    return Status(Code::invalid,
                  fmt::format("{}{} see packtrain {} --help", what, what.ends_with('?') ? "" : ";", verb_));
  }

  static void append_table(std::string& out, std::string_view title, const std::vector<Row>& rows) {
    if (rows.empty()) return;
    constexpr size_t kNameColumns = 24;
    out += fmt::format("\n{}", title);
    for (const Row& row : rows) {
      out += "  " + row.name;
      if (row.name.size() + 2 > kNameColumns) {
        out += "\n" + std::string(2 + kNameColumns, ' ');
      } else {
        out += std::string(kNameColumns - row.name.size(), ' ');
      }
      append_wrapped(out, 2 + kNameColumns, row.help);
    }
  }

  CLI::App app_;
  const std::string verb_;
  std::string summary_, usage_, trouble_;
  std::vector<std::string> examples_, flags_;
  std::vector<Row> positionals_, options_;
  std::vector<std::function<std::string()>> missing_;
};

bool has_word(const std::vector<std::string>& words, std::string_view a, std::string_view b = "") {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == a || (!b.empty() && word == b)) return true;
  }
  return false;
}

// As a shell would take it again.
std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (char c : word) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

std::string list_of_verbs(const std::vector<Verb>& verbs) {
  std::string out =
      "packtrain packs piles of small files into shards that train fast, checks them, and gives them "
      "back.\n\n"
      "usage: packtrain VERB [options] …\n\n";
  for (const Verb& verb : verbs) {
    VerbOptions options(verb.name);
    verb.declare(options);
    out += fmt::format("  {:<10}", verb.name);
    const std::string& summary = options.summary();
    std::string_view sentence = std::string_view(summary).substr(0, summary.find(". "));  // its first one
    if (sentence.ends_with('.')) sentence.remove_suffix(1);
    append_wrapped(out, 12, sentence);
  }
  out +=
      "\nEvery verb has --help with an example, --json, --quiet and --jobs N.\n"
      "Exit codes: 0 done; 1 the data are bad; 2 wrong usage; 3 no room; 4 stopped, run it again; 5 the "
      "storage failed.\n";
  return out;
}

int print(const std::string& text) {
  Console console({});
  console.say_raw(text);
  return console.finish({});
}

int run_verb(const Verb& verb, const std::vector<std::string>& words, std::string command_line) {
  VerbOptions options(verb.name);
  uint64_t jobs = 0;
  bool json = false, quiet = false, help = false;
  const std::function<Status(Run&)> body = verb.declare(options);
  options.number("-j,--jobs", jobs, "threads to work with (default: the cores granted to this process)")
      .flag("--json", json, "print one JSON object instead of text")
      .flag("-q,--quiet", quiet, "no progress on stderr")
      .flag("-h,--help", help, "this text");
  if (has_word(words, "-h", "--help")) return print(options.help());

  const Status parsed = options.parse(words);
  Console console({.json = json || has_word(words, "--json"),
                   .quiet = quiet,
                   .jobs = static_cast<uint32_t>(std::min<uint64_t>(jobs, 4096)),
                   .verb = std::string(verb.name),
                   .command_line = std::move(command_line)});
  if (!parsed.ok()) return console.finish(parsed);
  Status status;
  try {
    status = body(console);
  } catch (const std::bad_alloc&) {
    status = out_of_memory();
  } catch (const std::exception& error) {
    status = Status(Code::io, fmt::format("unexpected failure: {}", error.what()));
  }
  return console.finish(status);
}

}  // namespace

int run_command(int argc, char** argv, const std::vector<Verb>& verbs) {
  catch_signals();
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  std::string command_line = "packtrain";
  for (const std::string& word : words) command_line += " " + shell_word(word);

  if (words.empty() || words[0] == "-h" || words[0] == "--help") return print(list_of_verbs(verbs));
  if (words[0] == "--version") return print(fmt::format("packtrain {}\n", version()));
  if (words[0] == "help") {
    if (words.size() == 1) return print(list_of_verbs(verbs));
    words = {words[1], "--help"};
  }
  std::vector<std::string> names;
  for (const Verb& verb : verbs) {
    if (verb.name == words[0]) {
      words.erase(words.begin());
      return run_verb(verb, words, std::move(command_line));
    }
    names.emplace_back(verb.name);
  }
  Console console({.json = has_word(words, "--json")});
  if (words[0].starts_with('-'))
    return console.finish(
        Status(Code::invalid, fmt::format("the verb is missing in front of {}: packtrain VERB "
                                          "[options]; see packtrain --help",
                                          printable(words[0]))));
  const std::string hint = suggestion(words[0], names);
  return console.finish(
      Status(Code::invalid, fmt::format("there is no verb '{}'{}{} see packtrain --help", printable(words[0]),
                                        hint, hint.empty() ? ";" : "")));
}

}  // namespace packtrain::tools
