// The few things of Python's and NumPy's that a pickled array names, told by name and put together here:
// nothing is imported or called.
//
//   numpy.core.multiarray._reconstruct(ndarray, (0,), b'b')      an empty array, then its state:
//       (1, shape, dtype, is_fortran, bytes)                     protocols 0 to 4
//   numpy.core.numeric._frombuffer(bytes, dtype, shape, order)   protocol 5; order 'K' has the axes' order
//   behind it numpy.core.multiarray.scalar(dtype, bytes)                   one number numpy.dtype('f4',
//   False, True), state (3, '<', …)            NumPy 2 writes _core for core _codecs.encode(text, 'latin1'),
//   bytes(), bytearray(bytes)    bytes in protocols that have none
#pragma once

#include <string_view>

#include "decode/pickle.h"

namespace packtrain {

// Makes objects that lie in a Pickle. One use, one thread.
class PickleObjects {
 public:
  // `most_bytes`: of bytes that were written as text; a pickle cannot hold more than it is long.
  PickleObjects(Pickle& pickle, uint64_t most_bytes) : pickle_(pickle), bytes_left_(most_bytes) {}

  // False if it is none of the names above.
  static bool find(std::string_view module, std::string_view name, PickleValue& out);
  Status call(const PickleValue& named, const PickleValue& arguments, PickleValue& made);
  Status set_state(const PickleValue& object, const PickleValue& state);

 private:
  Status make_bytes(std::span<const PickleValue> arguments, PickleValue& made);
  Status make_type(std::span<const PickleValue> arguments, PickleValue& made);
  Status make_scalar(std::span<const PickleValue> arguments, PickleValue& made);
  Status make_from_buffer(std::span<const PickleValue> arguments, PickleValue& made);
  // `array` has its type by then; `data` must hold all of it.
  Status set_shape(const PickleValue& shape, StoredArray& array) const;
  Status set_data(const PickleValue& type, const PickleValue& shape, const PickleValue& data,
                  StoredArray& array) const;
  PickleValue add_array(const StoredArray& array);

  Pickle& pickle_;
  uint64_t bytes_left_;
};

}  // namespace packtrain
