#include "packtrain/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/hash.h"
#include "base/little_endian.h"
#include "packtrain/storage.h"

namespace packtrain {
namespace {

std::vector<std::byte> noise(size_t bytes, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<std::byte> made(bytes);
  for (auto& byte : made) byte = static_cast<std::byte>(rng());
  return made;
}

std::vector<std::byte> prose(size_t bytes) {
  static constexpr std::string_view kLine = "the quick brown fox jumps over the lazy dog, ";
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(kLine[(i * i / 7 + i) % kLine.size()]);
  return made;
}

bool compiled_in(std::string_view name) {
  for (const CodecInfo& info : codecs()) {
    if (info.name == name) return info.compiled_in;
  }
  return false;
}

bool all_compiled_in(const Pipeline& pipeline) {
  for (const CodecStep& step : pipeline) {
    if (!compiled_in(step.name)) return false;
  }
  return true;
}

class PipelineTest : public testing::TestWithParam<Pipeline> {
 protected:
  void SetUp() override {
    if (!all_compiled_in(GetParam())) GTEST_SKIP() << "built without the library of this codec";
  }
};

TEST_P(PipelineTest, DecodesWhatItEncodedAtEverySize) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{70'000}, size_t{1'000'000}}) {
    for (const auto& raw : {noise(bytes, 7), prose(bytes)}) {
      auto stored = encode(GetParam(), raw);
      ASSERT_TRUE(stored.ok()) << stored.status().text();
      std::vector<std::byte> back(bytes);
      Status status = decode(GetParam(), *stored, back);
      ASSERT_TRUE(status.ok()) << status.text();
      EXPECT_EQ(back, raw);
    }
  }
}

TEST_P(PipelineTest, AnotherSizeThanRecordedIsCorrupt) {
  auto stored = encode(GetParam(), prose(5000));
  ASSERT_TRUE(stored.ok());
  for (size_t wrong : {size_t{0}, size_t{1}, size_t{4999}, size_t{5001}, size_t{9000}}) {
    std::vector<std::byte> back(wrong);
    EXPECT_EQ(decode(GetParam(), *stored, back).code(), Code::corrupt) << wrong;
  }
}

TEST_P(PipelineTest, TruncationAtAnyByteIsCorrupt) {
  auto raw = prose(300);
  auto stored = encode(GetParam(), raw);
  ASSERT_TRUE(stored.ok());
  std::vector<std::byte> back(raw.size());
  for (size_t keep = 0; keep < stored->size(); ++keep) {
    EXPECT_EQ(decode(GetParam(), Bytes(*stored).first(keep), back).code(), Code::corrupt) << keep;
  }
  stored->push_back(std::byte{0});
  EXPECT_EQ(decode(GetParam(), *stored, back).code(), Code::corrupt) << "one byte too many";
}

INSTANTIATE_TEST_SUITE_P(All, PipelineTest,
                         testing::Values(Pipeline{}, Pipeline{{"deflate"}}, Pipeline{{"zstd"}},
                                         Pipeline{{"lz4"}}, Pipeline{{"lz4_frame"}}, Pipeline{{"blosc", 4}},
                                         Pipeline{{"zlib"}}, Pipeline{{"fletcher32"}},
                                         Pipeline{{"shuffle", 4}},
                                         Pipeline{{"shuffle", 3}, {"fletcher32"}, {"zlib"}},
                                         Pipeline{{"deflate"}, {"zstd"}}));

std::vector<std::byte> bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

TEST(SnappyTest, DecodesEveryKindOfElement) {
  // A literal of 4, a copy of 5 from 4 back that overlaps itself, a copy with two bytes of distance, one with
  // four, a literal with its length behind it.
  const std::string block = std::string("\x17", 1) +
                            std::string(
                                "\x0c"
                                "abcd") +
                            std::string("\x05\x04", 2) + std::string("\x0a\x09\x00", 3) +
                            std::string("\x0b\x02\x00\x00\x00", 5) +
                            std::string(
                                "\xf0\x07"
                                "12345678",
                                10);
  std::vector<std::byte> raw(23);
  const Status status = decode({{"snappy"}}, as_bytes(block), raw);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(as_text(raw), "abcdabcdaabcbcb12345678");
  for (size_t keep = 0; keep < block.size(); ++keep)
    EXPECT_EQ(decode({{"snappy"}}, as_bytes(block).first(keep), raw).code(), Code::corrupt) << keep;
  std::vector<std::byte> longer(24), shorter(22);
  EXPECT_EQ(decode({{"snappy"}}, as_bytes(block), longer).code(), Code::corrupt);
  EXPECT_EQ(decode({{"snappy"}}, as_bytes(block), shorter).code(), Code::corrupt);
}

TEST(SnappyTest, CopiesFromBeforeTheBeginningAreCorrupt) {
  std::vector<std::byte> raw(8);
  for (const std::string& block : {std::string("\x08\x0c"
                                               "abcd\x01\x05",
                                               8),
                                   std::string("\x08\x0c"
                                               "abcd\x01\x00",
                                               8),
                                   std::string("\xff\xff\xff\xff\xff\x01", 6)})
    EXPECT_EQ(decode({{"snappy"}}, as_bytes(block), raw).code(), Code::corrupt);
}

TEST(LzfTest, DecodesLiteralsAndCopies) {
  // "abcd", a copy of 3 from 4 back, a long copy of 12 from 1 back.
  const std::string block(
      "\x03"
      "abcd\x20\x03\xe0\x03\x00",
      10);
  std::vector<std::byte> raw(19);
  const Status status = decode({{"lzf"}}, as_bytes(block), raw);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(as_text(raw), "abcdabc" + std::string(12, 'c'));
  for (size_t keep = 0; keep < block.size(); ++keep)
    EXPECT_EQ(decode({{"lzf"}}, as_bytes(block).first(keep), raw).code(), Code::corrupt) << keep;
}

TEST(Fletcher32Test, IsTheOneOfHdf5) {
  // As libhdf5 stored them behind chunks of these bytes.
  EXPECT_EQ(*encode({{"fletcher32"}}, as_bytes("abcde")), bytes_of(std::string("abcde\xc7\x29\xf0\x4f", 9)));
  std::vector<std::byte> raw(5);
  EXPECT_TRUE(decode({{"fletcher32"}}, as_bytes(std::string("abcde\x29\xc7\x4f\xf0", 9)), raw).ok())
      << "old ones";
  EXPECT_EQ(decode({{"fletcher32"}}, as_bytes(std::string("abcde\xc7\x29\xf0\x4e", 9)), raw).code(),
            Code::corrupt);
}

// What gzip makes of "hello hello hello hello".
std::vector<std::byte> gzip_member() {
  return bytes_of(
      std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x27\x01"
                  "\xe3\x51\x3d\x8d\x17\x00\x00\x00",
                  28));
}

TEST(GzipMemberTest, AnyChangedBitBehindItsHeaderIsCorrupt) {
  if (!compiled_in("gzip_member")) GTEST_SKIP() << "built without libdeflate";
  std::vector<std::byte> raw(23);
  const Status status = decode({{"gzip_member"}}, gzip_member(), raw);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(as_text(raw), "hello hello hello hello");
  for (size_t bit = 8 * 10; bit < 8 * gzip_member().size(); ++bit) {
    std::vector<std::byte> damaged = gzip_member();
    damaged[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_EQ(decode({{"gzip_member"}}, damaged, raw).code(), Code::corrupt) << bit;
  }
}

TEST(Crc32cTest, CoversTheBytesAndWhatStandsInFrontOfThem) {
  std::vector<std::byte> stored = bytes_of("lenabcde");
  const uint32_t check = crc32c(stored);
  stored.resize(stored.size() + sizeof check);
  store_le(stored.data() + 8, check);
  std::vector<std::byte> raw(5), all(8);
  EXPECT_TRUE(decode({{"crc32c", 3}}, stored, raw).ok());
  EXPECT_EQ(as_text(raw), "abcde");
  EXPECT_TRUE(decode({{"crc32c"}}, stored, all).ok());
  EXPECT_EQ(as_text(all), "lenabcde");
  for (size_t bit = 0; bit < 8 * stored.size(); ++bit) {
    std::vector<std::byte> damaged = stored;
    damaged[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_EQ(decode({{"crc32c", 3}}, damaged, raw).code(), Code::corrupt) << bit;
  }
  for (size_t keep = 0; keep < stored.size(); ++keep)
    EXPECT_EQ(decode({{"crc32c", 3}}, Bytes(stored).first(keep), raw).code(), Code::corrupt) << keep;
  EXPECT_EQ(decode({{"crc32c", UINT32_MAX}}, stored, raw).code(), Code::corrupt);
  EXPECT_EQ(encode({{"crc32c"}}, raw).status().code(), Code::unsupported);
}

TEST(StoredCheckTest, ChangesNoByteAndIsTheLastStep) {
  std::vector<std::byte> raw(5);
  EXPECT_TRUE(decode({{std::string(kStoredCheck)}}, as_bytes("abcde"), raw).ok());
  EXPECT_EQ(as_text(raw), "abcde");
  auto stored = encode({{"fletcher32"}}, raw);
  ASSERT_TRUE(stored.ok());
  EXPECT_TRUE(decode({{"fletcher32"}, {std::string(kStoredCheck)}}, *stored, raw).ok());
  EXPECT_EQ(decode({{std::string(kStoredCheck)}, {"fletcher32"}}, *stored, raw).code(), Code::unsupported);
}

TEST(FillTest, RepeatsItsValueAndStoresNothing) {
  for (const size_t bytes : {0, 1, 3, 4, 9, 4000}) {
    std::vector<std::byte> raw(bytes);
    ASSERT_TRUE(decode(fill_pipeline("abc"), {}, raw).ok());
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(std::to_integer<char>(raw[i]), "abc"[i % 3]) << i;
  }
  std::vector<std::byte> raw(3);
  EXPECT_EQ(decode(fill_pipeline("abc"), as_bytes("x"), raw).code(), Code::corrupt);
  EXPECT_EQ(decode(fill_pipeline(""), {}, raw).code(), Code::corrupt);
  EXPECT_EQ(encode(fill_pipeline("abc"), raw).status().code(), Code::unsupported);
}

TEST(CodecTest, UnknownCodecIsUnsupportedAndNamed) {
  std::vector<std::byte> raw(1);
  Status status = decode({{"middle-out"}}, raw, raw);
  EXPECT_EQ(status.code(), Code::unsupported);
  EXPECT_NE(status.text().find("middle-out"), std::string::npos);
}

TEST(CodecTest, AbsentLibraryIsNamedWithItsPackage) {
  for (const CodecInfo& info : codecs()) {
    if (info.compiled_in) continue;
    auto status = encode({{std::string(info.name)}}, {}).status();
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_NE(status.text().find("rebuild with"), std::string::npos) << status.text();
  }
}

TEST(CodecTest, LevelOutOfRangeIsInvalid) {
  if (!compiled_in("deflate")) GTEST_SKIP() << "built without libdeflate";
  EXPECT_EQ(encode({{"deflate"}}, {}, 99).status().code(), Code::invalid);
}

// A small gzip file, made from its parts: header, one DEFLATE block, CRC-32 and length.
std::vector<std::byte> gzip_of(std::string_view deflated_hello) {
  std::string made("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  made += deflated_hello;
  made += std::string("\x86\xa6\x10\x36\x05\0\0\0", 8);  // CRC-32 and length of "hello"
  Bytes bytes = as_bytes(made);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> hello_gzip() {
  // One stored block: final, length 5, its complement, the bytes.
  return gzip_of(std::string_view("\x01\x05\0\xfa\xffhello", 10));
}

ByteSource source_of(const std::vector<std::byte>& bytes, size_t at_once) {
  return [&bytes, at_once, at = size_t{0}](MutableBytes into) mutable -> Result<size_t> {
    size_t now = std::min({into.size(), at_once, bytes.size() - at});
    std::memcpy(into.data(), bytes.data() + at, now);
    at += now;
    return now;
  };
}

Result<std::string> read_all(std::string_view codec, const std::vector<std::byte>& stored, size_t at_once,
                             size_t read_bytes) {
  PACKTRAIN_ASSIGN(stream, make_stream_decoder(codec, source_of(stored, at_once)));
  std::string text;
  std::vector<std::byte> piece(read_bytes);
  while (true) {
    PACKTRAIN_ASSIGN(got, stream->read(piece));
    text.append(as_text(Bytes(piece).first(got)));
    if (got < piece.size()) return text;
  }
}

std::vector<std::byte> joined(std::vector<std::byte> first, const std::vector<std::byte>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class StreamTest : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    if (!compiled_in(GetParam())) GTEST_SKIP() << "built without the library of this codec";
    if (GetParam() == "gzip") {
      hello_ = hello_gzip();
    } else {
      auto made = encode({{"zstd"}}, as_bytes("hello"));
      ASSERT_TRUE(made.ok());
      hello_ = *made;
    }
  }
  std::vector<std::byte> hello_;
};

TEST_P(StreamTest, ReadsSeveralMembersInPiecesOfAnySize) {
  auto stored = joined(hello_, hello_);
  for (size_t at_once : {size_t{1}, size_t{3}, size_t{4096}}) {
    for (size_t read_bytes : {size_t{1}, size_t{5}, size_t{4096}}) {
      auto text = read_all(GetParam(), stored, at_once, read_bytes);
      ASSERT_TRUE(text.ok()) << text.status().text();
      EXPECT_EQ(*text, "hellohello");
    }
  }
}

TEST_P(StreamTest, TruncationAtAnyByteIsCorrupt) {
  auto stored = joined(hello_, hello_);
  for (size_t keep = 0; keep < stored.size(); ++keep) {
    if (keep == hello_.size()) continue;  // a whole stream of one member
    auto cut = stored;
    cut.resize(keep);
    EXPECT_EQ(read_all(GetParam(), cut, 7, 64).status().code(), Code::corrupt) << keep;
  }
}

TEST_P(StreamTest, GarbageBehindTheLastMemberIsCorrupt) {
  auto stored = joined(hello_, noise(32, 3));
  EXPECT_EQ(read_all(GetParam(), stored, 4096, 64).status().code(), Code::corrupt);
}

TEST_P(StreamTest, FailureOfTheSourceIsHandedOn) {
  auto stream = make_stream_decoder(
      GetParam(), [](MutableBytes) -> Result<size_t> { return Status(Code::io, "disk on fire"); });
  ASSERT_TRUE(stream.ok());
  std::vector<std::byte> piece(16);
  EXPECT_EQ((*stream)->read(piece).status().code(), Code::io);
}

INSTANTIATE_TEST_SUITE_P(All, StreamTest, testing::Values("gzip", "zstd"));

TEST(GzipStreamTest, TakesZeroPaddingAndNothingElseBehindIt) {
  if (!compiled_in("gzip")) GTEST_SKIP() << "built without zlib";
  auto padded = joined(hello_gzip(), std::vector<std::byte>(1000));
  auto text = read_all("gzip", padded, 10, 64);
  ASSERT_TRUE(text.ok()) << text.status().text();
  EXPECT_EQ(*text, "hello");
  EXPECT_EQ(read_all("gzip", joined(padded, hello_gzip()), 10, 64).status().code(), Code::corrupt);
}

TEST(GzipStreamTest, WrongChecksumIsCorrupt) {
  if (!compiled_in("gzip")) GTEST_SKIP() << "built without zlib";
  auto stored = hello_gzip();
  stored[stored.size() - 8] ^= std::byte{1};
  EXPECT_EQ(read_all("gzip", stored, 4096, 64).status().code(), Code::corrupt);
}

}  // namespace
}  // namespace packtrain
