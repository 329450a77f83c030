// MemoryPlan: what becomes of the bytes that memory= allows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "packtrain/load.h"

namespace packtrain {

// For one image while it is decoded, by each decoder of each thread, beside memory=.
constexpr uint64_t kImageMemory = uint64_t{64} << 20;

// A plain value.
struct MemoryPlan {
  uint64_t batches = 0;     // most bytes of all batches, in use or not
  uint64_t read_ahead = 0;  // most bytes that are read and not used yet
  uint64_t images = 0;      // for images that take more than kImageMemory, over all decoders
  uint64_t needed = 0;      // without which there would be no plan
  uint64_t most = 0;        // that memory= may be here
  uint32_t threads = 1;
  uint32_t decoders = 1;  // of images, over all threads

  uint64_t one_image() const { return kImageMemory + images / decoders; }
  // The memory= with which an image that takes so much can be decoded.
  uint64_t memory_for_image(uint64_t bytes) const;
};

// What has to be held at least.
struct MemoryNeeds {
  uint64_t batch_bytes = 0;  // of one batch, about
  uint64_t batches = 0;      // at a time
  uint64_t read_ahead = 0;
  uint32_t threads = 1;  // that decode
  uint32_t images = 0;   // of a sample that are decoded, each by a decoder of its own
  // What to do if so much is needed and not there, where at most so much may be taken. Asked while what it
  // was made from is alive.
  std::function<std::string(uint64_t needed, uint64_t most)> advice;

  uint64_t sum() const { return batch_bytes * batches + read_ahead; }
};

// Two digits and zeros: what is easily typed, and not less.
uint64_t rounded_up(uint64_t bytes);

// What may be taken. A plain value.
struct MemoryLimits {
  uint64_t memory = 0;
  bool asked_for = false;      // it was said with memory=
  uint64_t most = UINT64_MAX;  // what memory= may be here
  std::string most_from;       // who says so, in words
};

// no_room if that is too little, or more than there may be.
Result<MemoryPlan> plan_memory(const MemoryNeeds& needs, const MemoryLimits& limits);

}  // namespace packtrain
