// Loader: the samples of a dataset, or of several that are mixed, as batches of numbers, in an order that
// depends on nothing but the spec. Reads ahead, decodes on its own threads straight into the batch, delivers
// in order, in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "packtrain/index.h"
#include "packtrain/order.h"
#include "packtrain/status.h"
#include "packtrain/transform.h"
#include "packtrain/values.h"

namespace packtrain {

// What becomes of a sample that cannot be read or decoded.
enum class OnError : uint8_t {
  raise,    // next() gives the failure in place of its batch
  skip,     // its place is dropped: that batch is shorter
  replace,  // another sample takes its place, and is flagged
};

// Some samples of a split, in a given order. Held once and shared: a range or every n-th costs nothing,
// ascending ones 1.13 bits for each sample between the first and the last if that is less than 4 bytes (8
// beyond 2^32) for each of their own, which is what others take. Immutable.
class Selection {
 public:
  static std::shared_ptr<const Selection> make(std::span<const uint64_t> indices);

  uint64_t size() const { return size_; }
  uint64_t at(uint64_t number) const;  // number < size()
  uint64_t largest() const { return largest_; }
  uint64_t bytes() const;                            // that it takes
  const std::string& hash() const { return hash_; }  // of all of them, in order

 private:
  Selection() = default;
  uint64_t bit_at(uint64_t number) const;
  void set_bits(std::span<const uint64_t> indices);

  enum class Form : uint8_t { steps, bits, narrow, wide };
  Form form_ = Form::steps;
  uint64_t size_ = 0, first_ = 0, step_ = 0, largest_ = 0;
  std::vector<uint64_t> bits_;    // from first_ on
  std::vector<uint64_t> before_;  // set bits before each group of words
  std::vector<uint32_t> narrow_;
  std::vector<uint64_t> wide_;
  std::string hash_;
};

// The dataset that is loaded, or one of those that are mixed. A plain value.
struct LoadPart {
  std::shared_ptr<Dataset> dataset;
  uint64_t first = 0, samples = 0;             // the split: a range of the dataset's samples
  std::string split;                           // its name, for the state
  std::shared_ptr<const Selection> selection;  // only these, which are positions within the split; null: all
  std::vector<uint32_t> image_fields;  // into the manifest's fields; the first that a sample has is decoded
  std::vector<uint32_t> fields;        // into the manifest's fields; as many in each part
  std::vector<double> weights;         // how often each class comes; empty: as it is (see OrderSpec)
  double fraction = 1;                 // of a mixture, relative to the sum over its parts

  bool is_whole() const { return samples == dataset->samples(); }  // the split, which is all that there is
  uint64_t size() const { return selection ? selection->size() : samples; }
  // The sample of the dataset that an order calls `ordered`.
  uint64_t sample_at(uint64_t ordered) const {
    return first + (selection ? selection->at(ordered) : ordered);
  }
  int64_t index_of(uint64_t sample) const { return static_cast<int64_t>(sample - first); }
  // The field that holds a sample's image; the first of `image_fields` if it has none of them.
  uint32_t image_field_of(uint64_t sample) const {
    for (const uint32_t field : image_fields)
      if (image_fields.size() == 1 || dataset->locate(sample, field).present) return field;
    return image_fields.front();
  }
};

// What to load and how. A plain value.
struct LoadSpec {
  std::vector<LoadPart> parts;     // one, unless `mixed`
  bool mixed = false;              // the parts in their fractions, each in epochs of its own (make_mix)
  uint64_t epoch_length = 0;       // of a mixture; 0: as many samples as its parts have together
  std::optional<ImageSpec> image;  // decode each part's `image_fields` into Batch::images
  std::vector<ValueSpec> values;   // how each of the parts' fields is decoded; none: all are bytes
  // What the parts settle is filled in by Loader::make, and so are a window and pieces of streams of 0 bytes:
  // as memory= allows.
  OrderSpec order;
  uint32_t rank = 0;
  uint32_t threads = 0;         // that decode; 0: the cores granted
  uint32_t prefetch = 0;        // batches made ahead; 0: chosen
  uint64_t memory = 0;          // most bytes for batches and read-ahead; 0: half of what is available, or
                                // this process's part of that half:
  uint32_t processes_here = 1;  // that load on this machine at the same time, this one among them
  bool takes_over = false;      // from a loader of the same memory, which holds it until then
  OnError on_error = OnError::raise;
  uint64_t max_errors = UINT64_MAX;  // more bad samples in one epoch are a failure, whatever on_error says
  bool check = true;                 // compare the recorded checks

  size_t fields() const { return parts.front().fields.size(); }  // delivered beside the image
  bool delivers_bytes() const {                                  // and no field has to be decoded
    for (const ValueSpec& value : values)
      if (!value.in_place()) return false;
    return true;
  }
  ValueSpec value(size_t field) const { return field < values.size() ? values[field] : ValueSpec(); }
};

// A decoded value of a batch. A plain value.
struct BatchArray {
  ArrayShape shape;  // after padding
  // Along the axis that is padded, before it was; of images height and width.
  std::array<uint64_t, 2> lengths{0, 1};
  uint32_t sample_rate = 0;  // of audio
};

// One batch. Its memory is its own until it dies, and then serves another batch. One thread at a time.
class Batch {
 public:
  virtual ~Batch() = default;
  virtual uint64_t epoch() const = 0;
  virtual uint64_t step() const = 0;        // since the epoch began, or since the state that was loaded
  virtual uint64_t consumed() const = 0;    // samples of the epoch, over all ranks, with this step
  virtual size_t size() const = 0;          // samples in it
  virtual MutableBytes images() const = 0;  // size() times ImageSpec::bytes(); empty without an image
  virtual std::span<int64_t> labels() const = 0;
  virtual std::span<int64_t> indices() const = 0;  // positions within the split
  virtual std::span<int64_t> sources() const = 0;  // which of LoadSpec::parts
  virtual std::span<uint8_t> padding() const = 0;  // 1 where a sample is there only to fill up
  virtual std::span<uint8_t> replaced() const = 0;
  virtual Bytes value(size_t field, size_t sample) const = 0;  // `field` counts LoadPart::fields
  virtual bool has(size_t field, size_t sample) const = 0;
  // What value() is, where that is an array; null if it is bytes. Arrays of one shape lie one behind the
  // other.
  virtual const BatchArray* array(size_t field, size_t sample) const = 0;
};
// Gives the batch's memory back to its loader's pool, which lives as long as any of its batches.
struct ReturnBatch {
  void operator()(Batch* batch) const;
};
using BatchPtr = std::unique_ptr<Batch, ReturnBatch>;

struct BadLoad {
  uint32_t source = 0;  // which of LoadSpec::parts
  uint64_t index = 0;   // within the split
  std::string key, what;
};

// Where the time of a run went. A plain value.
struct LoadReport {
  uint64_t samples = 0, batches = 0, bytes = 0;  // delivered; bytes read from storage
  double seconds = 0;                            // since the first batch was asked for
  double seconds_waited = 0;                     // that next() waited
  double read_wait = 0;                          // threads * seconds that nothing was there to decode
  double decode = 0;                             // threads * seconds of decoding
  double blocked = 0;                            // threads * seconds that all batches ahead were full
  uint32_t threads = 0, prefetch = 0;
  uint64_t memory = 0;  // bytes held for batches and read-ahead, at most
  uint64_t warnings = 0, errors = 0;
  uint64_t replaced = 0;           // of the errors: places that another sample took
  std::vector<BadLoad> bad;        // the first of them
  std::string_view limit() const;  // "storage", "decode", "training" or "unknown"
  std::string text() const;        // the verdict in a few lines
};

// Drives the path. next(), start() and stop() come from one thread at a time; report() from any. It belongs
// to the process that made it: in a child of fork() its threads are not there, and its locks may be held for
// ever by threads that are not. There start() and next() are errors, and stop() and the destructor do
// nothing.
class Loader {
 public:
  static Result<std::unique_ptr<Loader>> make(LoadSpec spec);
  virtual ~Loader() = default;  // stops everything at once; batches that were handed out stay valid
  virtual bool is_of_this_process() const = 0;

  // Begins epoch `epoch` with `consumed` of its samples done; what is under way for another place is dropped.
  // The epoch after it is prefetched by itself: starting that one costs nothing. It is the one with the next
  // number, or `then`, which also follows on itself.
  virtual Status start(uint64_t epoch, uint64_t consumed = 0, std::optional<uint64_t> then = {}) = 0;
  // Ends the epoch where it is: threads, read-ahead and all batches that nobody has are given back, and those
  // that somebody has as soon as they die; start() begins anew.
  virtual void stop() = 0;
  // The next batch; null at the end of the epoch. While it waits, `go_on` is asked now and then; false ends
  // the wait with Code::stopped.
  virtual Result<BatchPtr> next(const std::function<bool()>& go_on = {}) = 0;
  // What next() would return at once; nothing if it would have to wait.
  virtual std::optional<Result<BatchPtr>> next_if_ready() = 0;
  // For whoever drops a sample of the last batch because a function of the user's failed on it: counts and
  // names it with the others. Fails if it is one too many.
  virtual Status note_bad(uint32_t source, uint64_t index, const Status& why) = 0;
  virtual bool is_ready() const = 0;   // whether next() would return at once
  virtual uint64_t steps() const = 0;  // of the epoch that was started, on this rank
  virtual uint64_t steps_of_whole_epoch() const = 0;
  virtual uint64_t consumed() const = 0;  // samples of the epoch that were delivered, over all ranks
  virtual uint64_t epoch() const = 0;
  virtual OrderState state() const = 0;
  // Why a run may not go on from this state, or ok.
  virtual Status check(const OrderState& state) const = 0;
  virtual LoadReport report() const = 0;
  virtual const LoadSpec& spec() const = 0;
};

}  // namespace packtrain
