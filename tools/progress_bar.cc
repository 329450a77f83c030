#include "tools/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/words.h"

namespace packtrain::tools {
namespace {

constexpr double kSilentSeconds = 2;
constexpr double kRedrawSeconds = 0.1;
constexpr double kLineSeconds = 10;
constexpr double kMemorySeconds = 10;  // of RecentRate
constexpr size_t kLeastBar = 10, kMostBar = 40;
constexpr std::string_view kWipe = "\r\x1b[K";

double share(const ProgressEvent& event) {
  if (event.bytes_total > 0) {
    return std::min(1.0, static_cast<double>(event.bytes) / static_cast<double>(event.bytes_total));
  }
  if (event.items_total > 0) {
    return std::min(1.0, static_cast<double>(event.items) / static_cast<double>(event.items_total));
  }
  return -1;  // not known
}

double seconds_left(const ProgressEvent& event, const RecentRate& rate) {
  if (event.bytes_total > event.bytes && rate.bytes() > 0) {
    return static_cast<double>(event.bytes_total - event.bytes) / rate.bytes();
  }
  if (event.bytes_total == 0 && event.items_total > event.items && rate.items() > 0) {
    return static_cast<double>(event.items_total - event.items) / rate.items();
  }
  return -1;
}

std::string rate_in_words(double per_second) {
  if (per_second < 100) return fmt::format("{:.1f}", per_second);
  return count_in_words(static_cast<uint64_t>(per_second));
}

// What is known, most wanted first.
std::vector<std::string> parts(const ProgressEvent& event, const RecentRate& rate) {
  std::vector<std::string> out;
  const double left = seconds_left(event, rate);
  if (left >= 0) out.push_back(seconds_in_words(left) + " left");
  if (event.items_total > 0) {
    out.push_back(fmt::format("{} of {} {}", count_in_words(event.items), count_in_words(event.items_total),
                              event.unit));
  } else if (event.items > 0) {
    out.push_back(fmt::format("{} {}", count_in_words(event.items), event.unit));
  }
  if (rate.bytes() > 0) out.push_back(bytes_in_words(static_cast<uint64_t>(rate.bytes())) + "/s");
  if (rate.items() > 0) out.push_back(fmt::format("{} {}/s", rate_in_words(rate.items()), event.unit));
  return out;
}

}  // namespace

void RecentRate::restart(const ProgressEvent& event, double now) {
  items_ = bytes_ = 0;
  first_time_ = last_time_ = now;
  last_items_ = event.items;
  last_bytes_ = event.bytes;
}

void RecentRate::update(const ProgressEvent& event, double now) {
  const double passed = now - last_time_;
  if (passed <= 0) return;
  // Counts may step back where a phase is begun anew.
  const double items = event.items >= last_items_ ? static_cast<double>(event.items - last_items_) : 0;
  const double bytes = event.bytes >= last_bytes_ ? static_cast<double>(event.bytes - last_bytes_) : 0;
  // As long as less time has passed than the memory is long, this is the plain average since the start.
  const double weight = std::min(1.0, passed / std::min(kMemorySeconds, now - first_time_));
  items_ += weight * (items / passed - items_);
  bytes_ += weight * (bytes / passed - bytes_);
  last_time_ = now;
  last_items_ = event.items;
  last_bytes_ = event.bytes;
}

std::string progress_words(const ProgressEvent& event, const RecentRate& rate) {
  std::string line(event.phase);
  if (const double done = share(event); done >= 0) {
    line += fmt::format(" {} %", static_cast<int>(std::floor(100 * done)));
  }
  std::vector<std::string> known = parts(event, rate);
  if (!known.empty() && seconds_left(event, rate) >= 0)
    std::rotate(known.begin(), known.begin() + 1, known.end());
  for (const std::string& part : known) line += ", " + part;
  return line;
}

std::string progress_line(const ProgressEvent& event, const RecentRate& rate, size_t columns) {
  std::string line(event.phase);
  const double done = share(event);
  if (done >= 0) line += fmt::format(" {:3} %", static_cast<int>(std::floor(100 * done)));
  std::string facts;
  for (const std::string& part : parts(event, rate)) {
    const size_t bar = done >= 0 ? kLeastBar + 3 : 0;
    if (line.size() + bar + facts.size() + 2 + part.size() > columns) break;
    facts += "  " + part;
  }
  if (done >= 0 && line.size() + facts.size() + kLeastBar + 3 <= columns) {
    const size_t width = std::min(kMostBar, columns - line.size() - facts.size() - 3);
    const auto full = static_cast<size_t>(done * static_cast<double>(width));
    line += " [" + std::string(full, '=') + std::string(width - full, ' ') + "]";
  }
  return (line + facts).substr(0, columns);
}

ProgressBar::ProgressBar(ProgressStyle style, std::string verb, Terminal terminal)
    : style_(style), verb_(std::move(verb)), terminal_(std::move(terminal)) {
  started_ = drawn_at_ = terminal_.seconds();
}

void ProgressBar::update(const ProgressEvent& event) {
  if (style_ == ProgressStyle::none) return;
  Lock lock(mutex_);
  const double now = terminal_.seconds();
  if (event.phase != phase_) {
    phase_ = event.phase;
    rate_.restart(event, now);
  } else {
    rate_.update(event, now);
  }
  if (now - started_ < kSilentSeconds) return;
  if (style_ == ProgressStyle::bar) {
    if (visible_ && now - drawn_at_ < kRedrawSeconds) return;
    // One column stays free: a full line would make some terminals wrap.
    const size_t columns = std::max<size_t>(20, terminal_.columns()) - 1;
    terminal_.write(std::string(kWipe) + progress_line(event, rate_, columns));
    visible_ = true;
  } else {
    if (now - drawn_at_ < kLineSeconds) return;
    terminal_.write("packtrain " + verb_ + ": " + progress_words(event, rate_) + "\n");
  }
  drawn_at_ = now;
}

void ProgressBar::clear() {
  Lock lock(mutex_);
  if (!visible_) return;
  terminal_.write(kWipe);
  visible_ = false;
}

}  // namespace packtrain::tools
