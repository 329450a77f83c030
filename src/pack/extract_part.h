// The folder that an extract fills before its files get their name.
#pragma once

#include <string>
#include <utility>

#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

//   TARGET.extract-part/packtrain-extract   says that what lies here is an extract's
//   TARGET.extract-part/files/              becomes TARGET when all is there
// One thread at a time.
class ExtractPart {
 public:
  // Removes what an earlier extract left. Code::invalid if anything else is there: it is somebody's own.
  static Result<ExtractPart> claim(Storage& storage, const std::string& target);

  const std::string& files() const { return files_; }
  Status publish();  // gives the files the target's name
  Status discard();  // removes all of it

 private:
  ExtractPart(Storage& storage, std::string target)
      : storage_(&storage), target_(std::move(target)), folder_(target_ + ".extract-part") {
    mark_ = folder_ + "/packtrain-extract";
    files_ = folder_ + "/files";
  }
  Status check_owner() const;

  Storage* storage_;
  std::string target_, folder_, mark_, files_;
};

}  // namespace packtrain
