// packtrain show: what a dataset looks like, as one HTML page.
#include "base/process_token.h"
#include "base/words.h"
#include "packtrain/format.h"
#include "packtrain/pack.h"
#include "packtrain/storage.h"
#include "tools/command.h"

namespace packtrain::tools {

namespace {

struct ShowArguments {
  std::string dataset, out, split;
  uint64_t samples = ShowOptions{}.samples, seed = 0;
  bool force = false;
};

// The dataset's name with ".html", in the current folder. A glob or a list of shards has no name of its own.
std::string default_page(std::string_view dataset) {
  while (dataset.size() > 1 && dataset.back() == '/') dataset.remove_suffix(1);
  std::string name(dataset.substr(dataset.find_last_of('/') + 1));
  if (name.empty() || name == "." || name == ".." || name.find_first_of("*?[{") != std::string::npos)
    name = "dataset";
  return name + ".html";
}

Status write_page(Storage& storage, const std::string& out, const std::string& page, bool replace) {
  const WriteOptions options{.token = process_token(), .durable = false, .replace = replace};
  Status written = write_whole(storage, out, as_bytes(page), options);
  if (written.ok()) return written;
  // The temporary name is no concern of the user's.
  return Status(written.code(), "the page cannot be written: " + written.message()).at(printable(out));
}

Status run_show(const ShowArguments& arguments, Run& run) {
  constexpr uint64_t kMostSamples = 10'000;
  if (arguments.samples > kMostSamples)
    return Status(Code::invalid, "--samples is at most 10,000: a browser shows no more on one page");
  Storage& storage = posix_storage();
  const bool to_stdout = arguments.out == "-";
  if (to_stdout && run.json())
    return Status(Code::invalid, "-o - writes the page to stdout, where --json writes too; leave one away");
  const std::string out = arguments.out.empty() ? default_page(arguments.dataset) : arguments.out;
  if (!to_stdout && !arguments.force && storage.stat(out, false).ok())
    return Status(Code::invalid, "exists; choose another with -o, or overwrite it with --force").at(out);
  std::string note;
  PACKTRAIN_ASSIGN(dataset,
                   open_dataset(storage, arguments.dataset, {.progress = run.progress(), .note = &note}));
  if (!note.empty()) run.warn(note);
  ShowOptions options;
  options.samples = static_cast<uint32_t>(arguments.samples);
  options.seed = arguments.seed;
  options.split = arguments.split;
  options.jobs = run.jobs();
  options.progress = run.progress();
  PACKTRAIN_ASSIGN(page, show_page(*dataset, options));
  if (to_stdout) {
    run.say_raw(page);
    return {};
  }
  PACKTRAIN_TRY(write_page(storage, out, page, arguments.force));
  run.result().set("page", out).set("bytes", uint64_t{page.size()});
  run.say(out);
  return {};
}

}  // namespace

std::function<Status(Run&)> declare_show(Options& options) {
  auto arguments = std::make_shared<ShowArguments>();
  options.summary("Writes one HTML page: a contact sheet, classes, sizes, image shapes, evenness of shards.")
      .example("packtrain show photos.pt -o photos.html")
      .positional("DATASET", arguments->dataset, "dataset folder, container, or a pattern of containers")
      .text("-o,--out", arguments->out,
            "the page; by default the dataset's name with .html, here; - is stdout")
      .number("--samples", arguments->samples, "how many on the contact sheet")
      .text("--split", arguments->split, "only this split")
      .number("--seed", arguments->seed, "another seed draws other samples")
      .flag("--force", arguments->force, "overwrite the page if it exists");
  return [arguments](Run& run) { return run_show(*arguments, run); };
}

}  // namespace packtrain::tools
