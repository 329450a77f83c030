// What every use of libjpeg shares here: errors that leave by longjmp, a source in memory, a limit of scans.
#pragma once

#include "decode/jpeg_memory.h"

#include <csetjmp>
#include <cstdint>

#include "packtrain/status.h"

namespace packtrain {

// The library's error manager. What is not harmless leaves the library by `jump`, which whoever calls it has
// set.
struct JpegErrors : jpeg_error_mgr {
  JpegErrors();
  jmp_buf jump{};
  uint64_t harmless = 0;
  bool too_many_scans = false;
  Bytes file;  // that is read
  // Why the library was left; `doing` is what could not be done, in words.
  Status failure(j_common_ptr info, std::string_view doing);
};

// A whole file in memory, and an eye on the number of its scans. Must outlive `info`, whose errors are
// JpegErrors.
struct JpegInput {
  JpegInput();
  void feed(jpeg_decompress_struct& info, Bytes encoded);
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
};
// For what the library wants and the file does not have.
[[noreturn]] boolean refuse_to_refill(j_decompress_ptr info);

// Bytes that the coefficients of the whole image take, once the header has been read.
uint64_t coefficient_bytes(const jpeg_decompress_struct& info);

}  // namespace packtrain
