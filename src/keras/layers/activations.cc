// Activations as functions.

#include "berth/keras/activations.h"

#include <fmt/format.h>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "op/device_scope.h"
#include "ops/op_call.h"

namespace berth::keras::activations {

Tensor linear(const Tensor& x, Site) { return x; }

Tensor relu(const Tensor& x, const ReluOptions& o, Site site) {
  set_site(site);
  Tensor y;
  if (o.threshold != 0) {
    y = where(x >= scalar_like(x, o.threshold), x,
              (x - o.threshold) * o.negative_slope, site);
  } else {
    y = o.negative_slope == 0 ? nn::relu(x, site)
                              : nn::leaky_relu(x, o.negative_slope, site);
  }
  return o.max_value ? math::minimum(y, scalar_like(y, *o.max_value), site) : y;
}
Tensor relu6(const Tensor& x, Site site) { return nn::relu6(x, site); }
Tensor leaky_relu(const Tensor& x, double negative_slope, Site site) {
  return nn::leaky_relu(x, negative_slope, site);
}

Tensor elu(const Tensor& x, double alpha, Site site) {
  if (alpha == 1) return nn::elu(x, site);
  const Tensor below = math::minimum(x, scalar_like(x, 0), site);
  return nn::relu(x, site) + (math::exp(below, site) - 1.0) * alpha;
}
Tensor celu(const Tensor& x, double alpha, Site site) {
  const Tensor below = math::minimum(x, scalar_like(x, 0), site);
  return nn::relu(x, site) + (math::exp(below / alpha, site) - 1.0) * alpha;
}
Tensor selu(const Tensor& x, Site site) { return nn::selu(x, site); }
Tensor gelu(const Tensor& x, bool approximate, Site site) {
  return nn::gelu(x, {.approximate = approximate}, site);
}
Tensor silu(const Tensor& x, Site site) { return nn::silu(x, site); }
Tensor swish(const Tensor& x, Site site) { return nn::swish(x, site); }
Tensor hard_silu(const Tensor& x, Site site) { return nn::hard_swish(x, site); }
Tensor hard_swish(const Tensor& x, Site site) {
  return nn::hard_swish(x, site);
}
Tensor mish(const Tensor& x, Site site) { return nn::mish(x, site); }
Tensor sigmoid(const Tensor& x, Site site) { return math::sigmoid(x, site); }
Tensor hard_sigmoid(const Tensor& x, Site site) {
  return nn::hard_sigmoid(x, site);
}
Tensor log_sigmoid(const Tensor& x, Site site) {
  return math::log_sigmoid(x, site);
}
Tensor sparse_sigmoid(const Tensor& x, Site site) {
  return clip_by_value((x + 1.0) * 0.5, 0, 1, site);
}
Tensor tanh(const Tensor& x, Site site) { return math::tanh(x, site); }
Tensor hard_tanh(const Tensor& x, Site site) {
  return clip_by_value(x, -1, 1, site);
}
Tensor tanh_shrink(const Tensor& x, Site site) {
  return x - math::tanh(x, site);
}
Tensor soft_shrink(const Tensor& x, double threshold, Site site) {
  return nn::relu(x - threshold, site) - nn::relu(-x - threshold, site);
}
Tensor hard_shrink(const Tensor& x, double threshold, Site site) {
  return where(math::abs(x, site) > threshold, x, zeros_like(x, site), site);
}
Tensor threshold(const Tensor& x, double threshold, double default_value,
                 Site site) {
  const Tensor other = scalar_like(x, default_value);
  return where(x > threshold, x, other, site);
}
Tensor softplus(const Tensor& x, Site site) { return math::softplus(x, site); }
Tensor squareplus(const Tensor& x, double b, Site site) {
  return (x + math::sqrt(math::square(x, site) + b, site)) * 0.5;
}
Tensor sparse_plus(const Tensor& x, Site site) {
  const Tensor half = math::square(sparse_sigmoid(x, site), site);
  return where(x > 1.0, x, half, site);
}
Tensor softsign(const Tensor& x, Site site) { return math::softsign(x, site); }
Tensor exponential(const Tensor& x, Site site) { return math::exp(x, site); }

Tensor glu(const Tensor& x, int64_t axis, Site site) {
  set_site(site);
  const int64_t n = x.shape()[normalize_axis(axis, x.rank(), "glu: the axis")];
  if (n < 0 || n % 2 != 0) {
    throw errors::InvalidArgument(fmt::format(
        "glu: the input is {}{}; expected axis {} to be even and known",
        x.shape().str(), where_text(), axis));
  }
  const Tensors half = split(x, 2, axis, site);
  return half[0] * math::sigmoid(half[1], site);
}
Tensor softmax(const Tensor& x, int64_t axis, Site site) {
  return nn::softmax(x, axis, site);
}
Tensor log_softmax(const Tensor& x, int64_t axis, Site site) {
  return nn::log_softmax(x, axis, site);
}

// The largest k whose k-th largest element stays positive gives the threshold;
// gradients flow through the mean of those elements only.
Tensor sparsemax(const Tensor& x, int64_t axis, Site site) {
  set_site(site);
  const math::ReduceOptions along{.axis = std::vector<int64_t>{axis},
                                  .keepdims = true};
  const Tensor fixed = stop_gradient(x, site);
  const Tensor sorted =
      sort(fixed, {.axis = axis, .direction = "DESCENDING"}, site);
  const Tensor sums = math::cumsum(sorted, {.axis = axis}, site);
  const Tensor k = math::cumsum(ones_like(sorted, site), {.axis = axis}, site);
  const Tensor inside =
      math::cast(math::greater(1.0 + k * sorted, sums, site), x.dtype(), site);
  const Tensor count = math::reduce_sum(inside, along, site);
  const Tensor limit =
      (math::reduce_sum(inside * sorted, along, site) - 1.0) / count;
  const Tensor kept =
      math::cast(math::greater(fixed, limit, site), x.dtype(), site);
  const Tensor tau = (math::reduce_sum(kept * x, along, site) - 1.0) /
                     math::reduce_sum(kept, along, site);
  return nn::relu(x - tau, site);
}

}  // namespace berth::keras::activations
