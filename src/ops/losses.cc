// Losses of logits and counts: composites.

#include <cmath>
#include <numbers>

#include "berth/ops/array.h"
#include "berth/ops/nn.h"
#include "ops/named_call.h"

namespace berth::nn {

namespace {

// log(1 + exp(-|x|)), whose slope at 0 is that of softplus(-x): abs and
// maximum would give another.
Tensor tail(const Tensor& x, Site s) {
  const Tensor low = where(x < 0.0, x, math::negative(x, s), s);
  return math::log1p(math::exp(low, s), s);
}

}  // namespace

Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels,
                                         const Tensor& logits, Site s) {
  const Tensor positive =
      where(logits < 0.0, scalar_like(logits, 0), logits, s);
  const Tensor product = math::multiply(logits, labels, s);
  return math::add(math::subtract(positive, product, s), tail(logits, s), s);
}

Tensor weighted_cross_entropy_with_logits(const Tensor& labels,
                                          const Tensor& logits,
                                          const Tensor& pos_weight, Site s) {
  const Tensor weight = math::multiply(pos_weight - 1.0, labels, s) + 1.0;
  const Tensor negative =
      where(logits < 0.0, math::negative(logits, s), scalar_like(logits, 0), s);
  return math::add(math::multiply(1.0 - labels, logits, s),
                   math::multiply(weight, tail(logits, s) + negative, s), s);
}

Tensor log_poisson_loss(const Tensor& targets, const Tensor& log_input,
                        bool compute_full_loss, Site s) {
  const Tensor loss = math::subtract(math::exp(log_input, s),
                                     math::multiply(log_input, targets, s), s);
  if (!compute_full_loss) return loss;
  const Tensor one = scalar_like(targets, 1);
  const Tensor large = targets > 1.0;
  const Tensor n = where(large, targets, one, s);
  const Tensor stirling = math::multiply(n, math::log(n, s), s) - n +
                          math::log(n * (2 * std::numbers::pi), s) * 0.5;
  return math::add(loss, where(large, stirling, scalar_like(targets, 0), s), s);
}

}  // namespace berth::nn
