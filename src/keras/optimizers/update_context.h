// Where apply_gradients() may be called when strategies are about.
//
// In a step of fit and in replicas, always. In the scope of a strategy of
// several replicas, outside of run(), never: nobody would add up gradients.
// Outside of the scope, on variables of such a strategy: lint
// "not-distributed". Thread-safe.

#ifndef BERTH_KERAS_OPTIMIZERS_UPDATE_CONTEXT_H_
#define BERTH_KERAS_OPTIMIZERS_UPDATE_CONTEXT_H_

#include <vector>

#include "berth/variable.h"

namespace berth::keras {

// Throws errors::FailedPrecondition naming the call's line (t_state.site).
void check_update_context(const std::vector<Variable>& variables);

}  // namespace berth::keras

#endif  // BERTH_KERAS_OPTIMIZERS_UPDATE_CONTEXT_H_
