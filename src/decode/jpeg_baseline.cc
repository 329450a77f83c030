// Progressive JPEG to baseline: the coefficients are read, and written again with other codes. No pixel is
// made on the way. Where a quantisation table has 16 bits the result is "extended sequential", which is
// baseline with wider tables.
#include "decode/jpeg_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/words.h"
#include "decode/jpeg_header.h"
#include "packtrain/decode.h"

namespace packtrain {
namespace {

constexpr size_t kLeastRoom = 64 << 10;
constexpr unsigned kLongestMarker = 0xFFFF;
// The first coefficients, which a decoder guesses where scans are missing.
constexpr int kSmoothed = 10;

// Grows a vector by need.
struct JpegOutput : jpeg_destination_mgr {
  explicit JpegOutput(std::vector<std::byte>& to) : jpeg_destination_mgr(), bytes(to) {
    init_destination = [](j_compress_ptr info) { of(info).grow(); };
    empty_output_buffer = [](j_compress_ptr info) {
      // Called when the room is used up, whatever free_in_buffer says.
      JpegOutput& self = of(info);
      self.used = self.bytes.size();
      self.grow();
      return static_cast<boolean>(TRUE);
    };
    term_destination = [](j_compress_ptr info) {
      JpegOutput& self = of(info);
      self.bytes.resize(self.bytes.size() - self.free_in_buffer);
    };
  }
  static JpegOutput& of(j_compress_ptr info) { return *static_cast<JpegOutput*>(info->dest); }
  void grow() {
    bytes.resize(std::max(used * 2, used + kLeastRoom));
    next_output_byte = reinterpret_cast<JOCTET*>(bytes.data()) + used;
    free_in_buffer = bytes.size() - used;
  }
  std::vector<std::byte>& bytes;
  size_t used = 0;
};

// Both ends of the library, for one file. One thread at a time.
class Recoder {
 public:
  Recoder(Bytes jpeg, uint64_t memory, std::vector<std::byte>& out)
      : jpeg_(jpeg), memory_(memory), output_(out) {
    from_.err = to_.err = &errors_;
  }
  ~Recoder() {
    jpeg_destroy_compress(&to_);
    jpeg_destroy_decompress(&from_);
  }
  Recoder(const Recoder&) = delete;
  Recoder& operator=(const Recoder&) = delete;

  // True: the output is whole.
  Result<bool> run() {
    if (!guarded(read_header)) return failure();
    if (from_.data_precision != 8)
      return Status(Code::unsupported, fmt::format("a JPEG of {} bits; 8 are read", from_.data_precision));
    if (const uint64_t bytes = coefficient_bytes(from_); bytes > memory_)
      return Status(
          Code::unsupported,
          fmt::format("a progressive JPEG of {} x {} pixels takes {} while it is recoded, and {} are "
                      "allowed",
                      from_.image_width, from_.image_height, bytes_in_words(bytes), bytes_in_words(memory_)));
    if (!guarded(read_all)) return failure();
    if (is_unfinished()) return false;
    if (!guarded(write_all)) return failure();
    return true;
  }

 private:
  // The only place with setjmp. A step, and what it calls, must own nothing: the library leaves it by
  // longjmp.
  bool guarded(void (*step)(Recoder&)) {
    if (setjmp(errors_.jump) != 0) return false;
    step(*this);
    return true;
  }
  Status failure() {
    return errors_.failure(reinterpret_cast<j_common_ptr>(&from_), "recode the JPEG as baseline");
  }

  static void read_header(Recoder& self) {
    jpeg_create_decompress(&self.from_);
    self.input_.feed(self.from_, self.jpeg_);
    jpeg_save_markers(&self.from_, JPEG_COM, kLongestMarker);
    for (int i = 0; i < 16; ++i) jpeg_save_markers(&self.from_, JPEG_APP0 + i, kLongestMarker);
    jpeg_read_header(&self.from_, TRUE);
    for (const jpeg_marker_struct* marker = self.from_.marker_list; marker != nullptr; marker = marker->next)
      self.last_of_header_ = marker;
  }
  static void read_all(Recoder& self) { self.coefficients_ = jpeg_read_coefficients(&self.from_); }

  // Whether some of the first coefficients were never sent to their last bit: decoders then smooth what they
  // show of a progressive file, and would not do so for a baseline one.
  bool is_unfinished() const {
    if (from_.coef_bits == nullptr) return false;
    for (int component = 0; component < from_.num_components; ++component)
      for (int i = 0; i < kSmoothed; ++i)
        if (from_.coef_bits[component][i] != 0) return true;
    return false;
  }

  static void write_all(Recoder& self) {
    jpeg_compress_struct& to = self.to_;
    jpeg_create_compress(&to);
    to.dest = &self.output_;
    jpeg_copy_critical_parameters(&self.from_, &to);
    to.optimize_coding = TRUE;
    to.scan_info = nullptr;
    to.num_scans = 0;
    // Every segment is copied as it is, these two among them.
    to.write_JFIF_header = FALSE;
    to.write_Adobe_marker = FALSE;
    jpeg_write_coefficients(&to, self.coefficients_);
    bool in_header = self.last_of_header_ != nullptr;
    for (const jpeg_marker_struct* marker = self.from_.marker_list; marker != nullptr;
         marker = marker->next) {
      // Between scans, where nobody heeds them, these two say nothing of the colours; in front they would.
      if (in_header || (marker->marker != JPEG_APP0 && marker->marker != JPEG_APP0 + 14))
        jpeg_write_marker(&to, marker->marker, marker->data, marker->data_length);
      in_header = in_header && marker != self.last_of_header_;
    }
    jpeg_finish_compress(&to);
    jpeg_finish_decompress(&self.from_);
  }

  const Bytes jpeg_;
  const uint64_t memory_;
  JpegErrors errors_;
  JpegInput input_;
  JpegOutput output_;
  jpeg_decompress_struct from_{};
  jpeg_compress_struct to_{};
  jvirt_barray_ptr* coefficients_ = nullptr;
  const jpeg_marker_struct* last_of_header_ = nullptr;
};

}  // namespace

Status recode_as_baseline(Bytes jpeg, uint64_t memory, std::vector<std::byte>& out) {
  out.clear();
  const auto header = read_jpeg_header(jpeg);
  if (!header || !header->progressive) return {};
  const auto whole = Recoder(jpeg, memory, out).run();
  if (!whole.ok() || !*whole) out.clear();
  return whole.ok() ? Status() : whole.status();
}

}  // namespace packtrain
