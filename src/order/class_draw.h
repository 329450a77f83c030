// Samples drawn with replacement: a class by its weight, then one of its samples, each as likely as any
// other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "packtrain/status.h"

namespace packtrain {

using ClassOf = std::function<int64_t(uint64_t sample)>;

// Immutable. Keeps 4 bytes a sample (8 beyond 2^32 samples).
class ClassDraw {
 public:
  // Asks class_of twice for every sample. Fails if nothing could be drawn, though there are samples.
  static Result<ClassDraw> make(uint64_t samples, std::span<const double> weights, const ClassOf& class_of);
  uint64_t draw(uint64_t key) const;  // 0 if there are no samples

 private:
  class ClassLists;
  struct DrawnClass {
    double until;  // the weights up to and with it
    uint64_t number;
  };
  std::shared_ptr<const ClassLists> lists_;
  std::vector<DrawnClass> classes_;  // those that can be drawn
};

}  // namespace packtrain
