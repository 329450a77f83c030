// Small steps on paths that the POSIX storage and its writer share.
#pragma once

#include <string>
#include <string_view>

#include "packtrain/storage.h"

namespace packtrain {

// A path as the kernel takes it. A byte 0 would end it early and name another file: Code::invalid.
Result<std::string> kernel_path(std::string_view path);
std::string folder_of(std::string_view path);  // "a" for "a/b", "." for "b", "/" for "/b"
// PATH.tmp-TOKEN; where that name is too long for a filesystem, its leaf is cut and ends in a hash of itself.
std::string temporary_path(std::string_view path, std::string_view token);

// Renames a file unless `to` exists (EEXIST), or over it if `replace`. 0 or an errno.
int rename_file(const char* from, const char* to, bool replace);
// Makes names in the folder durable; where a filesystem cannot, there is nothing to do. 0 or an errno.
int sync_folder_of_names(const char* folder);

Result<std::unique_ptr<Writer>> create_posix_writer(std::string_view path, uint64_t size,
                                                    const WriteOptions& options);

}  // namespace packtrain
