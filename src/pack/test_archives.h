// Archives for tests, made in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/little_endian.h"
#include "format/tar_header.h"
#include "packtrain/codec.h"

namespace packtrain {

struct ArchivedFile {
  std::string name, bytes;
};

inline std::string tar_member(const std::string& name, const std::string& bytes, char type = '0') {
  std::string member(kTarBlock, '\0');
  const MutableBytes block = std::as_writable_bytes(std::span(member.data(), kTarBlock));
  write_tar_header(name.substr(0, kTarNameBytes), bytes.size(), block);
  if (type != '0') {  // another type: the checksum changes by as much
    member[156] = type;
    uint32_t sum = 0;
    for (size_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<uint8_t>(member[i]);
    std::snprintf(member.data() + 148, 8, "%06o", sum);
  }
  member += bytes;
  member.append(tar_padding(bytes.size()), '\0');
  return member;
}

inline std::string tar_of(const std::vector<ArchivedFile>& files) {
  std::string tar;
  for (const ArchivedFile& file : files) {
    if (file.name.size() > kTarNameBytes) tar += tar_member("././@LongLink", file.name + '\0', 'L');
    tar += tar_member(file.name, file.bytes);
  }
  return tar + std::string(2 * kTarBlock, '\0');
}

inline std::string gzip_of(const std::string& raw) {
  const auto deflated = encode({{"deflate"}}, as_bytes(raw));
  EXPECT_TRUE(deflated.ok());
  std::string gzip("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  gzip += as_text(*deflated);
  char trailer[8];
  store_le(trailer, crc32(as_bytes(raw)));
  store_le(trailer + 4, static_cast<uint32_t>(raw.size()));
  return gzip + std::string(trailer, 8);
}

inline std::string zstd_of(const std::string& raw) {
  const auto encoded = encode({{"zstd"}}, as_bytes(raw));
  EXPECT_TRUE(encoded.ok());
  return std::string(as_text(*encoded));
}

inline bool has_codec(std::string_view name) {
  for (const CodecInfo& info : codecs())
    if (info.name == name) return info.compiled_in;
  return false;
}

}  // namespace packtrain
