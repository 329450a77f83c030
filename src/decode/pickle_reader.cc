// Pickles as values: arrays and numbers become arrays; anything else is checked, and stays the bytes it is.
#include <cstring>
#include <unordered_set>

#include "base/words.h"
#include "decode/pickle.h"
#include "decode/value_readers.h"

namespace packtrain {
namespace {

// Whether every value is one that Python can hold, and none is left half made. Walks each container once,
// however often it is referred to.
class Check {
 public:
  explicit Check(const Pickle& pickle) : pickle_(pickle) {}

  Status run() {
    open_.push_back(pickle_.root());
    while (!open_.empty()) {
      const PickleValue value = open_.back();
      open_.pop_back();
      PACKTRAIN_TRY(look_at(value));
    }
    return {};
  }

 private:
  Status look_at(const PickleValue& value) {
    switch (value.kind) {
      case PickleKind::text:
        if (is_utf8(Pickle::text(value))) return {};
        return Status(Code::corrupt, "the pickle holds a str that is no UTF-8");
      case PickleKind::number_type:
      case PickleKind::named:
        return Status(
            Code::unsupported,
            "the pickle holds a type or a function itself; pickle plain values and arrays of numbers");
      case PickleKind::tuple:
        if (value.count > 0 && seen_tuples_.insert(value.items).second) open_all(value);
        return {};
      case PickleKind::list:
        if (seen_.insert(value.container).second) open_all(value);
        return {};
      case PickleKind::dict:
        return seen_.insert(value.container).second ? look_at_dict(value) : Status();
      default:
        return {};
    }
  }
  Status look_at_dict(const PickleValue& dict) {
    const auto items = pickle_.items(dict);
    for (size_t i = 0; i < items.size(); i += 2) {
      const PickleKind kind = items[i].kind;
      if (kind == PickleKind::list || kind == PickleKind::dict || kind == PickleKind::array ||
          kind == PickleKind::tuple)
        return Status(Code::unsupported, "a key of a dict in the pickle is no str, bytes or number");
    }
    open_all(dict);
    return {};
  }
  void open_all(const PickleValue& container) {
    const auto items = pickle_.items(container);
    open_.insert(open_.end(), items.begin(), items.end());
  }

  const Pickle& pickle_;
  std::vector<PickleValue> open_;
  std::unordered_set<uint64_t> seen_;
  std::unordered_set<const PickleValue*> seen_tuples_;
};

class PickleReader final : public ValueReader {
 public:
  Result<ValueFacts> look(Bytes encoded) override;
  Status read(MutableBytes into) override {
    copy_array(array_, into);
    return {};
  }

 private:
  void hold_number(NumberType type, const void* number) {
    array_ = {};
    array_.shape.type = type;
    std::memcpy(number_, number, number_bytes(type));
    array_.data = Bytes(number_);
  }

  std::optional<Pickle> pickle_;
  StoredArray array_;
  std::byte number_[8] = {};
};

Result<ValueFacts> PickleReader::look(Bytes encoded) {
  PACKTRAIN_ASSIGN(pickle, Pickle::parse({reinterpret_cast<const char*>(encoded.data()), encoded.size()},
                                         PickleNames::numpy));
  pickle_.emplace(std::move(pickle));
  const PickleValue& root = pickle_->root();
  ValueFacts facts;
  switch (root.kind) {
    case PickleKind::array:
      array_ = pickle_->array(root);
      break;
    case PickleKind::boolean: {
      const bool truth = root.integer != 0;
      hold_number(NumberType::boolean, &truth);
      break;
    }
    case PickleKind::integer:
      hold_number(NumberType::int64, &root.integer);
      break;
    case PickleKind::real:
      hold_number(NumberType::float64, &root.real);
      break;
    default:
      PACKTRAIN_TRY(Check(*pickle_).run());
      facts.is_array = false;
      return facts;
  }
  facts.shape = array_.shape;
  return facts;
}

}  // namespace

std::unique_ptr<ValueReader> make_pickle_reader() { return std::make_unique<PickleReader>(); }

}  // namespace packtrain
