// Filler: turns the bytes of a sample into its place in a batch.
#pragma once

#include <memory>
#include <vector>

#include "load/memory_plan.h"
#include "load/step.h"

namespace packtrain {

// One per decoding thread, with decoder and buffers of its own. One thread at a time.
class Filler {
 public:
  static Result<std::unique_ptr<Filler>> make(const LoadSpec& spec, const Order& order,
                                              const MemoryPlan& memory, bool far);

  struct Outcome {
    Status status;          // why the sample itself cannot be had
    bool replaced = false;  // but another one fills its place
  };
  Outcome fill(Task& task);
  uint64_t warnings() const;
  uint64_t bytes_read() const { return bytes_read_; }  // by itself, beside what extents brought

 private:
  Filler(const LoadSpec& spec, const Order& order, const MemoryPlan& memory)
      : spec_(spec), order_(order), memory_(memory) {}
  // Brings one field of a sample: out of `extent` if it is sound there, else by a read of its own into `own`.
  Result<Bytes> field(const Dataset& dataset, uint64_t sample, uint32_t field, const Extent* extent,
                      std::vector<std::byte>& own);
  // An image that was refused because it would take `wanted` bytes: what to do about it. 0: `status` as it
  // is.
  Status with_memory_wanted(Status status, uint64_t wanted) const;
  // Decodes a field of a sample into its batch, or takes its bytes as they are.
  Status fill_value(Task& task, size_t field, Bytes bytes);
  Status fill_from(Task& task, uint64_t sample, uint64_t key, bool is_replacement);
  bool replace(Task& task, Status& why);  // why: where no other may be tried

  const LoadSpec& spec_;
  const Order& order_;
  const MemoryPlan memory_;
  std::unique_ptr<ImageReader> image_;
  std::vector<std::unique_ptr<ValueReader>> values_;  // of each field; null: its bytes are not looked at
  std::vector<std::byte> scratch_;
  uint64_t bytes_read_ = 0;
  // How old a look at a shard without checks may be: on far storage each costs a call to the server.
  std::chrono::nanoseconds look_age_{0};
  bool is_unchecked_ = false;  // some field of the sample that is being filled
};

}  // namespace packtrain
