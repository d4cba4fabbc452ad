// Shapes and weights of what metrics compute with.

#include "keras/metrics/metric_util.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/losses/loss_shapes.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

void fail_metric(const std::string& name, const std::string& message) {
  throw errors::InvalidArgument(
      fmt::format("metric \"{}\": {}{}", name, message, where_text()));
}

Tensor metric_floats(const Tensor& x) {
  return x.dtype() == float32 ? x : math::cast(x, float32, t_state.site);
}

Tensor spread_weights(const std::string& what, const Tensor& weights,
                      const Tensor& values) {
  const Site site = t_state.site;
  Tensor w = metric_floats(weights);
  const int rank = values.rank();
  if (w.rank() == rank + 1 && w.shape()[w.rank() - 1] == 1) {
    w = squeeze(w, {-1}, site);
  }
  bool fits = w.rank() <= rank;
  for (int i = 0; fits && i < w.rank(); ++i) {
    const int64_t a = w.shape()[i], b = values.shape()[i];
    fits = a == b || a < 0 || b < 0 || a == 1;
  }
  if (!fits) {
    fail_metric(what, fmt::format("sample_weight is {}, the values are {}; "
                                  "expected that shape or its first axes",
                                  weights.shape().str(), values.shape().str()));
  }
  while (w.rank() > 0 && w.rank() < rank) w = expand_dims(w, -1, site);
  return math::multiply(w, ones_like(metric_floats(values), site), site);
}

FlatBatch flat_batch(const std::string& what, const Tensor& y_true,
                     const Tensor& y_pred, const Tensor& sample_weight) {
  const Site site = t_state.site;
  const Tensor p = metric_floats(y_pred);
  const Tensor y = like_prediction(what.c_str(), y_true, p);
  const Tensor w = sample_weight.defined()
                       ? spread_weights(what, sample_weight, p)
                       : ones_like(p, site);
  const auto flat = [&](const Tensor& t) { return reshape(t, {-1}, site); };
  return {flat(y), flat(p), flat(w)};
}

std::vector<double> values_of(const Variable& v) {
  const std::vector<float> list = v.value().to_vector<float>();
  return {list.begin(), list.end()};
}
Tensor tensor_of(const std::vector<double>& values) {
  if (values.size() == 1) return constant(values[0]);
  return constant(values, {static_cast<int64_t>(values.size())});
}
double quotient(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace berth::keras
