#include "pack/extract_part.h"

#include "base/words.h"

namespace packtrain {
namespace {

Status unless_absent(const Status& status) { return status.code() == Code::not_found ? Status() : status; }

}  // namespace

Result<ExtractPart> ExtractPart::claim(Storage& storage, const std::string& target) {
  ExtractPart part(storage, target);
  PACKTRAIN_TRY(part.check_owner());
  PACKTRAIN_TRY(part.discard());
  PACKTRAIN_TRY(storage.make_folder(part.folder_));
  WriteOptions write;
  write.durable = false;
  PACKTRAIN_TRY(write_whole(
      storage, part.mark_,
      as_bytes("An unfinished packtrain extract. This folder may be removed; the next extract does so.\n"),
      write));
  return part;
}

Status ExtractPart::check_owner() const {
  const auto info = storage_->stat(folder_, /*follow=*/false);
  if (!info.ok()) return unless_absent(info.status());
  bool marked = false, filled = false, foreign = info->kind != FileKind::folder;
  if (!foreign) {
    const std::string mark_name = mark_.substr(folder_.size() + 1);
    PACKTRAIN_TRY(storage_->list(folder_, [&](FolderEntry&& entry) {
      marked |= entry.name == mark_name;
      filled |= entry.name == "files";
      foreign |= entry.name != "files" && !entry.name.starts_with(mark_name);
      return true;
    }));
  }
  if (!foreign && (marked || !filled)) return {};
  return Status(Code::invalid,
                "exists, and is not what an unfinished extract leaves; move it away, or choose another "
                "folder to extract to")
      .at(printable(folder_));
}

Status ExtractPart::publish() {
  PACKTRAIN_TRY(storage_->rename(files_, target_));
  const Status tidied = discard();
  (void)tidied;  // the files have their name; what is left is marked, and the next extract removes it
  return {};
}

// The mark goes last but for the folder, so that an interrupted removal still shows whose it is.
Status ExtractPart::discard() {
  PACKTRAIN_TRY(unless_absent(remove_tree(*storage_, files_)));
  PACKTRAIN_TRY(unless_absent(storage_->remove(mark_)));
  return unless_absent(remove_tree(*storage_, folder_));
}

}  // namespace packtrain
