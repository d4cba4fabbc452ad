// Scopes of strategies, and queries about the open one.

#include <fmt/format.h>

#include "base/immortal.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "distribute/strategy/strategy_core.h"
#include "op/dispatcher.h"

namespace berth::distribute {

struct StrategyGuard::State {
  std::shared_ptr<StrategyCore> core;
  StrategyScope* outer = nullptr;
};

StrategyGuard::StrategyGuard(std::shared_ptr<StrategyCore> core, Site site)
    : state_(std::make_unique<State>()) {
  if (t_state.replica != nullptr) {
    throw errors::FailedPrecondition(fmt::format(
        "{}: scope() is opened inside run(){}; expected it around run(), or "
        "get_replica_context() here",
        core->name(), where_text(nullptr, site)));
  }
  if (t_state.strategy != nullptr && t_state.strategy != core.get()) {
    throw errors::FailedPrecondition(fmt::format(
        "the scope of a {} is opened inside that of another strategy, a {}{}; "
        "expected one strategy at a time",
        core->name(), t_state.strategy->name(), where_text(nullptr, site)));
  }
  state_->outer = t_state.strategy;
  state_->core = std::move(core);
  t_state.strategy = state_->core.get();
}

StrategyGuard::~StrategyGuard() { t_state.strategy = state_->outer; }

namespace {

Strategy strategy_of(const StrategyScope& scope) {
  const auto& core = static_cast<const StrategyCore&>(scope);
  return Strategy(
      std::const_pointer_cast<StrategyCore>(core.shared_from_this()));
}

}  // namespace

Strategy get_strategy() {
  if (t_state.replica != nullptr) {
    return strategy_of(t_state.replica->strategy());
  }
  if (t_state.strategy != nullptr) return strategy_of(*t_state.strategy);
  using None = OneDeviceStrategy;
  static const auto& none = immortal<None>(None(
      DeviceManager::get("get_strategy()", {}).default_device().str(), {}));
  return none;
}

std::optional<ReplicaContext> get_replica_context() {
  if (t_state.replica == nullptr) return std::nullopt;
  return ReplicaContext();
}

bool has_strategy() {
  return t_state.strategy != nullptr || t_state.replica != nullptr;
}

bool in_cross_replica_context() {
  return t_state.strategy != nullptr && t_state.replica == nullptr;
}

}  // namespace berth::distribute
