// How targets are brought to the form of predictions.

#ifndef BERTH_KERAS_LOSSES_LOSS_SHAPES_H_
#define BERTH_KERAS_LOSSES_LOSS_SHAPES_H_

#include "berth/keras/losses.h"
#include "berth/tensor.h"

namespace berth::keras {

// Returns y_true with y_pred's shape and dtype: an axis of 1 at the end is
// dropped or added. Throws errors::InvalidArgument, naming `what`, otherwise.
Tensor like_prediction(const char* what, const Tensor& y_true,
                       const Tensor& y_pred);

// Returns labels of integers with one axis less than y_pred: [n, 1] becomes
// [n]. Throws errors::InvalidArgument, naming `what`, otherwise.
Tensor class_labels(const char* what, const Tensor& y_true,
                    const Tensor& y_pred);

// True when the loss takes numbers of classes as targets.
bool takes_labels(const Loss& loss);

}  // namespace berth::keras

#endif  // BERTH_KERAS_LOSSES_LOSS_SHAPES_H_
