// The circle loss of embeddings.

#include <fmt/format.h>

#include "berth/keras/losses.h"
#include "berth/ops/array.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_math.h"
#include "keras/models/masks.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

using losses::CircleOptions;

Tensor circle_values(const Tensor& y_true, const Tensor& y_pred,
                     const CircleOptions& o) {
  const Site s = t_state.site;
  if (y_pred.rank() != 2) {
    fail_loss(fmt::format("circle: predictions are {}; expected [n, d]",
                          y_pred.shape().str()));
  }
  const Tensor labels = y_true.rank() == 2 ? squeeze(y_true, {-1}, s) : y_true;
  const Tensor none = scalar_like(y_pred, 0);
  const Tensor far = math::maximum(
      1.0 - matmul(y_pred, y_pred, {.transpose_b = true}, s), none, s);
  const Tensor same =
      math::equal(expand_dims(labels, 1, s), expand_dims(labels, 0, s), s);
  Tensor positive = same;
  if (o.remove_diagonal) {
    const Tensor self = linalg::band_part(ones_like(far, s), 0, 0, s);
    positive =
        math::logical_and(same, math::equal(self, zeros_like(self, s), s), s);
  }
  const Tensor negative = math::logical_not(same, s);
  // Factors of distances, which get no gradient where they are cut off.
  const auto weight = [&](const Tensor& w, const Tensor& mask) {
    return math::maximum(w * math::cast(mask, far.dtype(), s), none, s);
  };
  const auto sum = [&](const Tensor& values, const Tensor& mask) {
    return math::reduce_logsumexp(
        where(mask, values, fill({}, -1e9, far.dtype(), s), s), last_axis(), s);
  };
  const Tensor p = sum(
      weight(far + o.margin, positive) * (o.margin - far) * -o.gamma, positive);
  const Tensor n = sum(
      weight(1 + o.margin - far, negative) * ((1 - o.margin) - far) * o.gamma,
      negative);
  const Tensor loss = math::softplus(p + n, s);
  if (Masks::wanted()) Masks::set(loss, loss > 0.0);
  return loss;
}
void circle_fields(Fields& f, CircleOptions& o) {
  f("reduction", o.reduction);
  f("gamma", o.gamma);
  f("margin", o.margin);
  f("remove_diagonal", o.remove_diagonal);
}

}  // namespace

namespace losses {

Loss Circle(const CircleOptions& o) {
  return loss_of_values("circle", &circle_values, o,
                        made_with<circle_fields>("Circle", o));
}

}  // namespace losses

void add_circle_loss_classes(Classes& c) {
  auto& all = c.losses;
  all["Circle"] = &made_of<&losses::Circle, circle_fields>;
}

}  // namespace berth::keras
