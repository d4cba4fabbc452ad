// Hinge losses.

#include "berth/keras/losses.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_math.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

// Labels 0 and 1 become -1 and 1.
Tensor signs_of(const Tensor& y, Site s) {
  const Tensor zero_or_one =
      math::logical_or(math::equal(y, scalar_like(y, 0), s),
                       math::equal(y, scalar_like(y, 1), s), s);
  return where(math::reduce_all(zero_or_one, {}, s), y * 2.0 - 1.0, y, s);
}
Tensor margin(const Tensor& y, const Tensor& p, Site s) {
  const Tensor product = math::multiply(signs_of(y, s), p, s);
  return at_least(1.0 - product, 0, s);
}
Tensor hinge(const Tensor& y, const Tensor& p, Site s) {
  return mean_of(margin(y, p, s), s);
}
Tensor squared_hinge(const Tensor& y, const Tensor& p, Site s) {
  return mean_of(math::square(margin(y, p, s), s), s);
}
Tensor categorical_hinge(const Tensor& y, const Tensor& p, Site s) {
  const Tensor right = sum_of(math::multiply(y, p, s), s);
  const Tensor others = math::multiply(1.0 - y, p, s);
  const Tensor wrong = math::reduce_max(others, last_axis(), s);
  return at_least(wrong - right + 1.0, 0, s);
}

}  // namespace

namespace losses {

Loss Hinge(const LossOptions& o) {
  return elementwise("hinge", &keras::hinge, o,
                     made_with<reduction_fields>("Hinge", o));
}
Loss SquaredHinge(const LossOptions& o) {
  return elementwise("squared_hinge", &keras::squared_hinge, o,
                     made_with<reduction_fields>("SquaredHinge", o));
}
Loss CategoricalHinge(const LossOptions& o) {
  return elementwise("categorical_hinge", &keras::categorical_hinge, o,
                     made_with<reduction_fields>("CategoricalHinge", o));
}

}  // namespace losses

void add_hinge_losses_classes(Classes& c) {
  auto& all = c.losses;
  all["Hinge"] = &made_of<&losses::Hinge, reduction_fields>;
  all["SquaredHinge"] = &made_of<&losses::SquaredHinge, reduction_fields>;
  all["CategoricalHinge"] =
      &made_of<&losses::CategoricalHinge, reduction_fields>;
}

}  // namespace berth::keras
