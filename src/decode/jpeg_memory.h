// JpegMemory: what libjpeg works in while it decodes an image, kept from one image to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

// jpeglib.h wants FILE and size_t to be known, and jerror.h wants it.
#include <jpeglib.h>

#include <jerror.h>

namespace packtrain {

// The library's own manager asks the heap several times for each image and gives everything back after it.
// This one stands in for it with a stretch of memory that has grown to what the images need: then there is no
// call to the heap, and no page that is touched for the first time. One thread at a time.
class JpegMemory {
 public:
  // `limit`: bytes for one image. What asks for more fails with JERR_OUT_OF_MEMORY, by the error manager.
  explicit JpegMemory(uint64_t limit) : limit_(limit) {}
  ~JpegMemory();
  JpegMemory(const JpegMemory&) = delete;
  JpegMemory& operator=(const JpegMemory&) = delete;

  // Right after `info` was made, whose client_data it takes. What outlives an image stays with the library.
  void serve(jpeg_decompress_struct& info);
  void allow(uint64_t limit) { limit_ = limit; }  // from now on
  size_t held() const { return held_; }

 private:
  struct Block;
  struct Calls;  // what the library calls

  void* take(size_t bytes);  // null beyond the limit, or where the heap has nothing
  bool add_block(size_t bytes);
  void let_go_of_blocks();
  void reset();

  uint64_t limit_;
  Block* blocks_ = nullptr;                   // the newest first
  std::byte *at_ = nullptr, *end_ = nullptr;  // what is left of the newest
  size_t used_ = 0;                           // by this image
  size_t wanted_ = 0;                         // by the largest image that did not fit into one block
  size_t held_ = 0;
  jvirt_sarray_ptr sample_arrays_ = nullptr;  // asked for, not made yet
  jvirt_barray_ptr block_arrays_ = nullptr;
  jpeg_memory_mgr library_{};  // its own calls
};

}  // namespace packtrain
