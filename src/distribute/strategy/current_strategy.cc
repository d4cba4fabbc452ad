#include "distribute/strategy/current_strategy.h"

#include <mutex>
#include <set>

#include "base/immortal.h"
#include "distribute/strategy/strategy_core.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

std::shared_ptr<StrategyCore> core_of(const Tensor& handle) {
  const void* identity = variable_state(handle).strategy;
  if (identity == nullptr) return nullptr;
  const auto* core = static_cast<const StrategyCore*>(identity);
  return std::const_pointer_cast<StrategyCore>(core->shared_from_this());
}

std::shared_ptr<StrategyCore> open_core() {
  auto* core = dynamic_cast<StrategyCore*>(t_state.strategy);
  return core ? core->shared_from_this() : nullptr;
}

void keep_core(std::shared_ptr<const StrategyCore> core) {
  static std::mutex mutex;
  static auto& kept = immortal<std::set<std::shared_ptr<const StrategyCore>>>();
  std::lock_guard lock(mutex);
  kept.insert(std::move(core));
}

}  // namespace berth::distribute
