#include "decode/jpeg_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace packtrain {
namespace {

constexpr int kMostScans = 500;  // a progressive file may hold endless empty ones

JpegErrors& errors_of(j_common_ptr info) { return *static_cast<JpegErrors*>(info->err); }

// Whether the bytes in front of a marker that nobody asked for are no part of the image. Between the segments
// of a header they are. Behind a scan they mean that its codes went wrong on the way and ended early, unless
// they are the zeros with which some cameras fill up.
bool are_strays(j_common_ptr info) {
  if (!info->is_decompressor) return true;
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number == 0) return true;
  const JpegErrors& errors = errors_of(info);
  const auto* marker = reinterpret_cast<const std::byte*>(decompress->src->next_input_byte);
  const auto count = static_cast<size_t>(errors.msg_parm.i[0]);
  if (count > static_cast<size_t>(marker - errors.file.data())) return false;
  return std::all_of(marker - count, marker, [](std::byte stray) { return stray == std::byte{0}; });
}

// Oddities that leave every pixel in place: real photo collections hold such files, and Pillow reads them.
bool is_harmless(j_common_ptr info) {
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
      return are_strays(info);
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
      return true;
    default:
      return false;
  }
}

Code code_of(int message) {
  switch (message) {
    case JERR_OUT_OF_MEMORY:
      return Code::no_room;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_IMAGE_TOO_BIG:
    case JERR_NOT_COMPILED:
      return Code::unsupported;
    default:
      return Code::corrupt;
  }
}

[[noreturn]] void leave(j_common_ptr info) { std::longjmp(errors_of(info).jump, 1); }

void take_message(j_common_ptr info, int level) {
  if (level >= 0) return;  // a trace
  JpegErrors& errors = errors_of(info);
  if (!is_harmless(info)) leave(info);
  ++errors.harmless;
}

void print_nothing(j_common_ptr) {}
void do_nothing(j_decompress_ptr) {}

boolean refill(j_decompress_ptr info) { refuse_to_refill(info); }

void skip_bytes(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > info->src->bytes_in_buffer) refuse_to_refill(info);
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= static_cast<size_t>(count);
}

void count_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  errors_of(info).too_many_scans = true;
  leave(info);
}

}  // namespace

JpegErrors::JpegErrors() : jpeg_error_mgr() {
  jpeg_std_error(this);
  error_exit = leave;
  emit_message = take_message;
  output_message = print_nothing;
}

Status JpegErrors::failure(j_common_ptr info, std::string_view doing) {
  char text[JMSG_LENGTH_MAX] = "";
  const int message = msg_code;
  const bool scans = std::exchange(too_many_scans, false);
  format_message(info, text);
  jpeg_abort(info);
  if (scans) return Status(Code::corrupt, fmt::format("cannot {}: more than {} scans", doing, kMostScans));
  return Status(code_of(message), fmt::format("cannot {}: {}", doing, text));
}

JpegInput::JpegInput() {
  source.init_source = do_nothing;
  source.fill_input_buffer = refill;
  source.skip_input_data = skip_bytes;
  source.resync_to_restart = jpeg_resync_to_restart;
  source.term_source = do_nothing;
  progress.progress_monitor = count_scans;
}

void JpegInput::feed(jpeg_decompress_struct& info, Bytes encoded) {
  errors_of(reinterpret_cast<j_common_ptr>(&info)).file = encoded;
  source.next_input_byte = reinterpret_cast<const JOCTET*>(encoded.data());
  source.bytes_in_buffer = encoded.size();
  info.src = &source;
  info.progress = &progress;
}

// The whole file is in memory: what is asked for beyond its end is not there.
boolean refuse_to_refill(j_decompress_ptr info) {
  info->err->msg_code = JERR_INPUT_EOF;
  leave(reinterpret_cast<j_common_ptr>(info));
}

uint64_t coefficient_bytes(const jpeg_decompress_struct& info) {
  uint64_t bytes = 0;
  for (int i = 0; i < info.num_components; ++i) {
    // Rounded up to whole units of all components, as the library does.
    const jpeg_component_info& component = info.comp_info[i];
    const auto round_up = [](uint64_t value, uint64_t step) { return (value + step - 1) / step * step; };
    bytes += round_up(component.width_in_blocks, static_cast<uint64_t>(component.h_samp_factor)) *
             round_up(component.height_in_blocks, static_cast<uint64_t>(component.v_samp_factor)) *
             sizeof(JBLOCK);
  }
  return bytes;
}

}  // namespace packtrain
