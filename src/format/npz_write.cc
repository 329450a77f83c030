#include "format/npz_write.h"

#include "format/array_writer.h"
#include "format/columns.h"
#include "format/npy_header.h"
#include "format/zip_store.h"

namespace packtrain {
namespace {

class NpzSink final : public ArraySink {
 public:
  explicit NpzSink(std::unique_ptr<ZipStore> zip) : zip_(std::move(zip)) {}

  std::string_view key_column() const override { return kKeyColumn; }

  Status begin_bytes(std::string_view name) override {
    const uint64_t none = 0;
    return zip_->begin(member(name), make_npy_header("|u1", {&none, 1}).size());
  }
  Status append_bytes(Bytes data) override { return zip_->append(data); }
  Status end_bytes() override {
    const uint64_t bytes = zip_->entry_bytes();
    return zip_->end(make_npy_header("|u1", {&bytes, 1}));
  }

  Status add(const ArrayToWrite& array) override {
    const std::string header = make_npy_header(array.type, array.shape);
    PACKTRAIN_TRY(zip_->begin(member(array.name), header.size()));
    PACKTRAIN_TRY(array.pour([&](Bytes piece) { return zip_->append(piece); }));
    return zip_->end(header);
  }

  Status finish() override { return zip_->finish(); }

 private:
  static std::string member(std::string_view name) { return std::string(name) + ".npy"; }

  std::unique_ptr<ZipStore> zip_;
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> create_npz(Storage& storage, std::string_view path,
                                                    const WriteSpec& spec) {
  if (spec.compress != "none" && spec.compress != "auto") {
    return Status(Code::unsupported,
                  "npz is written with --compress none, not " + spec.compress +
                      ": a compressed member would have to be decoded as a whole for every sample");
  }
  PACKTRAIN_ASSIGN(zip, ZipStore::create(storage, path, spec.expected_bytes, spec.write));
  return make_array_writer(storage, path, spec, std::make_unique<NpzSink>(std::move(zip)));
}

}  // namespace packtrain
