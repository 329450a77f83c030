#include "load/value_columns.h"

#include <algorithm>
#include <cstring>

namespace packtrain {
namespace {

constexpr uint64_t kLooseBytes = 1 << 20;  // of one buffer for values that are in no column
constexpr uint64_t kColumnAlignment = 64;

bool same_but_length(const ArrayShape& a, const ArrayShape& b, size_t long_axis, size_t long_axes) {
  ArrayShape like_b = a;
  for (size_t axis = long_axis; axis < long_axis + long_axes && axis < a.axes; ++axis)
    like_b.sizes[axis] = b.sizes[axis];
  return like_b == b;
}

std::array<uint64_t, 2> lengths_of(const ArrayShape& shape, size_t long_axis, size_t long_axes) {
  std::array<uint64_t, 2> lengths{1, 1};
  for (size_t i = 0; i < long_axes && long_axis + i < shape.axes; ++i)
    lengths[i] = shape.sizes[long_axis + i];
  return lengths;
}

// Numbers of `each` bytes.
void fill_with(MutableBytes bytes, const NumberBits& number, size_t each) {
  for (size_t at = 0; at + each <= bytes.size(); at += each)
    std::memcpy(bytes.data() + at, number.data(), each);
}

void fill_with_number(MutableBytes bytes, const NumberBits& number, size_t each) {
  if (bytes.empty()) return;
  if (number == NumberBits{}) {
    std::memset(bytes.data(), 0, bytes.size());
    return;
  }
  switch (each) {  // of a known size, a copy is a store
    case 1:
      std::memset(bytes.data(), static_cast<int>(number[0]), bytes.size());
      return;
    case 2:
      return fill_with(bytes, number, 2);
    case 4:
      return fill_with(bytes, number, 4);
    case 8:
      return fill_with(bytes, number, 8);
    default:
      return fill_with(bytes, number, each);
  }
}

}  // namespace

void ValueColumns::prepare(size_t size, size_t fields) {
  columns_.resize(fields);
  for (Column& column : columns_) {
    if (column.begun) column.varied = column.varies;
    if (column.varied) column.memory = Buffer();  // the room for all of one shape, which nobody needs
    column.begun = column.varies = false;
    column.area = {};
  }
  arrays_.assign(size * fields, Slot());
  Lock lock(mutex_);
  // One more than was needed stays; what a single huge value took does not.
  if (loose_.size() > loose_buffer_ + 2)
    loose_.erase(loose_.begin() + static_cast<ptrdiff_t>(loose_buffer_) + 2, loose_.end());
  loose_buffer_ = loose_used_ = 0;
}

Result<MutableBytes> ValueColumns::take(Buffer& buffer, uint64_t bytes, MemoryAccount& account) {
  const uint64_t before = buffer.capacity();
  const uint64_t wanted = std::max<uint64_t>(bytes, 1);  // so that it is never null
  if (wanted > before) {
    // A buffer that grows takes more than it must, unless that is more than there may be.
    uint64_t claimed = before;
    if (const uint64_t ample = wanted + wanted / 4 + kColumnAlignment; account.claim(ample - before).ok()) {
      claimed = ample;
    } else {
      PACKTRAIN_TRY(account.claim(wanted + kColumnAlignment - before));
      claimed = wanted + kColumnAlignment;
      buffer = Buffer();
    }
    const MutableBytes taken = buffer.take(wanted);
    account.grown(claimed, buffer.capacity());
    return taken.first(bytes);
  }
  return buffer.take(wanted).first(bytes);
}

Result<MutableBytes> ValueColumns::take_loose(uint64_t bytes, MemoryAccount& account) {
  for (;; ++loose_buffer_, loose_used_ = 0) {
    if (loose_buffer_ == loose_.size()) {
      Buffer buffer;
      PACKTRAIN_TRY(take(buffer, std::max(bytes, kLooseBytes), account).status());
      loose_.push_back(std::move(buffer));
    }
    Buffer& buffer = loose_[loose_buffer_];
    if (bytes > buffer.capacity() - loose_used_) continue;
    const MutableBytes taken = buffer.take(buffer.capacity()).subspan(loose_used_, bytes);
    loose_used_ = std::min(buffer.capacity(), (loose_used_ + bytes + kColumnAlignment - 1) /
                                                  kColumnAlignment * kColumnAlignment);
    return taken;
  }
}

Result<MutableBytes> ValueColumns::room(size_t bytes, MemoryAccount& account) {
  Lock lock(mutex_);
  return take_loose(bytes, account);
}

Result<MutableBytes> ValueColumns::room(size_t field, size_t place, size_t places, const ValueFacts& facts,
                                        MemoryAccount& account) {
  const ArrayShape& shape = facts.shape;
  const uint64_t bytes = shape.bytes();
  Lock lock(mutex_);
  Column& column = columns_[field];
  if (!column.begun) {
    column.begun = true;
    column.row = shape;
    uint64_t all = 0;
    if (!column.varied && !__builtin_mul_overflow(bytes, places, &all)) {
      // Without room for all of this shape there may still be some for values of their own.
      auto area = take(column.memory, all, account);
      if (area.ok()) column.area = *area;
    }
  }
  MutableBytes into;
  if (shape == column.row && column.area.size() == bytes * places && bytes != 0) {
    into = column.area.subspan(place * bytes, bytes);
  } else {
    column.varies |= !(shape == column.row);
    auto loose = take_loose(bytes, account);
    if (!loose.ok()) return loose.status();
    into = *loose;
  }
  slot(field, place) = {true,
                        facts.long_axis,
                        facts.long_axes,
                        {shape, lengths_of(shape, facts.long_axis, facts.long_axes), facts.sample_rate}};
  return into;
}

void ValueColumns::forget(size_t place) {
  for (size_t field = 0; field < columns_.size(); ++field) slot(field, place) = {};
}

Bytes ValueColumns::move(size_t field, size_t from, size_t to, Bytes value) {
  if (arrays_.empty()) return value;
  Column& column = columns_[field];
  slot(field, to) = slot(field, from);
  // Rows stay one behind the other.
  const bool in_column = !column.area.empty() && value.data() >= column.area.data() &&
                         value.data() < column.area.data() + column.area.size();
  if (!in_column) return value;
  const MutableBytes row = column.area.subspan(to * value.size(), value.size());
  std::memcpy(row.data(), value.data(), value.size());
  return row;
}

const ValueColumns::Slot* ValueColumns::common_form(size_t field, size_t places) const {
  struct Form {
    const Slot* first;
    size_t count;
  };
  std::vector<Form> forms;
  for (size_t place = 0; place < places; ++place) {
    const Slot& here = arrays_[place * columns_.size() + field];
    if (!here.used) continue;
    const auto known = std::find_if(forms.begin(), forms.end(), [&](const Form& form) {
      return same_but_length(form.first->array.shape, here.array.shape, form.first->long_axis,
                             form.first->long_axes);
    });
    if (known != forms.end())
      ++known->count;
    else
      forms.push_back({&here, 1});
  }
  const auto most = std::max_element(forms.begin(), forms.end(),
                                     [](const Form& a, const Form& b) { return a.count < b.count; });
  return most == forms.end() ? nullptr : most->first;
}

void ValueColumns::pad(size_t field, const ValueSpec& spec, std::span<Bytes> values, MemoryAccount& account,
                       std::vector<MisfitValue>& misfits) {
  const size_t fields = columns_.size(), places = values.size() / std::max<size_t>(fields, 1);
  const Slot* const form = common_form(field, places);
  if (!form) return;
  const ArrayShape common = form->array.shape;
  const uint8_t axis = form->long_axis, axes = form->long_axes;
  const auto refuse = [&](size_t place, Status status) {
    misfits.push_back({field, place, std::move(status), false});
  };
  if (axis >= common.axes) {
    for (size_t place = 0; place < places; ++place)
      refuse(place, Status(Code::unsupported, common.text() + " cannot be padded: it has no length"));
    return;
  }
  const auto filler = bits_of_pad(spec.pad_with, common.type);
  if (!filler.ok()) {
    misfits.push_back({field, 0, filler.status(), true});
    return;
  }
  ArrayShape row = common;
  bool equal = true;
  for (size_t place = 0; place < places; ++place) {
    Slot& here = slot(field, place);
    if (here.used && !same_but_length(common, here.array.shape, axis, axes)) {
      refuse(place, Status(Code::corrupt, "it is " + here.array.shape.text() +
                                              " where most others of its batch are " + common.text() +
                                              "; padding makes up for length only"));
      here = {};
    }
    equal &= here.used && here.array.shape == common;
    for (size_t i = 0; here.used && i < axes; ++i)
      row.sizes[axis + i] = std::max(row.sizes[axis + i], here.array.lengths[i]);
  }
  Column& column = columns_[field];
  if (equal && !column.area.empty() && column.row == row && !column.varies) return;  // one array as they are
  const size_t each = number_bytes(row.type);
  uint64_t outer = 1, inner = each;
  for (size_t i = 0; i < axis; ++i) outer *= row.sizes[i];
  for (size_t i = axis + size_t{axes}; i < row.axes; ++i) inner *= row.sizes[i];
  uint64_t all = 0;
  Result<MutableBytes> area = Status(Code::no_room, "a padded batch of it is impossibly large");
  if (!__builtin_mul_overflow(row.bytes(), places, &all)) area = take(column.padded_memory, all, account);
  if (!area.ok()) {
    for (size_t place = 0; place < places; ++place) refuse(place, area.status());
    return;
  }
  // A value is `outer` blocks of lines; where one axis alone is padded, a block is one line.
  const bool by_lines = axes == 2;
  const uint64_t lines = by_lines ? row.sizes[axis] : 1;
  const uint64_t line = row.sizes[by_lines ? axis + 1 : axis] * inner;
  for (size_t place = 0; place < places; ++place) {
    Slot& here = slot(field, place);
    Bytes& value = values[place * fields + field];
    const MutableBytes to = area->subspan(place * row.bytes(), row.bytes());
    const std::array<uint64_t, 2> lengths = here.used ? here.array.lengths : std::array<uint64_t, 2>{};
    const uint64_t own_lines = by_lines ? lengths[0] : 1, own = lengths[by_lines ? 1 : 0] * inner;
    const std::byte* from = value.data();
    for (uint64_t i = 0; i < outer; ++i) {
      const MutableBytes block = to.subspan(i * lines * line, lines * line);
      for (uint64_t y = 0; y < own_lines; ++y, from += own) {
        if (own != 0) std::memcpy(block.data() + y * line, from, own);
        fill_with_number(block.subspan(y * line + own, line - own), *filler, each);
      }
      fill_with_number(block.subspan(own_lines * line), *filler, each);
    }
    here.used = true;
    here.long_axis = axis;
    here.long_axes = axes;
    here.array.shape = row;
    here.array.lengths = lengths;
    value = to;
  }
  column.area = *area;
  column.row = row;
}

size_t ValueColumns::memory() const {
  size_t sum = arrays_.capacity() * sizeof(Slot);
  for (const Column& column : columns_) sum += column.memory.capacity() + column.padded_memory.capacity();
  Lock lock(mutex_);
  for (const Buffer& buffer : loose_) sum += buffer.capacity();
  return sum;
}

}  // namespace packtrain
