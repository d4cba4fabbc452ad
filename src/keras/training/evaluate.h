// What fit and evaluate share. One thread.

#ifndef BERTH_KERAS_TRAINING_EVALUATE_H_
#define BERTH_KERAS_TRAINING_EVALUATE_H_

#include "keras/callbacks/callback_list.h"
#include "keras/training/batches.h"
#include "keras/training/training.h"

namespace berth::keras {

// Runs test steps on so many batches, 0: on all, and their hooks. Throws
// errors::InvalidArgument when there are none.
void run_tests(Model& model, Model::Training& training, const Batches& batches,
               int64_t steps, const CallbackList& callbacks, Site site);

// Inputs, targets and weights (if defined) of `x` and `y` in the order of the
// model. Throws errors::InvalidArgument naming `what`.
Tensors components_of(const char* what, const Model::Training& training,
                      const NamedTensors& x, const NamedTensors& y,
                      const Tensor& sample_weight, Site site);
// The components after the inputs.
Tensors targets_of(const Model::Training& training, const Tensors& components);

// Throws errors::InvalidArgument when options are set that datasets bring
// themselves.
void check_no_tensor_options(const FitOptions& options, Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_EVALUATE_H_
