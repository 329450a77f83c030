#include <fmt/format.h>

#include "base/json.h"
#include "packtrain/order.h"

namespace packtrain {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kMostBytes = 4096;  // a state has less than 1 KB; no other file shall be taken for one

// Takes members out of a JSON object one after the other; the first that is wrong is remembered.
class MemberReader {
 public:
  explicit MemberReader(const Json& object) : object_(object) {}

  uint64_t number(std::string_view name, uint64_t least = 0, uint64_t most = UINT64_MAX) {
    ++taken_;
    const Json& value = object_[name];
    const uint64_t read = value.as_uint(0);
    if (!value.is_integer() || value.as_uint(1) != read || read < least || read > most)
      fail(name, fmt::format("a whole number of at least {}", least));
    return read;
  }

  std::string text(std::string_view name) {
    ++taken_;
    if (!object_[name].is_string()) fail(name, "a text");
    return object_[name].as_string();
  }

  Status finish() const {
    if (status_.ok() && object_.members().size() != taken_)
      return Status(Code::corrupt, "the state has members that it should not have; take it as it was saved");
    return status_;
  }

 private:
  void fail(std::string_view name, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = Status(Code::corrupt, fmt::format("the state has no '{}' that is {}; take it as it was saved",
                                                name, expected));
  }

  const Json& object_;
  size_t taken_ = 0;
  Status status_;
};

Status check_same(std::string_view what, const std::string& saved, const std::string& now) {
  if (saved == now) return {};
  const auto quoted = [](const std::string& name) { return name.empty() ? "none" : "'" + name + "'"; };
  return Status(Code::invalid,
                fmt::format("the state is of another {}: {}, and this run has {}; load the {} that "
                            "the state was saved with, or begin a new run",
                            what, quoted(saved), quoted(now), what));
}

// Of what an order is made from: with another number, other samples would stand at the positions that are
// done.
Status check_equal(std::string_view what, uint64_t saved, uint64_t now) {
  if (saved == now) return {};
  return Status(Code::invalid,
                fmt::format("the state has {} {}, and this run was made with {}; make it with the state's",
                            what, saved, now));
}

}  // namespace

std::string OrderState::encode() const {
  Json json = Json::object();
  json.append("version", version);
  json.append("dataset", dataset);
  json.append("split", split);
  json.append("order", order_kind_name(kind));
  json.append("chains", chains);
  json.append("window_bytes", window_bytes);
  json.append("piece_bytes", piece_bytes);
  json.append("seed", seed);
  json.append("epoch", epoch);
  json.append("consumed", consumed);
  json.append("global_batch", global_batch);
  json.append("selection", selection);
  return json.dump();
}

Result<OrderState> OrderState::decode(std::string_view text) {
  if (text.size() > kMostBytes)
    return Status(Code::corrupt,
                  fmt::format("this is not the state of a loader: it has {} bytes", text.size()));
  const auto json = Json::parse(text);
  if (!json.ok()) return json.status().at("the state of a loader");
  if (!json->is_object() || !(*json)["version"].is_integer())
    return Status(Code::corrupt, "this is not the state of a loader: it has no 'version'");
  if ((*json)["version"].as_uint(0) != kVersion)
    return Status(Code::unsupported,
                  "the state has a version that this packtrain does not know; load it with the "
                  "packtrain that saved it");
  OrderState state;
  MemberReader members(*json);
  state.version = static_cast<uint32_t>(members.number("version"));
  state.dataset = members.text("dataset");
  state.split = members.text("split");
  const std::string order = members.text("order");
  state.chains = static_cast<uint32_t>(members.number("chains", 0, UINT32_MAX));
  state.window_bytes = members.number("window_bytes");
  state.piece_bytes = members.number("piece_bytes");
  state.seed = members.number("seed");
  state.epoch = members.number("epoch");
  state.consumed = members.number("consumed");
  state.global_batch = members.number("global_batch", 1);
  state.selection = members.text("selection");
  PACKTRAIN_TRY(members.finish());

  const auto kind = order_kind_of(order);
  if (!kind.ok()) return kind.status().at("the state of a loader");
  state.kind = *kind;
  if (state.kind == OrderKind::streams &&
      (state.chains == 0 || state.window_bytes == 0 || state.piece_bytes == 0))
    return Status(Code::corrupt,
                  "the state is of the order 'streams', but its chains, window or pieces are 0; "
                  "take it as it was saved");
  // What is saved again must be a state still.
  if (state.encode().size() > kMostBytes)
    return Status(Code::corrupt, "this is not the state of a loader: its names are too long");
  return state;
}

Status OrderState::check(const OrderState& now) const {
  PACKTRAIN_TRY(check_same("dataset", dataset, now.dataset));
  PACKTRAIN_TRY(check_same("split", split, now.split));
  PACKTRAIN_TRY(
      check_same("order", std::string(order_kind_name(kind)), std::string(order_kind_name(now.kind))));
  if (selection != now.selection)
    return Status(
        Code::invalid,
        "the state is of another selection of samples; give the indices, predicate, weights or mixture "
        "that it was saved with, or begin a new run");
  PACKTRAIN_TRY(check_equal("seed", seed, now.seed));
  PACKTRAIN_TRY(check_equal("chains", chains, now.chains));
  PACKTRAIN_TRY(check_equal("window_bytes", window_bytes, now.window_bytes));
  return check_equal("piece_bytes", piece_bytes, now.piece_bytes);
}

}  // namespace packtrain
