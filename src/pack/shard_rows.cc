#include "pack/shard_rows.h"

#include "base/json.h"
#include "index/npz.h"

namespace packtrain {
namespace {

void add_row_columns(const ShardRows& rows, NpzWriter& writer) {
  writer.add("bytes", std::vector<uint64_t>{rows.bytes});
  writer.add("check", rows.checks);
  if (!rows.sizes.empty()) writer.add("size", rows.sizes);
  if (!rows.source_hashes.empty()) writer.add("source_hash", rows.source_hashes);
  writer.add("width", rows.widths);
  writer.add("height", rows.heights);
  writer.add("block_check", rows.block_checks);
  writer.add("left_out", rows.left_out);
  // Paths may hold any bytes but this one: path, NUL, reason, NUL, key, NUL.
  std::string reasons;
  for (const BadSample& bad : rows.reasons)
    for (const std::string* text : {&bad.path, &bad.what, &bad.key}) reasons.append(*text).append(1, '\0');
  writer.add("reasons", reasons);
}

}  // namespace

Status write_rows(Storage& storage, const std::string& path, const ShardRows& rows,
                  const WriteOptions& options) {
  return write_npz(storage, path, options, [&](NpzWriter& writer) { add_row_columns(rows, writer); });
}

Result<ShardRows> decode_rows(Bytes bytes) {
  PACKTRAIN_ASSIGN(columns, read_npz(bytes));
  if (!damaged_columns(bytes, columns).empty())
    return Status(Code::corrupt, "the record of a shard is damaged; remove the .part folder and pack again");
  ShardRows rows;
  const auto has = [&](std::string_view name) {
    return std::any_of(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
  };
  const auto load = [&]<class T>(std::string_view name, std::vector<T>& into) -> Status {
    for (const Column& column : columns) {
      if (column.name != name) continue;
      PACKTRAIN_ASSIGN(values, column_values<T>(columns, name, column.count));
      into.assign(values.begin(), values.end());
      return {};
    }
    return Status(Code::corrupt,
                  "the record of a shard lacks a column; remove the .part folder and pack again");
  };
  std::vector<uint64_t> size;
  std::vector<char> reasons;
  PACKTRAIN_TRY(load("bytes", size));
  PACKTRAIN_TRY(load("check", rows.checks));
  if (has("size")) PACKTRAIN_TRY(load("size", rows.sizes));
  if (has("source_hash")) {
    std::vector<char> hashes;
    PACKTRAIN_TRY(load("source_hash", hashes));
    rows.source_hashes.assign(hashes.begin(), hashes.end());
  }
  PACKTRAIN_TRY(load("width", rows.widths));
  PACKTRAIN_TRY(load("height", rows.heights));
  PACKTRAIN_TRY(load("block_check", rows.block_checks));
  PACKTRAIN_TRY(load("left_out", rows.left_out));
  PACKTRAIN_TRY(load("reasons", reasons));
  if (size.size() != 1)
    return Status(Code::corrupt, "the record of a shard is damaged; remove the .part folder and pack again");
  rows.bytes = size[0];
  std::string_view rest(reasons.data(), reasons.size());
  while (!rest.empty()) {
    BadSample bad;
    for (std::string* text : {&bad.path, &bad.what, &bad.key}) {
      const size_t end = rest.find('\0');
      if (end == rest.npos)
        return Status(Code::corrupt,
                      "the record of a shard is damaged; remove the .part folder and pack again");
      *text = rest.substr(0, end);
      rest.remove_prefix(end + 1);
    }
    rows.reasons.push_back(std::move(bad));
  }
  return rows;
}

}  // namespace packtrain
