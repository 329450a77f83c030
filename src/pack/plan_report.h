// What a plan says before anything is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pack/plan.h"
#include "packtrain/pack.h"

namespace packtrain {

// What these shards of the plan will take, about exactly.
uint64_t planned_bytes(const Plan& plan, const std::vector<uint32_t>& shards);

// Fills in samples, shards, bytes, inodes, fields, splits, classes and what was skipped.
void describe_plan(const Plan& plan, const std::vector<std::string>& sidecars, PackReport& report);

}  // namespace packtrain
