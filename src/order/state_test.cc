#include <gtest/gtest.h>

#include "base/json.h"
#include "packtrain/order.h"

namespace packtrain {
namespace {

OrderState some_state() {
  OrderState state;
  state.dataset = "0123456789abcdef0123456789abcdef";
  state.split = "train";
  state.kind = OrderKind::streams;
  state.chains = 192;
  state.window_bytes = uint64_t{4} << 30;
  state.piece_bytes = 2 << 20;
  state.seed = UINT64_MAX;
  state.epoch = 89;
  state.consumed = 1281000;
  state.global_batch = 4096;
  state.selection = "fedcba9876543210fedcba9876543210";
  return state;
}

// As saved, but for one member, which is left out if it is null.
std::string with(const std::string& name, const Json& value) {
  const auto saved = Json::parse(some_state().encode());
  Json changed = Json::object();
  bool found = false;
  for (const auto& [key, old] : saved->members()) {
    found = found || key == name;
    if (key != name)
      changed.append(key, old);
    else if (!value.is_null())
      changed.append(key, value);
  }
  if (!found) changed.append(name, value);
  return changed.dump();
}

TEST(OrderStateTest, ComesBackAsItWasSaved) {
  const OrderState state = some_state();
  const auto back = OrderState::decode(state.encode());
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(back->version, 1u);
  EXPECT_EQ(back->dataset, state.dataset);
  EXPECT_EQ(back->split, state.split);
  EXPECT_EQ(back->kind, state.kind);
  EXPECT_EQ(back->chains, state.chains);
  EXPECT_EQ(back->window_bytes, state.window_bytes);
  EXPECT_EQ(back->piece_bytes, state.piece_bytes);
  EXPECT_EQ(back->seed, state.seed);
  EXPECT_EQ(back->epoch, state.epoch);
  EXPECT_EQ(back->consumed, state.consumed);
  EXPECT_EQ(back->global_batch, state.global_batch);
  EXPECT_EQ(back->selection, state.selection);
  EXPECT_EQ(back->encode(), state.encode());
}

TEST(OrderStateTest, IsOneLineOfLessThanAKilobyte) {
  OrderState state = some_state();
  state.split = std::string(255, 's');
  state.epoch = state.consumed = state.global_batch = state.window_bytes = state.piece_bytes = UINT64_MAX;
  EXPECT_LT(state.encode().size(), 1000u);
  EXPECT_EQ(state.encode().find('\n'), std::string::npos);
  EXPECT_TRUE(OrderState::decode(state.encode()).ok());
}

// Few bytes that JSON writes as many: saved again it would be no state.
TEST(OrderStateTest, AStateThatCannotBeSavedAgainIsRefused) {
  std::string text = some_state().encode();
  const size_t at = text.find("\"train\"") + 1;
  text.replace(at, 5, std::string(3000, '\xdc'));
  const auto state = OrderState::decode(text);
  EXPECT_TRUE(!state.ok() || OrderState::decode(state->encode()).ok());
}

TEST(OrderStateTest, AnotherVersionIsRefused) {
  for (const Json& version : {Json(0), Json(2), Json(-1), Json(UINT64_MAX)})
    EXPECT_EQ(OrderState::decode(with("version", version)).status().code(), Code::unsupported);
  for (const Json& version : {Json(), Json("1"), Json(1.0), Json(true)})
    EXPECT_EQ(OrderState::decode(with("version", version)).status().code(), Code::corrupt);
}

TEST(OrderStateTest, AMemberThatIsMissingOrOfAnotherTypeIsRefused) {
  for (const char* name : {"dataset", "split", "order", "selection"})
    for (const Json& value : {Json(), Json(1), Json(true), Json::array(), Json::object()})
      EXPECT_EQ(OrderState::decode(with(name, value)).status().code(), Code::corrupt) << name;
  for (const char* name :
       {"chains", "window_bytes", "piece_bytes", "seed", "epoch", "consumed", "global_batch"})
    for (const Json& value : {Json(), Json("1"), Json(true), Json(1.5), Json(-1), Json::array()})
      EXPECT_EQ(OrderState::decode(with(name, value)).status().code(), Code::corrupt) << name;
  EXPECT_FALSE(OrderState::decode(with("chains", uint64_t{1} << 32)).ok());
  for (const char* name : {"chains", "window_bytes", "piece_bytes", "global_batch"})
    EXPECT_FALSE(OrderState::decode(with(name, 0)).ok()) << name;
  EXPECT_FALSE(OrderState::decode(with("order", "random")).ok());
  EXPECT_FALSE(OrderState::decode(with("extra", 1)).ok());
}

TEST(OrderStateTest, WhatIsNoStateIsRefused) {
  for (const char* text : {"", "{", "[]", "null", "1", "{}", "\"state\""})
    EXPECT_EQ(OrderState::decode(text).status().code(), Code::corrupt) << text;
  const std::string saved = some_state().encode();
  for (size_t length = 0; length < saved.size(); ++length)
    EXPECT_FALSE(OrderState::decode(saved.substr(0, length)).ok());
  EXPECT_FALSE(OrderState::decode(saved + std::string(5000, ' ')).ok());
}

TEST(OrderStateTest, AnotherDatasetSplitOrderOrSelectionIsRefused) {
  const OrderState state = some_state();
  EXPECT_TRUE(state.check(state).ok());
  const auto refused = [&](auto change) {
    OrderState now = state;
    change(now);
    const Status status = state.check(now);
    EXPECT_EQ(status.code(), Code::invalid);
    return status.message();
  };
  EXPECT_NE(refused([](OrderState& now) { now.dataset = "other"; }).find("dataset"), std::string::npos);
  EXPECT_NE(refused([](OrderState& now) { now.split = "val"; }).find("split: 'train'"), std::string::npos);
  EXPECT_NE(refused([](OrderState& now) { now.kind = OrderKind::global; }).find("order: 'streams'"),
            std::string::npos);
  EXPECT_NE(refused([](OrderState& now) { now.selection.clear(); }).find("selection"), std::string::npos);
}

TEST(OrderStateTest, BatchAndPlaceMayDifferButNothingThatMakesTheOrder) {
  const OrderState state = some_state();
  OrderState now = state;
  now.global_batch = 1;
  now.epoch = now.consumed = 0;
  EXPECT_TRUE(state.check(now).ok());
  for (const auto change :
       {+[](OrderState& other) { other.seed = 0; }, +[](OrderState& other) { other.chains = 64; },
        +[](OrderState& other) { other.window_bytes /= 2; },
        +[](OrderState& other) { other.piece_bytes = 1; }}) {
    OrderState other = state;
    change(other);
    EXPECT_EQ(state.check(other).code(), Code::invalid);
  }
}

}  // namespace
}  // namespace packtrain
