// The file that --classes names: which class has which number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

// One name a line, a JSON list of names, or a JSON object {name: number} or {number: name} with every number
// from 0 up. A name that comes twice, or a number that is missing, is Code::invalid.
Result<std::vector<std::string>> parse_class_file(std::string_view text);
Result<std::vector<std::string>> read_class_file(Storage& storage, const std::string& path);

}  // namespace packtrain
