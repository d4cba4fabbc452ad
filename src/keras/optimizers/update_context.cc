// Looks at the scope of an update.

#include "keras/optimizers/update_context.h"

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "berth/errors.h"
#include "distribute/strategy/current_strategy.h"
#include "distribute/strategy/strategy_core.h"
#include "keras/models/layer_state.h"
#include "op/device_scope.h"
#include "tensor/variable_state.h"

namespace berth::keras {

void check_update_context(const std::vector<Variable>& variables) {
  if (t_state.replica != nullptr || GlobalStep::active()) return;
  const char* expected =
      "strategy.run(step, batch), with the tape and apply_gradients() in step: "
      "each replica then computes its part, and the gradients are summed";
  const StrategyScope* open = t_state.strategy;
  if (open != nullptr && open->num_replicas() > 1) {
    throw errors::FailedPrecondition(fmt::format(
        "apply_gradients() in cross-replica context: it is called in the scope "
        "of a {} with {} replicas, outside of run(){}; expected {}",
        open->name(), open->num_replicas(), where_text(), expected));
  }
  for (const Variable& v : variables) {
    const auto core = distribute::core_of(v.handle());
    if (core == nullptr || core->num_replicas() < 2) continue;
    const std::string where = where_text();
    report_once(
        where,
        {"not-distributed", debugging::Severity::kLint,
         fmt::format("apply_gradients(){} updates variables of a {} with {} "
                     "replicas outside of run(): one device, {}, computes the "
                     "whole step, and the others nothing; call {}",
                     where, core->name(), core->num_replicas(),
                     variable_state(v.handle()).device->short_name(), expected),
         t_state.site});
    return;
  }
}

}  // namespace berth::keras
