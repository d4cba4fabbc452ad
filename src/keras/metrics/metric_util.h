// What metrics share.

#ifndef BERTH_KERAS_METRICS_METRIC_UTIL_H_
#define BERTH_KERAS_METRICS_METRIC_UTIL_H_

#include <string>
#include <vector>

#include "berth/keras/metrics.h"

namespace berth::keras {

Tensor metric_floats(const Tensor& x);  // as float32

// [elements], and weights spread to them; ones where there are none.
struct FlatBatch {
  Tensor y_true, y_pred, weight;
};
// Gives all the shape of y_pred, as float32. Throws errors::InvalidArgument
// naming `what` for shapes that differ.
FlatBatch flat_batch(const std::string& what, const Tensor& y_true,
                     const Tensor& y_pred, const Tensor& sample_weight);

// Weights of the shape of `values`, float32, from those of its first axes.
Tensor spread_weights(const std::string& what, const Tensor& weights,
                      const Tensor& values);

// Values on the host.
std::vector<double> values_of(const Variable& v);
Tensor tensor_of(const std::vector<double>& values);  // [n]; of one a scalar
double quotient(double a, double b);                  // 0 for b = 0

[[noreturn]] void fail_metric(const std::string& name,
                              const std::string& message);

}  // namespace berth::keras

#endif  // BERTH_KERAS_METRICS_METRIC_UTIL_H_
