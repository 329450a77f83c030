// Values of fields: what readers make of sound, odd and hostile bytes. Python's tests compare with NumPy.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/little_endian.h"
#include "decode/stored_array.h"
#include "packtrain/decode.h"
#include "packtrain/values.h"

namespace packtrain {
namespace {

using namespace std::string_literals;

constexpr uint64_t kValueMemory = 1 << 20;

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class T>
std::string numbers(std::initializer_list<T> values) {
  std::string out;
  for (const T value : values) out.append(reinterpret_cast<const char*>(&value), sizeof value);
  return out;
}

struct Value {
  Status status;
  ValueFacts facts;
  std::vector<std::byte> data;

  template <class T>
  std::vector<T> as() const {
    std::vector<T> out(data.size() / sizeof(T));
    std::memcpy(out.data(), data.data(), out.size() * sizeof(T));
    return out;
  }
  std::string shape() const { return facts.shape.text(); }
};

Value read(std::string_view encoded, const ValueSpec& spec, uint64_t memory = kValueMemory) {
  Value value;
  auto reader = ValueReader::make(spec, memory);
  if (!reader.ok()) return {reader.status()};
  auto facts = (*reader)->look(bytes_of(encoded));
  if (!facts.ok()) return {facts.status()};
  value.facts = *facts;
  if (!facts->is_array) return value;
  value.data.resize(facts->shape.bytes());
  value.status = (*reader)->read(value.data);
  return value;
}

Value read(std::string_view encoded, ValueKind kind) {
  ValueSpec spec;
  spec.kind = kind;
  if (kind == ValueKind::audio) spec.type = NumberType::float32;
  return read(encoded, spec);
}

std::string npy(std::string_view header, std::string_view data, uint8_t version = 1) {
  std::string out("\x93NUMPY", 6);
  out += static_cast<char>(version);
  out += '\0';
  out += version == 1 ? numbers<uint16_t>({static_cast<uint16_t>(header.size())})
                      : numbers<uint32_t>({static_cast<uint32_t>(header.size())});
  return out.append(header).append(data);
}

std::string ppm(uint32_t width, uint32_t height) {
  Image image{{width, height, 3}, std::vector<uint8_t>(size_t{3} * width * height)};
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 7);
  const std::vector<std::byte> encoded = encode_pnm(image).value();
  return {reinterpret_cast<const char*>(encoded.data()), encoded.size()};
}

TEST(ImageValue, PixelsComeInTheirOwnSizeAndNoneIsTooLarge) {
  const std::string file = ppm(5, 3);
  const Value value = read(file, ValueKind::image);
  ASSERT_TRUE(value.status.ok()) << value.status.message();
  EXPECT_EQ(value.shape(), "uint8 (3, 5, 3)");
  EXPECT_EQ(value.facts.long_axes, 2);
  EXPECT_EQ(value.as<char>(), std::vector<char>(file.end() - 45, file.end()));
  EXPECT_EQ(read(file.substr(0, file.size() - 1), ValueKind::image).status.code(), Code::corrupt);
  EXPECT_EQ(read("", ValueKind::image).status.code(), Code::corrupt);
  EXPECT_EQ(read("GIF89a", ValueKind::image).status.code(), Code::unsupported);
  const ValueSpec spec{.kind = ValueKind::image, .pad = true};
  EXPECT_TRUE(read(ppm(100, 10), spec, 3000).status.ok());
  EXPECT_EQ(read(ppm(100, 10), spec, 2999).status.code(), Code::unsupported);
}

TEST(NpyValue, NumbersInAnyOrderOfAxesAndBytesComeInCOrder) {
  const std::string data = numbers<int16_t>({1, 2, 3, 4, 5, 6});
  const std::vector<int16_t> in_order = {1, 2, 3, 4, 5, 6}, transposed = {1, 3, 5, 2, 4, 6};
  Value value =
      read(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }  \n", data), ValueKind::npy);
  ASSERT_TRUE(value.status.ok()) << value.status.text();
  EXPECT_EQ(value.shape(), "int16 (2, 3)");
  EXPECT_EQ(value.as<int16_t>(), in_order);
  for (const uint8_t version : {1, 2, 3}) {
    value = read(npy("{\"shape\":(2,3L),'fortran_order':True,'descr':'<i2'}", data, version), ValueKind::npy);
    ASSERT_TRUE(value.status.ok()) << value.status.text();
    EXPECT_EQ(value.as<int16_t>(), transposed);
  }
  value = read(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (1,), }", std::string("\x01\x02", 2)),
               ValueKind::npy);
  EXPECT_EQ(value.as<int16_t>(), std::vector<int16_t>{0x0102});
  value =
      read(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", numbers({2.5})), ValueKind::array);
  EXPECT_EQ(value.shape(), "float64 ()");
  EXPECT_EQ(value.as<double>(), std::vector<double>{2.5});
}

TEST(NpyValue, WhatIsNoArrayOfNumbersIsASentence) {
  const auto code = [](std::string_view header, std::string_view data = "") {
    return read(npy(header, data), ValueKind::npy).status.code();
  };
  EXPECT_EQ(code("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"), Code::unsupported);
  EXPECT_EQ(code("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }"), Code::unsupported);
  EXPECT_EQ(code("{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }"), Code::unsupported);
  EXPECT_EQ(code("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }"),
            Code::unsupported);
  EXPECT_EQ(code("{'descr': '|u1', 'fortran_order': False, 'shape': (-1,), }"), Code::corrupt);
  EXPECT_EQ(code("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
            Code::corrupt);
  EXPECT_EQ(code("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296), }"),
            Code::corrupt);
  EXPECT_EQ(code("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,), }"),
            Code::corrupt);
  EXPECT_EQ(code("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "ab"), Code::corrupt);
  EXPECT_EQ(code("{'descr': '|u1', 'fortran_order': False}", "ab"), Code::corrupt);
  EXPECT_EQ(read("", ValueKind::npy).status.code(), Code::corrupt);
  EXPECT_EQ(read("PK\x03\x04", ValueKind::npy).status.code(), Code::corrupt);
}

TEST(NpyValue, CutShortAnywhereItIsCorrupt) {
  const std::string whole = npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }", "abcd");
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(read(whole.substr(0, length), ValueKind::npy).status.code(), Code::corrupt) << length;
  EXPECT_TRUE(read(whole, ValueKind::npy).status.ok());
}

TEST(StoredArrayOrder, AxesComeBackFromAnyTransposition) {
  std::string data;
  for (uint8_t i = 0; i < 24; ++i) data += static_cast<char>(i);
  StoredArray array;
  for (const uint64_t size : {2, 3, 4}) ASSERT_TRUE(add_axis(array.shape, size));
  array.data = bytes_of(data);
  const uint64_t order[] = {1, 2, 0};
  ASSERT_TRUE(array.use_axis_order(order));
  EXPECT_EQ(array.shape.text(), "uint8 (3, 4, 2)");
  std::vector<std::byte> out(24);
  copy_array(array, out);
  for (size_t a = 0; a < 3; ++a)
    for (size_t b = 0; b < 4; ++b)
      for (size_t c = 0; c < 2; ++c)
        EXPECT_EQ(std::to_integer<size_t>(out[(a * 4 + b) * 2 + c]), c * 12 + a * 4 + b);
  const uint64_t twice[] = {1, 1, 0}, beyond[] = {0, 1, 3};
  EXPECT_FALSE(array.use_axis_order(twice));
  EXPECT_FALSE(array.use_axis_order(beyond));
}

TEST(RawValue, LengthMustBeAWholeNumberOfNumbers) {
  ValueSpec spec;
  spec.kind = ValueKind::raw;
  spec.type = NumberType::uint16;
  const Value value = read(numbers<uint16_t>({7, 65535}), spec);
  EXPECT_EQ(value.shape(), "uint16 (2,)");
  EXPECT_EQ(value.as<uint16_t>(), (std::vector<uint16_t>{7, 65535}));
  EXPECT_EQ(read("abc", spec).status.code(), Code::corrupt);
  EXPECT_EQ(read("", spec).shape(), "uint16 (0,)");
  EXPECT_EQ(read(std::string(10, 'x'), spec, 8).status.code(), Code::unsupported);  // beyond its memory
}

TEST(TextValue, OnlyUtf8IsText) {
  EXPECT_FALSE(read("caf\xC3\xA9", ValueKind::text).facts.is_array);
  EXPECT_EQ(read("caf\xE9", ValueKind::text).status.code(), Code::corrupt);
}

std::string chunk(std::string_view name, std::string_view data) {
  std::string out(name);
  out += numbers<uint32_t>({static_cast<uint32_t>(data.size())});
  out += data;
  if (data.size() % 2 != 0) out += '\0';
  return out;
}
std::string format_chunk(uint16_t tag, uint16_t channels, uint16_t bits, uint32_t rate = 16000) {
  const auto frame = static_cast<uint16_t>(channels * bits / 8);
  return numbers<uint16_t>({tag, channels}) + numbers<uint32_t>({rate, rate * frame}) +
         numbers<uint16_t>({frame, bits});
}
std::string riff(std::string_view chunks, uint32_t size = 0) {
  return "RIFF" + numbers<uint32_t>({size ? size : static_cast<uint32_t>(4 + chunks.size())}) + "WAVE" +
         std::string(chunks);
}
std::string wav(uint16_t tag, uint16_t channels, uint16_t bits, std::string_view data) {
  return riff(chunk("fmt ", format_chunk(tag, channels, bits)) + chunk("data", data));
}
Value read_int16(std::string_view encoded) {
  return read(encoded, {.kind = ValueKind::audio, .type = NumberType::int16});
}

TEST(WavValue, EveryWidthBecomesFloatsInOneAndInt16) {
  struct Case {
    uint16_t tag, bits;
    std::string data;  // -1, one half
  };
  for (const Case& test : std::vector<Case>{{1, 8, std::string("\x00\xC0", 2)},
                                            {1, 16, numbers<int16_t>({-32768, 16384})},
                                            {1, 24, std::string("\x00\x00\x80\x00\x00\x40", 6)},
                                            {1, 32, numbers<int32_t>({INT32_MIN, 1 << 30})},
                                            {3, 32, numbers<float>({-1.0f, 0.5f})},
                                            {3, 64, numbers<double>({-1.0, 0.5})}}) {
    const std::string file = wav(test.tag, 1, test.bits, test.data);
    const Value value = read(file, ValueKind::audio);
    ASSERT_TRUE(value.status.ok()) << value.status.text();
    EXPECT_EQ(value.shape(), "float32 (1, 2)");
    EXPECT_EQ(value.facts.sample_rate, 16000u);
    EXPECT_EQ(value.facts.long_axis, 1);
    EXPECT_EQ(value.as<float>(), (std::vector<float>{-1.0f, 0.5f})) << test.bits;
    EXPECT_EQ(read_int16(file).as<int16_t>(), (std::vector<int16_t>{-32768, 16384})) << test.bits;
  }
  const std::string loud = wav(3, 1, 32, numbers<float>({2.0f, NAN, -3.0f}));
  EXPECT_EQ(read_int16(loud).as<int16_t>(), (std::vector<int16_t>{32767, 0, -32768}));
}

TEST(WavValue, ChannelsAreTakenApartOrTakenTogether) {
  const std::string file = wav(1, 2, 16, numbers<int16_t>({1, 2, 3, 5, 5, 6}));
  const Value apart = read_int16(file);
  EXPECT_EQ(apart.shape(), "int16 (2, 3)");
  EXPECT_EQ(apart.as<int16_t>(), (std::vector<int16_t>{1, 3, 5, 2, 5, 6}));
  const Value together = read(file, {.kind = ValueKind::audio, .type = NumberType::float32, .mono = true});
  EXPECT_EQ(together.shape(), "float32 (3,)");
  EXPECT_EQ(together.as<float>(), (std::vector<float>{1.5f / 32768, 4.0f / 32768, 5.5f / 32768}));
}

TEST(WavValue, OddFilesOfRealProgramsAreRead) {
  const std::string data = numbers<int16_t>({3, 4}), format = chunk("fmt ", format_chunk(1, 1, 16));
  const std::string extensible = format_chunk(0xFFFE, 1, 16) + numbers<uint16_t>({22, 16}) +
                                 numbers<uint32_t>({4}) + numbers<uint16_t>({1}) +
                                 std::string("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 14);
  const auto unknown_size = [&](uint32_t size) { return "data" + numbers<uint32_t>({size}) + data; };
  const std::string long_sizes = numbers<uint64_t>({0, data.size(), 0});
  std::string rf64 =
      riff(chunk("ds64", long_sizes) + format + unknown_size(UINT32_MAX) + chunk("LIST", "info"));
  rf64.replace(0, 4, "RF64");
  const std::vector<std::string> files = {
      riff(chunk("JUNK", "odd") + format + chunk("LIST", "x") + chunk("data", data) + chunk("id3 ", "tail")),
      riff(chunk("fmt ", extensible) + chunk("data", data)),
      riff(format + unknown_size(UINT32_MAX), UINT32_MAX),
      riff(format + unknown_size(0x7FFFFFFF - 36), 0x7FFFFFFF),
      riff(format + unknown_size(0), UINT32_MAX),
      riff(chunk("fmt ", format_chunk(1, 1, 16)) + chunk("data", data + "x")),  // half a frame at the end
      rf64,
  };
  for (size_t i = 0; i < files.size(); ++i) {
    const Value value = read_int16(files[i]);
    ASSERT_TRUE(value.status.ok()) << i << ": " << value.status.text();
    EXPECT_EQ(value.as<int16_t>(), (std::vector<int16_t>{3, 4})) << i;
  }
  EXPECT_EQ(read_int16(wav(1, 1, 16, "")).shape(), "int16 (1, 0)");
}

TEST(WavValue, DamageIsCorruptAndOtherFormatsAreASentence) {
  const std::string whole = wav(1, 1, 16, numbers<int16_t>({3, 4}));
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(read_int16(whole.substr(0, length)).status.code(), Code::corrupt) << length;
  EXPECT_EQ(read_int16(wav(6, 1, 8, "ab")).status.code(), Code::unsupported);  // A-law
  EXPECT_EQ(read_int16(wav(1, 0, 16, "ab")).status.code(), Code::corrupt);
  EXPECT_EQ(read_int16(riff(chunk("data", "ab"))).status.code(), Code::corrupt);
  EXPECT_EQ(read_int16("OggS").status.code(), Code::corrupt);
  const ValueSpec wrong{.kind = ValueKind::audio, .type = NumberType::int32};
  EXPECT_EQ(read(whole, wrong).status.code(), Code::invalid);
}

// numpy.arange(3, dtype="<i2"), as NumPy 1 pickles it with protocol 2 (`data`: the bytes as text).
std::string pickled_array(std::string_view data, std::string_view shape = "K\x03\x85") {
  std::string out =
      "\x80\x02"
      "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"s;
  out += "c_codecs\nencode\nX";
  out += numbers<uint32_t>({1}) + "bX" + numbers<uint32_t>({6}) + "latin1\x86R\x87R(K\x01";
  out += std::string(shape) + "cnumpy\ndtype\nX" + numbers<uint32_t>({2}) + "i2\x89\x88\x87R(K\x03X";
  out += numbers<uint32_t>({1}) + "<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK";
  out += '\0';
  out +=
      "tb\x89"
      "c_codecs\nencode\nX" +
      numbers<uint32_t>({static_cast<uint32_t>(data.size())}) + std::string(data);
  return out + "X" + numbers<uint32_t>({6}) + "latin1\x86Rtb.";
}

TEST(PickleValue, ArraysAreReadAndNothingIsExecuted) {
  const std::string data("\x00\x00\x01\x00\xC2\x80\xC3\xBF", 8);  // 00 00 01 00 80 FF
  const Value value = read(pickled_array(data), ValueKind::pickle);
  ASSERT_TRUE(value.status.ok()) << value.status.text();
  EXPECT_EQ(value.shape(), "int16 (3,)");
  EXPECT_EQ(value.as<int16_t>(), (std::vector<int16_t>{0, 1, -128}));
  for (const std::string_view hostile : {"cos\nsystem\n(S'true'\ntR.", "cbuiltins\neval\n(S'1'\ntR.",
                                         "cnumpy\nload\n(S'x'\ntR.", "cnumpy\nndarray\n(K\x05tR."}) {
    EXPECT_EQ(read(hostile, ValueKind::pickle).status.code(), Code::corrupt) << hostile;
  }
}

TEST(PickleValue, HostileShapesAndBytesAreRefused) {
  const std::string six("abcdef");
  ASSERT_EQ(read(pickled_array(six), ValueKind::pickle).shape(), "int16 (3,)");
  EXPECT_EQ(read(pickled_array(six, "K\x04\x85"), ValueKind::pickle).status.code(), Code::corrupt);
  EXPECT_EQ(read(pickled_array(six, "J\xff\xff\xff\xff\x85"), ValueKind::pickle).status.code(),
            Code::corrupt);
  const std::string huge = "\x8a\x08" + numbers<int64_t>({INT64_MAX});
  EXPECT_EQ(read(pickled_array(six, huge + "\x85"), ValueKind::pickle).status.code(), Code::corrupt);
  EXPECT_EQ(read(pickled_array(six, huge + huge + "\x86"), ValueKind::pickle).status.code(), Code::corrupt);
  EXPECT_EQ(read(pickled_array("\xC4\x80"), ValueKind::pickle).status.code(), Code::corrupt);  // no Latin-1
  // One long text, made into bytes again and again.
  std::string bomb = "\x80\x02X" + numbers<uint32_t>({1000}) + std::string(1000, 'x');
  bomb += "q\x00("s;
  for (int i = 0; i < 100; ++i) bomb += "c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R"s;
  EXPECT_EQ(read(bomb + "t.", ValueKind::pickle).status.message(), "it makes more bytes than it holds");
}

TEST(PickleValue, OtherPlainDataStayBytesThatWereChecked) {
  EXPECT_FALSE(read("(lp0\nI1\naS'a'\na.", ValueKind::pickle).facts.is_array);
  EXPECT_EQ(read("I7\n.", ValueKind::pickle).as<int64_t>(), std::vector<int64_t>{7});
  EXPECT_EQ(read("I01\n.", ValueKind::pickle).shape(), "bool ()");
  EXPECT_EQ(read("F2.5\n.", ValueKind::array).as<double>(), std::vector<double>{2.5});
  EXPECT_EQ(read("(lp0\nI1\na.", ValueKind::array).status.code(), Code::unsupported);
  EXPECT_EQ(read("cnumpy\ndtype\n.", ValueKind::pickle).status.code(), Code::unsupported);
  EXPECT_EQ(read("(d](K\x01u.", ValueKind::pickle).status.code(), Code::corrupt);
  EXPECT_EQ(read("}]K\x01s.", ValueKind::pickle).status.code(), Code::unsupported);  // a list as key
  EXPECT_FALSE(read("]q\x01h\x01"
                    "a.",
                    ValueKind::pickle)
                   .facts.is_array);  // a list that holds itself
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += ']';
  for (int i = 1; i < 100000; ++i) deep += 'a';
  EXPECT_FALSE(read(deep + ".", ValueKind::pickle).facts.is_array);
}

}  // namespace
}  // namespace packtrain
