// A dataset's folder against its manifest: every file that is listed is there and has its hash, and no other
// is, but for what tools make by themselves beside our sidecars.
#pragma once

#include <string>

#include "pack/findings.h"
#include "pack/progress_meter.h"
#include "packtrain/index.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

struct FolderVerdict {
  bool index_sound = true, names_sound = true;
};

// Shards are only looked for among the names; their bytes are ShardCheck's.
Result<FolderVerdict> check_folder(Storage& storage, const std::string& folder, const Manifest& manifest,
                                   Findings& findings, ProgressMeter& meter);

}  // namespace packtrain
