// .npy: NumPy's file of one array, as a value. The header is parsed by format/npy_header.h.
#include "base/words.h"
#include "decode/stored_array.h"
#include "decode/value_readers.h"
#include "format/npy_header.h"
#include "packtrain/decode.h"

namespace packtrain {
namespace {

Result<StoredArray> stored_array(const NpyHeader& header) {
  if (header.records) {
    return Status(Code::unsupported,
                  "the .npy file is an array of records; save one array of numbers for each of their fields");
  }
  if (header.axes > kMostAxes) {
    return Status(Code::unsupported, "the array has more than " + std::to_string(kMostAxes) +
                                         " axes; reshape it when you save it");
  }
  PACKTRAIN_ASSIGN(number, parse_number(header.type));
  StoredArray array;
  array.shape.type = number.type;
  array.swapped = number.swapped;
  for (const uint64_t size : header.shape()) {
    if (!add_axis(array.shape, size))
      return Status(Code::corrupt, "the header of the .npy file claims an impossibly large array");
  }
  if (header.fortran)
    array.use_fortran_order();
  else
    array.use_c_order();
  return array;
}

class NpyReader final : public ValueReader {
 public:
  Result<ValueFacts> look(Bytes encoded) override;
  Status read(MutableBytes into) override {
    copy_array(array_, into);
    return {};
  }

 private:
  StoredArray array_;
};

Result<ValueFacts> NpyReader::look(Bytes encoded) {
  if (media_kind(encoded) != MediaKind::npy) {
    return Status(
        Code::corrupt,
        "it is no .npy file, but " +
            (encoded.empty() ? "empty"
                             : "of the kind '" + std::string(media_kind_name(media_kind(encoded))) + "'"));
  }
  PACKTRAIN_ASSIGN(header, parse_npy_header(encoded));
  PACKTRAIN_ASSIGN(array, stored_array(header));
  array_ = array;
  array_.data = encoded.subspan(header.bytes);
  if (array_.data.size() < array_.shape.bytes()) {
    return Status(Code::corrupt, "the .npy file is cut short: " + array_.shape.text() + " takes " +
                                     count_in_words(array_.shape.bytes()) + " bytes, and " +
                                     count_in_words(array_.data.size()) + " follow");
  }
  ValueFacts facts;
  facts.shape = array_.shape;
  return facts;
}

}  // namespace

std::unique_ptr<ValueReader> make_npy_reader() { return std::make_unique<NpyReader>(); }

}  // namespace packtrain
