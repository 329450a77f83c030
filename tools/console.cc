#include "tools/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

namespace packtrain::tools {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kStoppedExit = 4;

std::atomic<int> signals_seen{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler touches it");

void on_signal(int) {
  // The second one is from somebody who does not want to wait for the next safe point.
  if (signals_seen.fetch_add(1) > 0) _exit(kStoppedExit);
}

// Everything, or the errno of what failed.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Nobody is left to tell if stderr itself fails.
void write_error_text(std::string_view text) { write_all(STDERR_FILENO, text); }

size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ProgressStyle style_of(bool quiet) {
  if (quiet) return ProgressStyle::none;
  return isatty(STDERR_FILENO) ? ProgressStyle::bar : ProgressStyle::lines;
}

std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

int exit_code(Code code) {
  switch (code) {
    case Code::ok:
      return 0;
    case Code::corrupt:
      return 1;
    case Code::not_found:
    case Code::invalid:
    case Code::unsupported:
      return 2;
    case Code::no_room:
      return 3;
    case Code::stopped:
      return kStoppedExit;
    case Code::io:
    case Code::limit:
      return 5;
  }
  return 5;
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(number, &action, nullptr);
  }
  // A reader that has seen enough is no error, and a closed stderr must not end a long pack: writes answer
  // with EPIPE, and Console::flush decides.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file over the limit of `ulimit -f` is an error like a full disk
}

bool signal_came() { return signals_seen.load(std::memory_order_relaxed) > 0; }

Console::Console(ConsoleOptions options)
    : options_(std::move(options)),
      terminal_out_(isatty(STDOUT_FILENO) == 1),
      bar_(style_of(options_.quiet), options_.verb, {clock_seconds, write_error_text, terminal_columns}) {}

Progress Console::progress() {
  return [this](const ProgressEvent& event) {
    bar_.update(event);
    return !signal_came();
  };
}

void Console::say(std::string_view line) {
  if (options_.json) return;
  put(line);
  put("\n");
}

void Console::say_raw(std::string_view bytes) {
  if (!options_.json) put(bytes);
}

void Console::warn(std::string_view line) {
  bar_.clear();
  write_error_text(std::string(line) + "\n");
}

void Console::put(std::string_view bytes) {
  if (bytes.size() >= kBufferBytes) {
    flush();
    pending_ = bytes;
    flush();
    return;
  }
  pending_ += bytes;
  if (pending_.size() >= kBufferBytes || (terminal_out_ && pending_.back() == '\n')) flush();
}

std::string Console::name() const {
  return options_.verb.empty() ? "packtrain" : "packtrain " + options_.verb;
}

void Console::flush() {
  if (pending_.empty()) return;
  bar_.clear();
  const int error = write_all(STDOUT_FILENO, pending_);
  pending_.clear();
  if (error == 0) return;
  if (error == EPIPE) {  // `packtrain ls | head`: end as other filters do
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
  const Status failed = status_from_errno(error, "cannot write to stdout");
  write_error_text(name() + ": " + on_one_line(failed.text()) + "\n");
  _exit(exit_code(failed.code()));
}

int Console::finish(Status status) {
  if (status.code() == Code::stopped && signal_came()) {
    status = Status(Code::stopped, "stopped; run the same command again to continue");
  }
  if (options_.json) {
    if (!status.ok()) {
      Json error = Json::object();
      error.set("code", code_name(status.code()));
      error.set("message", status.message());
      error.set("where", status.where());
      result_.set("error", std::move(error));
    }
    put(result_.dump() + "\n");
  }
  bar_.clear();
  flush();
  if (!status.ok()) {
    write_error_text(name() + ": " + on_one_line(status.text()) + "\n");
  }
  return exit_code(status.code());
}

}  // namespace packtrain::tools
