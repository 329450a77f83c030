// What every verb of the command shares: options declared once, progress on stderr, one JSON object on
// stdout.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "packtrain/progress.h"
#include "packtrain/status.h"

namespace packtrain::tools {

// The options of one verb, declared with where they are kept. CLI11 is behind it, in command.cc alone.
class Options {
 public:
  virtual ~Options() = default;
  virtual Options& summary(std::string text) = 0;
  virtual Options& example(std::string command) = 0;  // shown by --help; may be called again
  virtual Options& positional(std::string name, std::string& into, std::string help,
                              bool required = true) = 0;
  virtual Options& positionals(std::string name, std::vector<std::string>& into, std::string help,
                               size_t at_least = 1) = 0;
  virtual Options& text(std::string flags, std::string& into, std::string help) = 0;  // "--to", "-o,--out"
  virtual Options& choice(std::string flags, std::string& into, std::vector<std::string> choices,
                          std::string help) = 0;
  virtual Options& list(std::string flags, std::vector<std::string>& into,
                        std::string help) = 0;  // comma separated, repeatable, never empty
  virtual Options& number(std::string flags, uint64_t& into, std::string help) = 0;
  virtual Options& number(std::string flags, std::optional<uint64_t>& into, std::string help) = 0;
  virtual Options& size(std::string flags, uint64_t& into, std::string help) = 0;  // "512M"
  virtual Options& flag(std::string flags, bool& into, std::string help) = 0;
};

// What a running verb may use.
class Run {
 public:
  virtual ~Run() = default;
  virtual bool json() const = 0;
  virtual bool quiet() const = 0;
  virtual uint32_t jobs() const = 0;  // --jobs, or 0 for the cores granted
  virtual const std::string& command_line() const = 0;
  // Draws a bar with rate and time left on a terminal, prints a line every 10 s otherwise, nothing with
  // --quiet. Stops the work once SIGINT, SIGTERM or SIGHUP has come.
  virtual Progress progress() = 0;
  // To stdout, for people; nothing with --json.
  virtual void say(std::string_view line) = 0;
  virtual void say_raw(std::string_view bytes) = 0;  // without a line end
  // To stderr, with or without --json.
  virtual void warn(std::string_view line) = 0;
  // Members of the one object that --json prints at the end; nothing without --json.
  virtual Json& result() = 0;
  // The verb is done, but the data are bad: exit code 1 with this last line.
  virtual Status bad_data(std::string message) = 0;
};

// A verb: its name, and a function that declares its options and returns what runs afterwards. The state that
// the options point into lives in the closure.
struct Verb {
  std::string_view name;
  std::function<Status(Run&)> (*declare)(Options&);
};

// One function per file of tools/, each defined in VERB.cc; main.cc lists them.
std::function<Status(Run&)> declare_pack(Options&);
std::function<Status(Run&)> declare_index(Options&);
std::function<Status(Run&)> declare_info(Options&);
std::function<Status(Run&)> declare_ls(Options&);
std::function<Status(Run&)> declare_cat(Options&);
std::function<Status(Run&)> declare_extract(Options&);
std::function<Status(Run&)> declare_show(Options&);
std::function<Status(Run&)> declare_verify(Options&);
std::function<Status(Run&)> declare_doctor(Options&);
std::function<Status(Run&)> declare_synth(Options&);

int run_command(int argc, char** argv, const std::vector<Verb>& verbs);

}  // namespace packtrain::tools
