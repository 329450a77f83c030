#include "decode/jpeg_memory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/forbidden_memory.h"

// Arrays of rows that the library reaches only through access_virt_sarray and access_virt_barray: it leaves
// what they are to whoever manages memory. All rows are in memory, and zero at first.
template <class Row>
struct VirtualArray {
  Row* rows;  // null until realize_virt_arrays
  JDIMENSION row_length, count, most_at_once;
};
struct jvirt_sarray_control : VirtualArray<JSAMPROW> {
  jvirt_sarray_control* next;
};
struct jvirt_barray_control : VirtualArray<JBLOCKROW> {
  jvirt_barray_control* next;
};

namespace packtrain {

namespace {

// Of everything that is handed out, and what rows are padded to: the library's vector code may read and write
// whole vectors at the end of a row.
constexpr size_t kAlignment = 64;
constexpr size_t kLeastBlock = size_t{256} << 10;  // more than most photos need

constexpr size_t padded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <class Array>
auto access(j_common_ptr info, Array* array, JDIMENSION first, JDIMENSION count) {
  if (array->rows == nullptr || count > array->most_at_once || first > array->count ||
      count > array->count - first)
    ERREXIT(info, JERR_BAD_VIRTUAL_ACCESS);
  return array->rows + first;
}

}  // namespace

struct alignas(kAlignment) JpegMemory::Block {
  Block* next;
  size_t bytes;  // behind this
};

// Called by the library, which is left by longjmp where an error is raised: nothing here may own anything.
struct JpegMemory::Calls {
  static JpegMemory& of(j_common_ptr info) { return *static_cast<JpegMemory*>(info->client_data); }

  static void* take_or_fail(j_common_ptr info, size_t bytes) {
    void* memory = of(info).take(bytes);
    if (memory == nullptr) ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
    return memory;
  }

  // Rows of `row_bytes` each, and pointers to them.
  template <class Row>
  static Row* take_rows(j_common_ptr info, size_t row_bytes, JDIMENSION count) {
    row_bytes = padded(row_bytes);
    if (row_bytes != 0 && count > of(info).limit_ / row_bytes) ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
    auto* rows = static_cast<Row*>(take_or_fail(info, count * sizeof(Row)));
    auto* memory = static_cast<std::byte*>(take_or_fail(info, row_bytes * count));
    for (JDIMENSION i = 0; i < count; ++i) rows[i] = reinterpret_cast<Row>(memory + i * row_bytes);
    return rows;
  }

  static void* alloc_small(j_common_ptr info, int pool, size_t bytes) {
    return pool == JPOOL_IMAGE ? take_or_fail(info, bytes) : of(info).library_.alloc_small(info, pool, bytes);
  }
  static void* alloc_large(j_common_ptr info, int pool, size_t bytes) {
    return pool == JPOOL_IMAGE ? take_or_fail(info, bytes) : of(info).library_.alloc_large(info, pool, bytes);
  }
  static JSAMPARRAY alloc_sarray(j_common_ptr info, int pool, JDIMENSION samples, JDIMENSION rows) {
    return pool == JPOOL_IMAGE ? take_rows<JSAMPROW>(info, samples * sizeof(JSAMPLE), rows)
                               : of(info).library_.alloc_sarray(info, pool, samples, rows);
  }
  static JBLOCKARRAY alloc_barray(j_common_ptr info, int pool, JDIMENSION blocks, JDIMENSION rows) {
    return pool == JPOOL_IMAGE ? take_rows<JBLOCKROW>(info, blocks * sizeof(JBLOCK), rows)
                               : of(info).library_.alloc_barray(info, pool, blocks, rows);
  }

  template <class Array>
  static Array* request(j_common_ptr info, int pool, JDIMENSION row_length, JDIMENSION count,
                        JDIMENSION most_at_once, Array*& asked_for) {
    if (pool != JPOOL_IMAGE) ERREXIT1(info, JERR_BAD_POOL_ID, pool);  // as the library's own manager does
    auto* array = new (take_or_fail(info, sizeof(Array))) Array;
    array->rows = nullptr;
    array->row_length = row_length;
    array->count = count;
    array->most_at_once = most_at_once;
    array->next = std::exchange(asked_for, array);
    return array;
  }
  static jvirt_sarray_ptr request_virt_sarray(j_common_ptr info, int pool, boolean, JDIMENSION row_length,
                                              JDIMENSION count, JDIMENSION most_at_once) {
    return request(info, pool, row_length, count, most_at_once, of(info).sample_arrays_);
  }
  static jvirt_barray_ptr request_virt_barray(j_common_ptr info, int pool, boolean, JDIMENSION row_length,
                                              JDIMENSION count, JDIMENSION most_at_once) {
    return request(info, pool, row_length, count, most_at_once, of(info).block_arrays_);
  }

  template <class Row, class Array>
  static void realize(j_common_ptr info, size_t unit_bytes, Array*& asked_for) {
    for (; asked_for != nullptr; asked_for = asked_for->next) {
      const size_t row_bytes = asked_for->row_length * unit_bytes;
      Row* rows = take_rows<Row>(info, row_bytes, asked_for->count);
      for (JDIMENSION i = 0; i < asked_for->count; ++i) std::memset(rows[i], 0, row_bytes);
      asked_for->rows = rows;
    }
  }
  static void realize_virt_arrays(j_common_ptr info) {
    realize<JSAMPROW>(info, sizeof(JSAMPLE), of(info).sample_arrays_);
    realize<JBLOCKROW>(info, sizeof(JBLOCK), of(info).block_arrays_);
  }
  static JSAMPARRAY access_virt_sarray(j_common_ptr info, jvirt_sarray_ptr array, JDIMENSION first,
                                       JDIMENSION count, boolean) {
    return access(info, array, first, count);
  }
  static JBLOCKARRAY access_virt_barray(j_common_ptr info, jvirt_barray_ptr array, JDIMENSION first,
                                        JDIMENSION count, boolean) {
    return access(info, array, first, count);
  }

  static void free_pool(j_common_ptr info, int pool) {
    if (pool == JPOOL_IMAGE) of(info).reset();
    of(info).library_.free_pool(info, pool);
  }
};

JpegMemory::~JpegMemory() { let_go_of_blocks(); }

void JpegMemory::serve(jpeg_decompress_struct& info) {
  info.client_data = this;
  // In the library's own object: its calls for what outlives an image expect to find that.
  jpeg_memory_mgr& manager = *info.mem;
  library_ = manager;
  manager.alloc_small = Calls::alloc_small;
  manager.alloc_large = Calls::alloc_large;
  manager.alloc_sarray = Calls::alloc_sarray;
  manager.alloc_barray = Calls::alloc_barray;
  manager.request_virt_sarray = Calls::request_virt_sarray;
  manager.request_virt_barray = Calls::request_virt_barray;
  manager.realize_virt_arrays = Calls::realize_virt_arrays;
  manager.access_virt_sarray = Calls::access_virt_sarray;
  manager.access_virt_barray = Calls::access_virt_barray;
  manager.free_pool = Calls::free_pool;
}

void* JpegMemory::take(size_t bytes) {
  if (bytes > limit_) return nullptr;
  bytes = padded(std::max<size_t>(bytes, 1));
  if (bytes > limit_ || used_ > limit_ - bytes) return nullptr;
  if (bytes > static_cast<size_t>(end_ - at_) && !add_block(bytes)) return nullptr;
  used_ += bytes;
  PACKTRAIN_ALLOW_MEMORY(at_, bytes);
  return std::exchange(at_, at_ + bytes);
}

bool JpegMemory::add_block(size_t bytes) {
  bytes = std::max({bytes, wanted_, kLeastBlock});
  void* memory = ::operator new (sizeof(Block) + bytes, std::align_val_t{kAlignment}, std::nothrow);
  if (memory == nullptr) return false;
  blocks_ = new (memory) Block{blocks_, bytes};
  held_ += bytes;
  at_ = static_cast<std::byte*>(memory) + sizeof(Block);
  end_ = at_ + bytes;
  PACKTRAIN_FORBID_MEMORY(at_, bytes);
  return true;
}

void JpegMemory::let_go_of_blocks() {
  while (blocks_ != nullptr) {
    Block* block = std::exchange(blocks_, blocks_->next);
    held_ -= block->bytes;
    PACKTRAIN_ALLOW_MEMORY(block, sizeof(Block) + block->bytes);
    ::operator delete (block, std::align_val_t{kAlignment});
  }
  at_ = end_ = nullptr;
}

// Everything is free again. An image that took several blocks makes room for its like in one.
void JpegMemory::reset() {
  sample_arrays_ = nullptr;
  block_arrays_ = nullptr;
  if (blocks_ != nullptr && blocks_->next != nullptr) {
    wanted_ = std::max(wanted_, padded(std::min<size_t>(used_ + used_ / 4, limit_)));
    let_go_of_blocks();
  } else if (blocks_ != nullptr) {
    at_ = end_ - blocks_->bytes;
    PACKTRAIN_FORBID_MEMORY(at_, blocks_->bytes);
  }
  used_ = 0;
}

}  // namespace packtrain
