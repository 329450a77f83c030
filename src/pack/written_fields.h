// Which fields a container gets as bytes, and whether labels go beside them as numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pack/plan.h"
#include "packtrain/format.h"
#include "packtrain/index.h"

namespace packtrain {

struct WrittenFields {
  std::vector<std::string> names;  // sorted
  bool labels = false;             // any sample has one
  // The field "cls" is left out, since the format keeps labels as numbers and the field says no more than
  // that.
  bool label_is_number = false;
  std::map<std::string, ArrayValue, std::less<>> arrays = {};  // fields of arrays without headers
  bool one_image = false;  // every sample has one of several fields, and all of them are images

  bool has(std::string_view field) const { return !(label_is_number && field == "cls"); }
};
// Follows from the plan alone, so that every task and every restart agrees. Linear in the number of fields.
WrittenFields written_fields(const Plan& plan, const Format& format);

// Whether they are several fields, and all of images: the first half of WrittenFields::one_image.
bool are_several_images(const std::vector<std::string>& fields);

// For each field of `known` the field of `container` that holds its bytes, UINT32_MAX if there is none: the
// one with its name, or, if one of either is left, that one. Some containers have a name of their own for
// images; where they have one for images of all kinds, it is paired with all of them. An empty name has no
// field.
std::vector<uint32_t> pair_fields(const std::vector<std::string>& known, const Manifest& container);

}  // namespace packtrain
