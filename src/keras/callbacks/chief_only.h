// Work that one of several tasks does, such as writing files and printing: the
// chief does it, the others wait. One thread.

#ifndef BERTH_KERAS_CALLBACKS_CHIEF_ONLY_H_
#define BERTH_KERAS_CALLBACKS_CHIEF_ONLY_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "berth/keras/models.h"
#include "distribute/strategy/current_strategy.h"
#include "distribute/strategy/strategy_core.h"
#include "keras/models/thread_state.h"

namespace berth::keras {

// Says which strategy the fit of this thread has: a model may have no weights
// before its first step.
class FitOfStrategy {
 public:
  explicit FitOfStrategy(distribute::StrategyCore* core)
      : before_(std::exchange(keras_thread().fit_core, core)) {}
  ~FitOfStrategy() { keras_thread().fit_core = before_; }
  FitOfStrategy(const FitOfStrategy&) = delete;
  FitOfStrategy& operator=(const FitOfStrategy&) = delete;

 private:
  distribute::StrategyCore* const before_;
};

// The strategy of the model; null: none.
inline std::shared_ptr<distribute::StrategyCore> strategy_of(
    const Model& model) {
  const std::vector<Variable> weights = model.weights();
  if (!weights.empty()) return distribute::core_of(weights[0].handle());
  distribute::StrategyCore* const core = keras_thread().fit_core;
  return core != nullptr ? core->shared_from_this() : nullptr;
}

// The strategy of the model if it has several tasks; else null.
inline std::shared_ptr<distribute::StrategyCore> tasks_of(const Model& model) {
  const auto core = strategy_of(model);
  return core && core->link() ? core : nullptr;
}

// Waits for the steps that parameter servers run: then the variables here have
// the values that follow from them.
void settle(const Model& model, Site site);

// False in tasks that leave printing and files to the chief.
inline bool is_chief(const Model& model) {
  const auto core = tasks_of(model);
  return core == nullptr || core->is_chief();
}

// Calls `write` in the chief; all tasks return when it has. All make the same
// calls. What it throws ends training in all of them.
inline void on_chief(const Model& model, const std::string& what,
                     const std::function<void()>& write) {
  if (const auto core = tasks_of(model)) return core->on_chief(what, write);
  write();
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_CALLBACKS_CHIEF_ONLY_H_
