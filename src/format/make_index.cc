// Existing containers become a dataset in place: a folder with an index beside them.
#include "base/words.h"
#include "format/checksum.h"
#include "format/index_containers.h"
#include "packtrain/format.h"

namespace packtrain {
namespace {

// Relative where both move together: the container lies beside the index's folder or below its parent.
std::string recorded_path(const std::string& container, const std::string& folder) {
  std::string parent = folder.substr(0, folder.rfind('/') + 1);
  return container.starts_with(parent) ? "../" + container.substr(parent.size()) : container;
}

}  // namespace

std::string links_in_words(const LinksLeftOut& links) {
  if (links.count == 0) return "";
  return counted(links.count, "link") +
         " left out, which have no bytes of their own: " + names_in_words(links.names, links.count) +
         "; make the archive with tar --hard-dereference --dereference to keep what they lead to";
}

Result<MakeIndexReport> make_index(Storage& storage, std::span<const std::string> containers,
                                   const MakeIndexOptions& options) {
  if (containers.empty()) return Status(Code::invalid, "no container was given to index");
  MakeIndexReport report;
  report.folder = options.out.empty() ? containers[0] + ".packtrain" : options.out;
  while (report.folder.size() > 1 && report.folder.back() == '/') report.folder.pop_back();
  std::string folder = absolute_path(report.folder);
  std::vector<ContainerPath> paths;
  for (const std::string& container : containers) {
    PACKTRAIN_ASSIGN(info, storage.stat(container));
    if (info.kind == FileKind::folder) {
      return Status(Code::unsupported,
                    "is a folder, no container; pack it: packtrain pack " + container + " OUT")
          .at(printable(container));
    }
    report.bytes += info.size;
    paths.push_back({container, absolute_path(container)});
  }
  IndexOptions index_options = options.index;
  index_options.links = &report.links;
  PACKTRAIN_ASSIGN(builder, index_containers(storage, paths, index_options));
  report.samples = builder.samples();
  report.containers = paths.size();
  IndexBuilder::Finished finished = builder.finish();
  if (options.checksum) {
    PACKTRAIN_ASSIGN(checked, with_checksums(storage, folder, std::move(finished), options.index.progress));
    finished = std::move(checked);
  }
  for (ShardSpec& shard : finished.manifest.shards) shard.path = recorded_path(shard.path, folder);
  PACKTRAIN_TRY(publish_index(storage, report.folder, finished, /*durable=*/true));
  return report;
}

}  // namespace packtrain
