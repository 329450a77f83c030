// Names of classes, and the words of synthetic documents.
#include <array>
#include <string_view>

#include "pack/synth_random.h"
#include "pack/synth_sample.h"

namespace packtrain {

namespace {

constexpr std::array<std::string_view, 48> kNouns = {
    "otter",   "maple",    "lantern", "teapot",  "canoe",   "falcon", "violin",   "cactus",
    "anchor",  "barn",     "beetle",  "bicycle", "bridge",  "candle", "castle",   "clock",
    "compass", "coral",    "daisy",   "drum",    "fern",    "fiddle", "fox",      "glacier",
    "guitar",  "hammer",   "heron",   "kettle",  "kite",    "ladder", "lemon",    "lizard",
    "mitten",  "mushroom", "orchid",  "owl",     "parrot",  "pebble", "piano",    "pumpkin",
    "radish",  "saddle",   "shell",   "spade",   "tractor", "trout",  "umbrella", "walnut"};

constexpr std::array<std::string_view, 10> kDigits = {"zero", "one", "two",   "three", "four",
                                                      "five", "six", "seven", "eight", "nine"};

constexpr std::array<std::string_view, 40> kCommon = {
    "the",  "a",    "of",   "and",   "to",    "in",    "is",     "was",   "with",   "for",
    "on",   "that", "by",   "from",  "this",  "near",  "some",   "every", "other",  "early",
    "late", "old",  "new",  "small", "large", "quiet", "bright", "slow",  "found",  "kept",
    "made", "seen", "held", "moved", "grew",  "stood", "again",  "often", "seldom", "always"};

// Words of one class: its own name, and others made of syllables that its number picks.
std::string class_word(uint32_t label, uint32_t word) {
  constexpr std::array<std::string_view, 16> kSyllables = {
      "ba", "lo", "mi", "ter", "sun", "ka", "rel", "do", "vi", "nor", "pe", "gal", "shi", "tu", "wen", "zo"};
  if (word == 0) return synth_class_name(SynthKind::text, label);
  std::string made;
  for (uint64_t bits = mix_bits(uint64_t{label} << 8 | word), i = 0; i < 2 + word % 2; ++i, bits >>= 4)
    made += kSyllables[bits % kSyllables.size()];
  return made;
}

}  // namespace

std::string synth_class_name(SynthKind kind, uint32_t label) {
  const bool spoken = kind == SynthKind::audio;
  const size_t names = spoken ? kDigits.size() : kNouns.size();
  const std::string_view stem = spoken ? kDigits[label % names] : kNouns[label % names];
  const size_t round = label / names;
  return round == 0 ? std::string(stem) : std::string(stem) + "_" + std::to_string(round + 1);
}

std::vector<std::byte> synth_document(const SynthKeys& keys) {
  KeyedRandom random(keys.seed, SynthKind::text, keys.index, keys.classes);
  constexpr uint32_t kClassWords = 12;
  const size_t bytes = 800 + random.below(3000);
  std::string text;
  while (text.size() < bytes) {
    const size_t start = text.size();
    for (uint32_t left = 5 + random.below(14); left > 0; --left) {
      switch (random.below(8)) {
        case 0:
          text += class_word(keys.label, random.below(kClassWords));
          break;
        case 1:
          text += kNouns[random.below(kNouns.size())];
          break;
        default:
          text += kCommon[random.below(kCommon.size())];
      }
      text += left > 1 ? " " : random.below(6) == 0 ? ".\n\n" : ". ";
    }
    text[start] = static_cast<char>(text[start] - 'a' + 'A');
  }
  while (text.back() == ' ' || text.back() == '\n') text.pop_back();
  text += '\n';
  const Bytes made = as_bytes(text);
  return {made.begin(), made.end()};
}

}  // namespace packtrain
