// The readers of single kinds of values, each in a file of its own; ValueReader::make chooses.
#pragma once

#include <memory>

#include "packtrain/values.h"

namespace packtrain {

std::unique_ptr<ValueReader> make_npy_reader();
std::unique_ptr<ValueReader> make_pickle_reader();
std::unique_ptr<ValueReader> make_wav_reader(const ValueSpec& spec);
// `memory`: most bytes of one value. A file that does not say how long it is must be decoded to be counted.
std::unique_ptr<ValueReader> make_flac_reader(const ValueSpec& spec, uint64_t memory);
// `memory`: most bytes that are held of one image while it is decoded, beside its pixels.
std::unique_ptr<ValueReader> make_image_value_reader(const ValueSpec& spec, uint64_t memory);

}  // namespace packtrain
