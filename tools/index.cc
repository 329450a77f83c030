// packtrain index: existing containers become a dataset in place.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/words.h"
#include "packtrain/format.h"
#include "packtrain/storage.h"
#include "tools/command.h"
#include "tools/named_source.h"

namespace packtrain::tools {
namespace {

struct IndexArguments {
  std::vector<std::string> containers;
  std::string out;
  bool checksum = false, recover = false;
};

Json names_of(const MembersLeftOut& members) {
  Json names = Json::array();
  for (const std::string& name : members.names) names.push(printable(name));
  return names;
}

// Much is kept for each sample until the index is written, and nothing is to be gained by giving it back in
// between: the heap grows in large steps, with pages of 2 MiB where the system has them. For 30,000 samples
// that is 900 to 3,400 page faults instead of 3,000 to 15,000, about a quarter of the time.
void prepare_heap() {
#if defined(__GLIBC__)
  constexpr int kStep = 64 << 20,
                kApart = 4 << 20;  // bytes; what is larger than the second is given back at once
  constexpr size_t kHugePage = size_t{2} << 20;
  // All threads share this heap: one of their own would be of small pages, and each of them a fault.
  if (::mallopt(M_MMAP_THRESHOLD, kApart) == 0 || ::mallopt(M_TRIM_THRESHOLD, 2 * kStep) == 0 ||
      ::mallopt(M_TOP_PAD, kStep) == 0 || ::mallopt(M_ARENA_MAX, 1) == 0)
    return;
  auto* grown = static_cast<std::byte*>(std::malloc(kApart / 2));  // more than is left of the heap by now
  if (grown == nullptr) return;
  const auto begin = (reinterpret_cast<uintptr_t>(grown) + kHugePage - 1) / kHugePage * kHugePage;
  const auto end = reinterpret_cast<uintptr_t>(::sbrk(0)) / kHugePage * kHugePage;
  // Only advice; and where the heap is not the one that sbrk moves, nothing to advise.
  if (begin < end && end - begin <= size_t{2} * kStep)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  std::free(grown);
#endif
}

Status run_index(const IndexArguments& arguments, Run& run) {
  prepare_heap();
  std::vector<std::string> containers;
  MakeIndexOptions options;
  for (const std::string& argument : arguments.containers) {
    const auto [split, pattern] = parse_source(argument);
    PACKTRAIN_ASSIGN(paths, expand_paths(posix_storage(), pattern));
    containers.insert(containers.end(), paths.begin(), paths.end());
    options.splits.resize(containers.size(), split);
  }
  std::vector<Damage> damage;
  options.out = arguments.out;
  options.checksum = arguments.checksum;
  options.index.recover = arguments.recover;
  options.index.damage = &damage;
  options.index.progress = run.progress();
  PACKTRAIN_ASSIGN(report, make_index(posix_storage(), containers, options));

  run.result().set("folder", report.folder).set("samples", report.samples);
  run.result().set("containers", report.containers).set("bytes", report.bytes);
  run.say(fmt::format("{} in {} ({}): {}", counted(report.samples, "sample"),
                      counted(report.containers, "container"), bytes_in_words(report.bytes), report.folder));
  run.result().set("links_left_out", report.links.count).set("links_named", names_of(report.links));
  if (report.links.count > 0) run.warn("note: " + links_in_words(report.links));
  run.result().set("without_extension_left_out", report.without_extension.count);
  run.result().set("without_extension_named", names_of(report.without_extension));
  if (report.without_extension.count > 0) {
    run.warn("note: " + without_extension_in_words(report.without_extension));
  }
  run.result().set("columns_left_out", report.columns.count).set("columns_named", names_of(report.columns));
  if (report.columns.count > 0) run.warn("note: " + columns_in_words(report.columns));
  Json notes = Json::array();
  for (const std::string& note : report.notes) {
    notes.push(note);
    run.warn("note: " + note);
  }
  run.result().set("notes", std::move(notes));
  run.result().set("unlabelled_folders", report.unlabelled_folders);
  if (report.unlabelled_folders > 1) {
    run.warn(
        fmt::format("note: the samples have no labels: an index takes the {} folders they lie in neither as "
                    "classes nor as splits; packtrain pack {} OUT does",
                    count_in_words(report.unlabelled_folders), printable(arguments.containers[0])));
  }
  if (damage.empty()) return {};
  Json list = Json::array();
  for (const Damage& gap : damage) {
    list.push(Json::object().set("offset", gap.offset).set("bytes", gap.bytes).set("what", gap.what));
    run.say(fmt::format("lost: {} bytes @ {}: {}", gap.bytes, gap.offset, gap.what));
  }
  run.result().set("lost", std::move(list));
  return run.bad_data(
      fmt::format("{} could not be read and {} left out; the index in {} has the rest",
                  damage.size() == 1 ? "1 stretch" : fmt::format("{} stretches", damage.size()),
                  damage.size() == 1 ? "is" : "are", report.folder));
}

}  // namespace

std::function<Status(Run&)> declare_index(Options& options) {
  auto arguments = std::make_shared<IndexArguments>();
  options.summary("Makes existing containers a dataset in place, without copying them.")
      .example("packtrain index photos.zip")
      .example("packtrain index 'shards/train-{000000..000127}.tar' --out ~/train.pt --checksum")
      .example("packtrain index train=photos-train.arrow val=photos-val.arrow --out photos.pt")
      .positionals("[NAME=]CONTAINER", arguments->containers,
                   "files or folders of any format that pack writes, or patterns of them; NAME= names the "
                   "split that they are")
      .text("-o,--out", arguments->out, "folder of the index (default: CONTAINER.packtrain beside the first)")
      .flag("--checksum", arguments->checksum, "read everything once and record a check of every field")
      .flag("--recover", arguments->recover, "go on behind damage, and say what was lost");
  return [arguments](Run& run) { return run_index(*arguments, run); };
}

}  // namespace packtrain::tools
