// The strategy that owns a variable or a block of code.

#ifndef BERTH_DISTRIBUTE_STRATEGY_CURRENT_STRATEGY_H_
#define BERTH_DISTRIBUTE_STRATEGY_CURRENT_STRATEGY_H_

#include <memory>

#include "berth/tensor.h"

namespace berth::distribute {

class StrategyCore;

// Returns the strategy in whose scope the variable was created; null if there
// was none. Thread-safe.
std::shared_ptr<StrategyCore> core_of(const Tensor& handle);

// Returns the strategy whose scope is open on this thread, or null.
std::shared_ptr<StrategyCore> open_core();

// Keeps a strategy that has variables alive for ever: they name it by its
// address.
void keep_core(std::shared_ptr<const StrategyCore> core);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_CURRENT_STRATEGY_H_
