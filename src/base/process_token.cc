#include "base/process_token.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>

namespace packtrain {
namespace {

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "host";
  std::string host(name);
  for (char& c : host) {
    if (c == '/' || c == '-') c = '_';
  }
  return host;
}

}  // namespace

std::string process_token() {
  static std::atomic<uint64_t> count = 0;
  return host_name() + "-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

bool token_is_dead(std::string_view token) {
  const size_t dash = token.find('-');
  if (dash == token.npos || token.substr(0, dash) != host_name()) return false;
  const std::string_view rest = token.substr(dash + 1);
  int pid = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != '-' || pid <= 0) return false;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace packtrain
