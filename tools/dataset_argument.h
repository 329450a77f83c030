// What the verbs that look into a dataset share.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "packtrain/index.h"
#include "packtrain/status.h"
#include "tools/command.h"

namespace packtrain::tools {

inline constexpr const char* kDatasetHelp =
    "a dataset folder, a container, or a pattern of containers: 'train-{000000..000127}.tar'";

// Opens what the user named; tells what open_dataset has to say.
Result<std::shared_ptr<Dataset>> open_for(Run& run, const std::string& path);

// "cat" for 3 where classes have names, else "3"; empty without a label.
std::string label_in_words(const Manifest& manifest, int64_t label);

}  // namespace packtrain::tools
