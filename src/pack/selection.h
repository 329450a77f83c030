// Which samples --split and --class leave.
#pragma once

#include <cstdint>
#include <string_view>

#include "packtrain/index.h"
#include "packtrain/status.h"

namespace packtrain {

// A range of samples, and of those the ones with this label, or kNoLabel for all of them.
struct Selection {
  uint64_t first = 0, end = 0;
  int64_t label = kNoLabel;

  bool has(const Dataset& dataset, uint64_t sample) const {
    return sample >= first && sample < end && (label == kNoLabel || dataset.label(sample) == label);
  }
};

// A class is meant by its name or its number; empty texts leave all. Code::not_found, with what there is, for
// a split or class that the dataset does not have.
Result<Selection> select_samples(const Dataset& dataset, std::string_view split, std::string_view class_name);

}  // namespace packtrain
