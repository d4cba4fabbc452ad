// Losses of regions: Dice and Tversky.

#include "berth/keras/losses.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_math.h"
#include "keras/losses/loss_shapes.h"
#include "op/dispatcher.h"

namespace berth::keras {

namespace {

using losses::DiceOptions;
using losses::TverskyOptions;

math::ReduceOptions over(const std::vector<int64_t>& axis) {
  math::ReduceOptions o;
  if (!axis.empty()) o.axis = axis;
  return o;
}

Tensor dice_values(const Tensor& y_true, const Tensor& y_pred,
                   const DiceOptions& o) {
  const Site s = t_state.site;
  const Tensor y = like_prediction("dice", y_true, y_pred);
  const auto sum = [&](const Tensor& t) {
    return math::reduce_sum(t, over(o.axis), s);
  };
  return 1.0 - sum(y * y_pred) * 2.0 / (sum(y) + sum(y_pred) + kEpsilon);
}

Tensor tversky_values(const Tensor& y_true, const Tensor& y_pred,
                      const TverskyOptions& o) {
  const Site s = t_state.site;
  const Tensor y = like_prediction("tversky", y_true, y_pred);
  const auto sum = [&](const Tensor& t) {
    return math::reduce_sum(t, over(o.axis), s);
  };
  const Tensor both = sum(y * y_pred);
  return 1.0 - both / (both + sum((1.0 - y_pred) * y) * o.alpha +
                       sum(y_pred * (1.0 - y)) * o.beta + kEpsilon);
}
void dice_fields(Fields& f, DiceOptions& o) {
  f("reduction", o.reduction);
  f("axis", o.axis);
}
void tversky_fields(Fields& f, TverskyOptions& o) {
  f("reduction", o.reduction);
  f("alpha", o.alpha);
  f("beta", o.beta);
  f("axis", o.axis);
}

}  // namespace

namespace losses {

Loss Dice(const DiceOptions& o) {
  return loss_of_values("dice", &dice_values, o,
                        made_with<dice_fields>("Dice", o));
}
Loss Tversky(const TverskyOptions& o) {
  return loss_of_values("tversky", &tversky_values, o,
                        made_with<tversky_fields>("Tversky", o));
}

}  // namespace losses

void add_region_losses_classes(Classes& c) {
  auto& all = c.losses;
  all["Dice"] = &made_of<&losses::Dice, dice_fields>;
  all["Tversky"] = &made_of<&losses::Tversky, tversky_fields>;
}

}  // namespace berth::keras
