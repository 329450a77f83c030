#include "format/laid_out_writer.h"

#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "format/appender.h"

namespace packtrain {
namespace {

class LaidOutWriter final : public ContainerWriter {
 public:
  LaidOutWriter(std::unique_ptr<Writer> writer, uint64_t size, const Layout& layout)
      : layout_(layout), out_(std::move(writer), size) {}

  Status add(const SampleToWrite& sample) override {
    for (const SampleToWrite::Field& field : sample.fields) {
      name_.assign(sample.key).append(1, '.').append(field.name);
      const LaidMember member{name_, out_.position(), field.bytes.size(),
                              layout_.needs_crc32 ? crc32(field.bytes) : 0};
      head_.resize(layout_.head_bytes(name_, member.size, member.offset));
      layout_.write_head(member, head_);
      PACKTRAIN_TRY(out_.append(head_));
      PACKTRAIN_TRY(out_.append(field.bytes));
      PACKTRAIN_TRY(out_.append_zeros(layout_.padding(member.size)));
      if (layout_.needs_crc32) {
        members_.push_back(member);
        names_.append(name_);
      }
    }
    return {};
  }

  Status finish() override {
    size_t at = 0;
    for (LaidMember& member : members_) {
      member.name = std::string_view(names_).substr(at, member.name.size());
      at += member.name.size();
    }
    const uint64_t tail_offset = out_.position();
    std::vector<std::byte> tail(layout_.tail_bytes(members_, tail_offset));
    layout_.write_tail(members_, tail_offset, tail);
    PACKTRAIN_TRY(out_.append(tail));
    PACKTRAIN_TRY(out_.settle());
    return out_.commit();
  }

 private:
  const Layout& layout_;
  Appender out_;
  std::string name_;
  std::vector<std::byte> head_;
  // What the tail is made of, where it needs the members; their names become known at the end, when they
  // stay in place.
  std::vector<LaidMember> members_;
  std::string names_;
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_laid_out(Storage& storage, std::string_view path,
                                                         const Layout& layout, const WriteSpec& spec) {
  PACKTRAIN_ASSIGN(writer, storage.create(path, spec.expected_bytes, spec.write));
  return std::unique_ptr<ContainerWriter>(
      std::make_unique<LaidOutWriter>(std::move(writer), spec.expected_bytes, layout));
}

}  // namespace packtrain
