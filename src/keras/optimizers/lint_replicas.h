// Lint "unaveraged-replicas": copies of a model that drift apart.
//
// Acts in the first steps of eager training, when there are several devices.
// Two optimizers whose variables lie on different devices, come from the same
// lines, have the same shapes and began with equal values belong to copies of
// one model. Averaged gradients keep such copies equal; the lint says when they
// are not. Thread-safe.

#ifndef BERTH_KERAS_OPTIMIZERS_LINT_REPLICAS_H_
#define BERTH_KERAS_OPTIMIZERS_LINT_REPLICAS_H_

#include <vector>

#include "berth/variable.h"

namespace berth::keras {

class OptimizerBase;

// Steps after which values are compared. Later ones are not looked at.
inline constexpr int kStepsToDrift = 3;

// `optimizer` is about to apply its step `step` (0 to kStepsToDrift) to
// `variables`.
void lint_replicas(const OptimizerBase& optimizer, int step,
                   const std::vector<Variable>& variables);
void forget_replica(const OptimizerBase& optimizer);

}  // namespace berth::keras

#endif  // BERTH_KERAS_OPTIMIZERS_LINT_REPLICAS_H_
