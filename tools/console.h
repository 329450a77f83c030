// What a verb talks to: stdout, stderr, the progress bar and the signals that stop it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "packtrain/status.h"
#include "tools/command.h"
#include "tools/progress_bar.h"

namespace packtrain::tools {

struct ConsoleOptions {
  bool json = false, quiet = false;
  uint32_t jobs = 0;
  std::string verb;  // "" before it is known
  std::string command_line;
};

// Thread-safe where Run's caller may be on another thread: progress and warn. There is one per process.
class Console final : public Run {
 public:
  explicit Console(ConsoleOptions options);

  bool json() const override { return options_.json; }
  bool quiet() const override { return options_.quiet; }
  uint32_t jobs() const override { return options_.jobs; }
  const std::string& command_line() const override { return options_.command_line; }
  Progress progress() override;
  void say(std::string_view line) override;
  void say_raw(std::string_view bytes) override;
  void warn(std::string_view line) override;
  Json& result() override { return result_; }
  Status bad_data(std::string message) override { return Status(Code::corrupt, std::move(message)); }

  // Ends the verb's talk: the JSON object, the error's last line; returns the exit code.
  int finish(Status status);

 private:
  void put(std::string_view bytes);
  void flush();
  std::string name() const;  // as messages begin

  const ConsoleOptions options_;
  const bool terminal_out_;
  ProgressBar bar_;
  Json result_ = Json::object();
  std::string pending_;  // of stdout
};

int exit_code(Code code);
// From now on the first SIGINT, SIGTERM or SIGHUP only sets a flag, and a second one ends the process.
// Signals that were ignored stay so (nohup, background jobs of a script).
void catch_signals();
bool signal_came();

}  // namespace packtrain::tools
