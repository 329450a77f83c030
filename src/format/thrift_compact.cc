#include "format/thrift_compact.h"

#include <cassert>

#include "packtrain/storage.h"

namespace packtrain {
namespace {

uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

int64_t from_zigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

}  // namespace

Status ThriftReader::outside() { return Status(Code::corrupt, "the metadata are cut short, or no metadata"); }

Result<uint8_t> ThriftReader::byte() {
  if (at_ == bytes_.size()) return outside();
  return std::to_integer<uint8_t>(bytes_[at_++]);
}

Result<uint64_t> ThriftReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    PACKTRAIN_ASSIGN(next, byte());
    value |= uint64_t{next & 0x7Fu} << shift;
    if (next < 0x80) return value;
  }
  return outside();
}

Result<int64_t> ThriftReader::integer() {
  PACKTRAIN_ASSIGN(value, varint());
  return from_zigzag(value);
}

Result<std::string_view> ThriftReader::text() {
  PACKTRAIN_ASSIGN(length, varint());
  if (length > bytes_.size() - at_) return outside();
  const Bytes text = bytes_.subspan(at_, static_cast<size_t>(length));
  at_ += text.size();
  return as_text(text);
}

Result<ThriftType> ThriftReader::field(int16_t& id) {
  PACKTRAIN_ASSIGN(head, byte());
  const auto type = static_cast<ThriftType>(head & 0x0F);
  if (type == ThriftType::stop) return type;
  if (type > ThriftType::uuid) return outside();
  if (head >> 4 != 0) {
    id = static_cast<int16_t>(id + (head >> 4));
    return type;
  }
  PACKTRAIN_ASSIGN(number, integer());
  id = static_cast<int16_t>(number);
  return type;
}

Result<size_t> ThriftReader::list(ThriftType& type) {
  PACKTRAIN_ASSIGN(head, byte());
  type = static_cast<ThriftType>(head & 0x0F);
  uint64_t count = head >> 4;
  if (count == 15) {
    PACKTRAIN_ASSIGN(many, varint());
    count = many;
  }
  if (type == ThriftType::stop || type > ThriftType::uuid || count > bytes_.size() - at_) return outside();
  return static_cast<size_t>(count);
}

Status ThriftReader::skip_bytes(uint64_t bytes) {
  if (bytes > bytes_.size() - at_) return outside();
  at_ += static_cast<size_t>(bytes);
  return {};
}

// In lists and maps a truth value has a byte of its own.
Status ThriftReader::skip_element(ThriftType type, uint32_t depth) {
  return type == ThriftType::yes || type == ThriftType::no ? skip_bytes(1) : skip(type, depth);
}

Status ThriftReader::skip(ThriftType type, uint32_t depth) {
  if (depth > kDeepest) return Status(Code::corrupt, "the metadata are nested too deeply");
  switch (type) {
    case ThriftType::yes:
    case ThriftType::no:
      return {};
    case ThriftType::i8:
      return skip_bytes(1);
    case ThriftType::i16:
    case ThriftType::i32:
    case ThriftType::i64:
      return varint().status();
    case ThriftType::real:
      return skip_bytes(8);
    case ThriftType::uuid:
      return skip_bytes(16);
    case ThriftType::binary:
      return text().status();
    case ThriftType::list:
    case ThriftType::set: {
      ThriftType element{};
      PACKTRAIN_ASSIGN(count, list(element));
      for (size_t i = 0; i < count; ++i) PACKTRAIN_TRY(skip_element(element, depth + 1));
      return {};
    }
    case ThriftType::map: {
      PACKTRAIN_ASSIGN(count, varint());
      if (count == 0) return {};
      PACKTRAIN_ASSIGN(types, byte());
      if (count > bytes_.size() - at_) return outside();
      for (uint64_t i = 0; i < count; ++i) {
        PACKTRAIN_TRY(skip_element(static_cast<ThriftType>(types >> 4), depth + 1));
        PACKTRAIN_TRY(skip_element(static_cast<ThriftType>(types & 0x0F), depth + 1));
      }
      return {};
    }
    case ThriftType::structure: {
      int16_t id = 0;
      while (true) {
        PACKTRAIN_ASSIGN(inner, field(id));
        if (inner == ThriftType::stop) return {};
        PACKTRAIN_TRY(skip(inner, depth + 1));
      }
    }
    case ThriftType::stop:
      break;
  }
  return outside();
}

void ThriftWriter::clear() {
  bytes_.clear();
  last_.clear();
}

void ThriftWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 0x80));
  bytes_.push_back(static_cast<std::byte>(value));
}

void ThriftWriter::field(int16_t id, ThriftType type) {
  const int above = id - last_.back();
  assert(above > 0);
  if (above < 16) {
    bytes_.push_back(static_cast<std::byte>(above << 4 | static_cast<int>(type)));
  } else {
    bytes_.push_back(static_cast<std::byte>(type));
    varint(zigzag(id));
  }
  last_.back() = id;
}

void ThriftWriter::integer(int16_t id, ThriftType type, int64_t value) {
  field(id, type);
  varint(zigzag(value));
}

void ThriftWriter::small(int16_t id, int8_t value) {
  field(id, ThriftType::i8);
  bytes_.push_back(static_cast<std::byte>(value));
}

void ThriftWriter::boolean(int16_t id, bool value) { field(id, value ? ThriftType::yes : ThriftType::no); }

void ThriftWriter::text(int16_t id, std::string_view text) {
  field(id, ThriftType::binary);
  text_element(text);
}

void ThriftWriter::begin_list(int16_t id, ThriftType type, size_t count) {
  field(id, ThriftType::list);
  const size_t short_count = count < 15 ? count : 15;
  bytes_.push_back(static_cast<std::byte>(short_count << 4 | static_cast<size_t>(type)));
  if (short_count == 15) varint(count);
}

void ThriftWriter::begin_structure(int16_t id) {
  field(id, ThriftType::structure);
  begin_element();
}

void ThriftWriter::begin_element() { last_.push_back(0); }

void ThriftWriter::end_structure() {
  bytes_.push_back(std::byte{0});
  last_.pop_back();
}

void ThriftWriter::integer_element(int64_t value) { varint(zigzag(value)); }

void ThriftWriter::text_element(std::string_view text) {
  varint(text.size());
  const Bytes bytes = as_bytes(text);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

}  // namespace packtrain
