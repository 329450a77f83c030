// PadNumber: what fills up shorter values, as a number of their type.
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "decode/pixel_writer.h"
#include "packtrain/values.h"

namespace packtrain {
namespace {

constexpr double kLargestFloat16 = 65504;

template <class T>
std::string words_of(T number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number);
  return {text, end.ptr};
}

template <class T>
bool store(T value, NumberBits& bits) {
  std::memcpy(bits.data(), &value, sizeof value);
  return true;
}

// A number of C++ type T, into `bits`; false if there is none.
template <class T>
bool store_as(const PadNumber& pad, NumberBits& bits) {
  const auto* const real = std::get_if<double>(&pad);
  if constexpr (std::is_integral_v<T>) {
    if (real) {
      // What lies beyond the type must not be converted; powers of two are exact in a double.
      const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
      const double least = std::is_signed_v<T> ? -beyond : 0;
      return *real >= least && *real < beyond && *real == std::trunc(*real) &&
             store(static_cast<T>(*real), bits);
    }
    if (const auto* const whole = std::get_if<int64_t>(&pad))
      return std::in_range<T>(*whole) && store(static_cast<T>(*whole), bits);
    const uint64_t whole = std::get<uint64_t>(pad);
    return std::in_range<T>(whole) && store(static_cast<T>(whole), bits);
  } else {
    if (real && std::isfinite(*real) && std::abs(*real) > double{std::numeric_limits<T>::max()}) return false;
    return store(std::visit([](auto number) { return static_cast<T>(number); }, pad), bits);
  }
}

bool store_float16(const PadNumber& pad, NumberBits& bits) {
  const double real = std::visit([](auto number) { return static_cast<double>(number); }, pad);
  if (std::isnan(real)) return store(uint16_t{0x7E00}, bits);
  if (std::isfinite(real) && std::abs(real) > kLargestFloat16) return false;
  return store(to_float16(static_cast<float>(real)), bits);
}

bool store_bool(const PadNumber& pad, NumberBits& bits) {
  return store_as<uint8_t>(pad, bits) && bits[0] <= std::byte{1};
}

bool store_number(const PadNumber& pad, NumberType type, NumberBits& bits) {
  switch (type) {
    case NumberType::boolean:
      return store_bool(pad, bits);
    case NumberType::int8:
      return store_as<int8_t>(pad, bits);
    case NumberType::int16:
      return store_as<int16_t>(pad, bits);
    case NumberType::int32:
      return store_as<int32_t>(pad, bits);
    case NumberType::int64:
      return store_as<int64_t>(pad, bits);
    case NumberType::uint8:
      return store_as<uint8_t>(pad, bits);
    case NumberType::uint16:
      return store_as<uint16_t>(pad, bits);
    case NumberType::uint32:
      return store_as<uint32_t>(pad, bits);
    case NumberType::uint64:
      return store_as<uint64_t>(pad, bits);
    case NumberType::float16:
      return store_float16(pad, bits);
    case NumberType::float32:
    case NumberType::complex64:  // the imaginary part is zero
      return store_as<float>(pad, bits);
    case NumberType::float64:
    case NumberType::complex128:
      return store_as<double>(pad, bits);
  }
  return false;
}

template <class T>
std::string whole_range() {
  return "which has whole numbers from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
         std::to_string(std::numeric_limits<T>::max());
}

std::string range_of(NumberType type) {
  switch (type) {
    case NumberType::boolean:
      return "which has 0 and 1";
    case NumberType::int8:
      return whole_range<int8_t>();
    case NumberType::int16:
      return whole_range<int16_t>();
    case NumberType::int32:
      return whole_range<int32_t>();
    case NumberType::int64:
      return whole_range<int64_t>();
    case NumberType::uint8:
      return whole_range<uint8_t>();
    case NumberType::uint16:
      return whole_range<uint16_t>();
    case NumberType::uint32:
      return whole_range<uint32_t>();
    case NumberType::uint64:
      return whole_range<uint64_t>();
    case NumberType::float16:
      return "which goes up to " + words_of(kLargestFloat16);
    default:
      return "which goes up to " + words_of(std::numeric_limits<float>::max());
  }
}

}  // namespace

Result<NumberBits> bits_of_pad(const PadNumber& pad, NumberType type) {
  NumberBits bits{};
  if (store_number(pad, type, bits)) return bits;
  return Status(Code::invalid, "pad=" + std::visit([](auto number) { return words_of(number); }, pad) +
                                   " is no number of the type " + std::string(number_name(type)) + ", " +
                                   range_of(type));
}

}  // namespace packtrain
