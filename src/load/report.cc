#include <fmt/format.h>

#include "base/words.h"
#include "packtrain/load.h"

namespace packtrain {
namespace {

constexpr double kReady = 0.05;  // next() that waits for less than this part of the time is not the limit

}  // namespace

std::string_view LoadReport::limit() const {
  if (batches < 2 || seconds <= 0) return "unknown";
  if (seconds_waited < kReady * seconds) return "training";
  return read_wait > decode ? "storage" : "decode";
}

std::string LoadReport::text() const {
  if (batches == 0) return "no batch was delivered yet\n";
  const double all = read_wait + decode + blocked;
  const auto percent = [&](double part) { return all > 0 ? 100 * part / all : 0; };
  std::string text = fmt::format(
      "{} in {}, {:.1f} s: {:.0f} samples/s, {}/s from storage\n", counted(samples, "sample"),
      batches == 1 ? "1 batch" : count_in_words(batches) + " batches", seconds,
      static_cast<double>(samples) / std::max(seconds, 1e-9),
      bytes_in_words(static_cast<uint64_t>(static_cast<double>(bytes) / std::max(seconds, 1e-9))));
  text += fmt::format(
      "next() waited {:.1f} s of it; {}: {:.0f} % decoding, {:.0f} % waiting for bytes, {:.0f} % "
      "waiting for room; {} held\n",
      seconds_waited, counted(threads, "thread"), percent(decode), percent(read_wait), percent(blocked),
      bytes_in_words(memory));
  const std::string_view what = limit();
  if (what == "training") {
    text += "limit: training. Batches are ready when they are asked for; loading does not slow it down.\n";
  } else if (what == "storage") {
    text +=
        "limit: storage. Bytes come slower than they are decoded: copy the dataset to a nearer place, or use "
        "order=\"streams\".\n";
  } else if (what == "decode") {
    text +=
        "limit: decode. All threads are busy decoding: give the job more cores, pack smaller images, or use "
        "dct_scaling=True.\n";
  } else {
    text += "limit: unknown. Too little was loaded to tell.\n";
  }
  if (errors > 0) {
    const double asked_for = static_cast<double>(samples + errors - replaced);
    text += fmt::format("{} ({:.2g} %) could not be loaded", counted(errors, "sample"),
                        100 * static_cast<double>(errors) / asked_for);
    if (replaced > 0)
      text += fmt::format("; {} of their places {} another", count_in_words(replaced),
                          replaced == 1 ? "has" : "have");
    text += fmt::format("; the first is {}: {}\n", bad.front().key, bad.front().what);
  }
  if (warnings > 0)
    text += fmt::format("{} in images {} passed over, as no pixel depends on {}\n",
                        warnings == 1 ? "1 oddity" : count_in_words(warnings) + " oddities",
                        warnings == 1 ? "was" : "were", warnings == 1 ? "it" : "them");
  return text;
}

}  // namespace packtrain
