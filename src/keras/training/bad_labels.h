// Errors of labels in terms of the caller's data.
//
// A kernel sees a row of a shuffled batch, or of a replica's share of one; the
// caller knows rows of what was handed in. One thread.

#ifndef BERTH_KERAS_TRAINING_BAD_LABELS_H_
#define BERTH_KERAS_TRAINING_BAD_LABELS_H_

#include <string>

#include "berth/errors.h"
#include "keras/training/training.h"

namespace berth::keras {

// Called when a step on `targets` threw; an asynchronous device may tell it by
// what the step left torn. Throws errors::InvalidArgument naming label and row
// when a target that its loss takes as labels has one that is not a class; else
// returns. `of` is "y", "batch 3".
void raise_bad_label(const Model::Training& training, const char* what,
                     const Tensors& targets, const std::string& of, Site site);

// Lets the devices of the model and its strategy take work again.
void reset_devices(const Model::Training& training);

// Runs fit, evaluate or predict. When an error of the data ends it, the caller
// is told by that error, so the devices where it happened take work again.
template <class F>
auto with_devices_reset(const Model::Training& training, const F& run) {
  try {
    return run();
  } catch (const errors::InvalidArgument&) {
    reset_devices(training);
    throw;
  }
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_BAD_LABELS_H_
