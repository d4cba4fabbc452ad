// Checks of what fit, evaluate and predict are given.

#ifndef BERTH_KERAS_TRAINING_ARGUMENT_CHECKS_H_
#define BERTH_KERAS_TRAINING_ARGUMENT_CHECKS_H_

#include <cstdint>

#include "berth/tensor.h"

namespace berth::keras {

struct Batches;

// Throw errors::InvalidArgument naming `what`.
void check_pair(const char* what, const Tensor& x, const Tensor& y, Site site);
void check_positive(const char* what, const char* option, int64_t value,
                    Site site);
void check_finite(const char* what, const Batches& batches, Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_ARGUMENT_CHECKS_H_
