// Losses of regression: squared, absolute, relative and logarithmic errors,
// Huber, log-cosh, cosine similarity.

#include <fmt/format.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/keras/losses.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_math.h"
#include "keras/losses/loss_shapes.h"
#include "op/dispatcher.h"

namespace berth::keras {

namespace {

Tensor squared_error(const Tensor& y, const Tensor& p, Site s) {
  return mean_of(math::squared_difference(p, y, s), s);
}
Tensor absolute_error(const Tensor& y, const Tensor& p, Site s) {
  return mean_of(math::abs(math::subtract(y, p, s), s), s);
}
Tensor percentage_error(const Tensor& y, const Tensor& p, Site s) {
  const Tensor size = at_least(math::abs(y, s), kEpsilon, s);
  const Tensor share = math::divide(math::subtract(y, p, s), size, s);
  return mean_of(math::abs(share, s), s) * 100.0;
}
Tensor logarithmic_error(const Tensor& y, const Tensor& p, Site s) {
  const Tensor a = math::log1p(at_least(y, kEpsilon, s), s);
  const Tensor b = math::log1p(at_least(p, kEpsilon, s), s);
  return mean_of(math::squared_difference(b, a, s), s);
}

// log(cosh(x)) = x + log(1 + exp(-2x)) - log(2), which does not overflow.
Tensor log_cosh(const Tensor& y, const Tensor& p, Site s) {
  const Tensor x = math::subtract(p, y, s);
  return mean_of(x + math::softplus(x * -2.0, s) - std::log(2.0), s);
}

Tensor huber(const Tensor& y, const Tensor& p, double delta, Site s) {
  const Tensor e = math::subtract(p, y, s), size = math::abs(e, s);
  const Tensor line = size * delta - 0.5 * delta * delta;
  const Tensor parabola = math::square(e, s) * 0.5;
  return mean_of(where(size > delta, line, parabola, s), s);
}
void huber_fields(Fields& f, losses::HuberOptions& o) {
  f("reduction", o.reduction);
  f("delta", o.delta);
}
void cosine_fields(Fields& f, losses::CosineOptions& o) {
  f("reduction", o.reduction);
  f("axis", o.axis);
}

}  // namespace

namespace losses {

Loss MeanSquaredError(const LossOptions& o) {
  return elementwise("mean_squared_error", &squared_error, o,
                     made_with<reduction_fields>("MeanSquaredError", o));
}
Loss MeanAbsoluteError(const LossOptions& o) {
  return elementwise("mean_absolute_error", &absolute_error, o,
                     made_with<reduction_fields>("MeanAbsoluteError", o));
}
Loss MeanAbsolutePercentageError(const LossOptions& o) {
  return elementwise(
      "mean_absolute_percentage_error", &percentage_error, o,
      made_with<reduction_fields>("MeanAbsolutePercentageError", o));
}
Loss MeanSquaredLogarithmicError(const LossOptions& o) {
  return elementwise(
      "mean_squared_logarithmic_error", &logarithmic_error, o,
      made_with<reduction_fields>("MeanSquaredLogarithmicError", o));
}
Loss LogCosh(const LossOptions& o) {
  return elementwise("log_cosh", &keras::log_cosh, o,
                     made_with<reduction_fields>("LogCosh", o));
}

Loss Huber(const HuberOptions& o) {
  if (!(o.delta > 0)) {
    throw errors::InvalidArgument(
        fmt::format("loss huber: delta is {}; expected more than 0", o.delta));
  }
  return Loss(
      "huber",
      [delta = o.delta](const Tensor& y_true, const Tensor& y_pred) {
        const Site site = t_state.site;
        const Tensor y = like_prediction("huber", y_true, y_pred);
        return keras::huber(y, y_pred, delta, site);
      },
      {o.reduction}, made_with<huber_fields>("Huber", o));
}

Loss CosineSimilarity(const CosineOptions& o) {
  return Loss(
      "cosine_similarity",
      [axis = o.axis](const Tensor& y_true, const Tensor& y_pred) {
        const Site s = t_state.site;
        const Tensor y = like_prediction("cosine_similarity", y_true, y_pred);
        const std::vector<int64_t> along{axis};
        const Tensor product =
            math::multiply(math::l2_normalize(y, along, 1e-12, s),
                           math::l2_normalize(y_pred, along, 1e-12, s), s);
        return -math::reduce_sum(product, {.axis = along}, s);
      },
      {o.reduction}, made_with<cosine_fields>("CosineSimilarity", o));
}

}  // namespace losses

void add_regression_losses_classes(Classes& c) {
  auto& all = c.losses;
  all["MeanSquaredError"] =
      &made_of<&losses::MeanSquaredError, reduction_fields>;
  all["MeanAbsoluteError"] =
      &made_of<&losses::MeanAbsoluteError, reduction_fields>;
  all["MeanAbsolutePercentageError"] =
      &made_of<&losses::MeanAbsolutePercentageError, reduction_fields>;
  all["MeanSquaredLogarithmicError"] =
      &made_of<&losses::MeanSquaredLogarithmicError, reduction_fields>;
  all["LogCosh"] = &made_of<&losses::LogCosh, reduction_fields>;
  all["Huber"] = &made_of<&losses::Huber, huber_fields>;
  all["CosineSimilarity"] = &made_of<&losses::CosineSimilarity, cosine_fields>;
}

}  // namespace berth::keras
