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
struct DiceArgs {
  DiceOptions o;
  void fields(Fields& f) {
    f("reduction", o.reduction);
    f("axis", o.axis);
  }
  Loss make() const { return losses::Dice(o); }
};
struct TverskyArgs {
  TverskyOptions o;
  void fields(Fields& f) {
    f("reduction", o.reduction);
    f("alpha", o.alpha);
    f("beta", o.beta);
    f("axis", o.axis);
  }
  Loss make() const { return losses::Tversky(o); }
};

}  // namespace

namespace losses {

Loss Dice(const DiceOptions& o) {
  return loss_of_values("dice", &dice_values, o,
                        description("Dice", DiceArgs{o}));
}
Loss Tversky(const TverskyOptions& o) {
  return loss_of_values("tversky", &tversky_values, o,
                        description("Tversky", TverskyArgs{o}));
}

}  // namespace losses

void add_region_losses_classes(Classes& c);
void add_region_losses_classes(Classes& c) {
  auto& all = c.losses;
  all["Dice"] = &made_of<Loss, DiceArgs>;
  all["Tversky"] = &made_of<Loss, TverskyArgs>;
}

}  // namespace berth::keras
