// Pack: any pile of small files to a verified, indexed dataset, and back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "packtrain/index.h"
#include "packtrain/progress.h"
#include "packtrain/status.h"
#include "packtrain/storage.h"

namespace packtrain {

enum class PackOrder : uint8_t { shuffled, stratified, source };

struct PackOptions {
  std::vector<std::pair<std::string, std::string>> sources;  // (split name or "", path)
  std::string out;
  std::string root;  // what paths in lists are relative to
  std::string format = "webdataset";
  uint64_t shards = 0;       // 0: by shard_size
  uint64_t shard_bytes = 0;  // 0: about 512 MB, even
  uint64_t ranks = 1;        // at least one shard for each
  PackOrder order = PackOrder::shuffled;
  uint64_t seed = 0;
  std::string classes_file;
  std::string path_column, label_column, split_column;  // of lists; "": guessed
  std::string compress = "auto";
  // What becomes of each sample's image: "keep", "jpeg:QUALITY" or "raw" (PPM). Larger images are shrunk
  // until their longer side is max_side; 0: none is. baseline: progressive JPEGs are recoded, with the same
  // pixels.
  std::string image = "keep";
  uint64_t max_side = 0;
  bool baseline = false;
  std::vector<std::string> sidecars;  // "wids", "dali", "energon"
  uint64_t skip_bad = 0;              // how many unreadable samples may be left out
  uint32_t task = 0, tasks = 1;       // this one of several that pack together
  bool plan_only = false, dry_run = false;
  uint32_t jobs = 0;                // 0: the cores granted
  uint32_t reads = 0;               // files being read at once; 0: by the source's storage
  bool sync = true;                 // durable before it is visible
  std::string command;              // recorded in pack.log.json
  double publish_wait_seconds = 5;  // how long the last shard's writer looks for the others' shards
  Progress progress;
  // Told what was decided and why, a sentence at a time, before anything is written. From the calling thread.
  std::function<void(const std::string&)> announce;
  // The same, of what stands in the way of publishing.
  std::function<void(const std::string&)> warn;
};

// What converting images costs, measured on some of them before anything is written.
struct ConversionCost {
  uint64_t images = 0;                         // that may be converted
  uint64_t tried = 0;                          // of them: what follows is of these
  uint64_t bytes_before = 0, bytes_after = 0;  // as they are, and as they will be packed
  // Between the pixels of the source, shrunk if they are, and those of the result, in grey levels of 255.
  double mean_difference = 0;
  uint32_t largest_difference = 0;
  // Of those tried, how many lose what 8-bit pixels cannot hold: lower bits of their values, an alpha
  // channel.
  uint64_t deeper = 0, transparent = 0;
  double seconds = 0;  // of one thread
};
std::string cost_in_words(const ConversionCost& cost);

// A file, or what else stands in the way of a sample. A sample with several bad files has one for each,
// one in a container has one.
struct BadSample {
  std::string path, what;
  std::string key;  // of the sample; "" for what was found bad before samples had keys
};
// "PATH: WHAT (sample KEY)"
std::string bad_in_words(const BadSample& bad);

// What a look at some of a field's values says about compressing it.
struct FieldCompression {
  std::string field, codec;
  bool compressed = false;  // the decision
  std::string reason;       // in words, without the field's name
  // Of the values looked at; 0 where none was tried. Ratio: stored bytes by raw ones.
  uint64_t values = 0, bytes = 0;
  double ratio = 0;
  // Of one core. Reading compressed values is faster where storage gives a core less than break_even.
  double decode_bytes_per_second = 0, break_even_bytes_per_second = 0;
};

struct PackReport {
  std::string out;
  bool published = false;                       // false: dry run, plan only, or other tasks are not done
  bool found = false;                           // it was there, whole, before this pack or task began
  uint64_t samples = 0, shards = 0, bytes = 0;  // bytes: of the shards
  uint64_t payload_bytes = 0;
  uint64_t inodes_before = 0, inodes_after = 0;
  // Of this task's part, which is all of it unless several pack together; kept: whole from an earlier run.
  uint64_t shards_written = 0, shards_kept = 0;
  uint64_t samples_written = 0, bytes_written = 0;  // in the shards written
  uint64_t shards_missing = 0;                      // of all tasks, not written yet
  uint64_t renamed = 0;                             // keys that differ from their path
  uint64_t hidden_skipped = 0, temporary_skipped = 0, other_skipped = 0;
  std::vector<BadSample>
      bad;                   // left out (skip_bad), or why it failed; of what the scan found, the first 1000
  uint64_t bad_samples = 0;  // how many samples that are, named or not; an unreadable folder counts as one
  std::vector<std::string> fields, splits;
  std::vector<std::string> roots;             // folders that the paths of trees and lists are relative to
  std::vector<std::string> warnings;          // what the scan found odd, a sentence each
  std::vector<FieldCompression> compression;  // of formats that compress, unless it was declined
  uint64_t classes = 0;
  uint64_t smallest_shard_samples = 0, largest_shard_samples = 0, smallest_shard_bytes = 0,
           largest_shard_bytes = 0;
  uint64_t shortfall_bytes = 0, shortfall_inodes = 0;  // dry run: what the target lacks of room
  double seconds_scan = 0, seconds_write = 0, seconds_publish = 0;
  double estimated_seconds = 0;  // dry run
  ConversionCost conversion;
};
// On failure `report`, if given, still says what was found (bad samples, shards kept).
Result<PackReport> pack(Storage& storage, const PackOptions& options, PackReport* on_failure = nullptr);

// What helps against a finding.
enum class Remedy : uint8_t {
  restore,  // the bytes are damaged: another copy has to replace them
  remove,   // a file that does not belong to the dataset
  reindex,  // a container that was changed after it was indexed
};

struct Finding {     // one thing that verify found wrong
  std::string file;  // shard, index.npz, …
  std::string key;   // of the damaged sample; "" if it is no sample's
  std::string field;
  uint64_t offset = 0;
  std::string what;
  Remedy remedy = Remedy::restore;
};

struct VerifyOptions {
  bool recover = false;  // walk damaged shards to their end and say what can still be read
  uint32_t jobs = 0;
  uint64_t max_findings = 1000;  // named; all are counted
  Progress progress;
};

struct VerifyReport {
  uint64_t samples = 0, shards = 0, bytes = 0;
  uint64_t damaged_samples = 0, findings_count = 0;
  uint64_t to_remove = 0, to_reindex = 0;  // findings of these remedies; the others are damage
  uint64_t unchecked_samples = 0;          // not compared one by one: what would be needed for it is damaged
  bool structure_only = false;             // some payload of a foreign container has no checks
  std::vector<Finding> findings;
  std::vector<std::string> recoverable;  // recover: in words, per shard
};
// Ok also when the data are bad: the report says so. A failure means that it could not look.
Result<VerifyReport> verify(Storage& storage, std::string_view dataset, const VerifyOptions& options = {});

// A range of samples, and of those the ones with this label, or kNoLabel for all of them.
struct Selection {
  uint64_t first = 0, end = 0;
  int64_t label = kNoLabel;

  bool has(const Dataset& dataset, uint64_t sample) const {
    return sample >= first && sample < end && (label == kNoLabel || dataset.label(sample) == label);
  }
};

// A class is meant by its name or its number; empty texts leave all. Code::not_found, with what there is, for
// a split or class that the dataset does not have.
Result<Selection> select_samples(const Dataset& dataset, std::string_view split, std::string_view class_name);

struct ExtractOptions {
  std::string to;
  std::string split;                // "": all
  std::string class_name;           // or its number; "": all
  std::vector<std::string> keys;    // empty: all
  std::vector<std::string> fields;  // empty: all that have a path of their own
  bool by_key = false;              // files are called KEY.FIELD, which no two share, not by their old paths
  bool overwrite = false;
  uint64_t skip_bad = 0;  // how many damaged samples may be left out
  bool dry_run = false;
  uint32_t jobs = 0;
  Progress progress;
};
struct ExtractReport {
  uint64_t samples = 0, files = 0, bytes = 0, folders = 0;  // what was written
  uint64_t shared = 0;  // fields that are the same file as another's, with the same bytes: written once
  std::vector<BadSample> bad;  // left out (skip_bad), by key, which is their path too
};
Result<ExtractReport> extract(Storage& storage, std::string_view dataset, const ExtractOptions& options);

enum class SynthKind : uint8_t { photos, audio, text, fields };
struct SynthOptions {
  SynthKind kind = SynthKind::photos;
  std::string out;
  uint64_t samples = 1000;
  uint32_t classes = 10;
  uint64_t seed = 0;
  bool splits = false;  // train/ and val/ (a tenth)
  uint32_t jobs = 0;
  bool dry_run = false;
  Progress progress;
};
struct SynthReport {
  uint64_t files = 0, folders = 0, bytes = 0;
};
Result<SynthReport> synth(Storage& storage, const SynthOptions& options);

// What is in a dataset, as one JSON object: counts, splits, fields, classes, sizes, image sizes, evenness of
// shards, how it came to be. One pass over the rows; payload is read only for the heads of a few images whose
// sizes are not recorded.
Result<std::string> describe(const Dataset& dataset, const Progress& progress = {}, uint32_t jobs = 0);

struct ShowOptions {
  uint32_t samples = 64;  // on the contact sheet
  uint64_t seed = 0;
  std::string split;
  uint32_t jobs = 0;
  Progress progress;
};
// One self-contained HTML page: contact sheet, class histogram, size and shape distributions, evenness of
// shards.
Result<std::string> show_page(const Dataset& dataset, const ShowOptions& options);

}  // namespace packtrain
