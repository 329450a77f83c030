#include <vector>

#include "base/words.h"
#include "packtrain/storage.h"

namespace packtrain {

Result<std::string> read_whole(Storage& storage, std::string_view path, uint64_t limit) {
  PACKTRAIN_ASSIGN(file, storage.open(path));
  if (file->size() > limit)
    return Status(Code::invalid, "is " + bytes_in_words(file->size()) + " long; at most " +
                                     bytes_in_words(limit) + " can be taken whole; is it the right file?")
        .at(printable(path));
  std::string text(file->size(), '\0');
  PACKTRAIN_TRY(storage.read(*file, 0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  return text;
}

Status write_whole(Storage& storage, std::string_view path, Bytes data, const WriteOptions& options) {
  PACKTRAIN_ASSIGN(writer, storage.create(path, data.size(), options));
  Status status = writer->write_at(0, data);
  if (status.ok()) status = writer->commit();
  if (!status.ok()) writer->discard();
  return status;
}

Status remove_tree(Storage& storage, std::string_view path) {
  PACKTRAIN_ASSIGN(info, storage.stat(path, /*follow=*/false));
  if (info.kind != FileKind::folder) return storage.remove(path);
  // A folder is visited twice: first for what is in it, then, empty, to be removed itself. What somebody else
  // removes in between is as gone as it should be.
  struct Visit {
    std::string path;
    bool emptied;
  };
  std::vector<Visit> left{{std::string(path), false}};
  while (!left.empty()) {
    if (left.back().emptied) {
      Status status = storage.remove(left.back().path);
      if (!status.ok() && status.code() != Code::not_found) return status;
      left.pop_back();
      continue;
    }
    left.back().emptied = true;
    const std::string folder = left.back().path;
    std::vector<std::string> files;
    Status status = storage.list(folder, [&](FolderEntry&& entry) {
      std::string name = folder + "/" + entry.name;
      if (entry.kind == FileKind::folder)
        left.push_back({std::move(name), false});
      else
        files.push_back(std::move(name));
      return true;
    });
    if (!status.ok() && status.code() != Code::not_found) return status;
    for (const std::string& file : files) {
      status = storage.remove(file);
      if (!status.ok() && status.code() != Code::not_found) return status;
    }
  }
  return {};
}

}  // namespace packtrain
