// What the formulas of losses share.

#ifndef BERTH_KERAS_LOSSES_LOSS_MATH_H_
#define BERTH_KERAS_LOSSES_LOSS_MATH_H_

#include "base/immortal.h"
#include "berth/errors.h"
#include "berth/keras/losses.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_shapes.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"

namespace berth::keras {

// Keras keeps probabilities and divisors this far from 0.
constexpr double kEpsilon = 1e-7;

inline const math::ReduceOptions& last_axis() {
  using Options = math::ReduceOptions;
  static const auto& options =
      immortal<Options>(Options{.axis = std::vector<int64_t>{-1}});
  return options;
}

// The mean, the sum over the last axis; of scalars, themselves.
inline Tensor mean_of(const Tensor& values, Site site) {
  return values.rank() == 0 ? values
                            : math::reduce_mean(values, last_axis(), site);
}
inline Tensor sum_of(const Tensor& values, Site site) {
  return values.rank() == 0 ? values
                            : math::reduce_sum(values, last_axis(), site);
}

inline Tensor at_least(const Tensor& x, double low, Site site) {
  return math::maximum(x, scalar_like(x, low), site);
}

using Formula = Tensor (*)(const Tensor& y, const Tensor& p, Site site);

// A loss of targets that have the shape of the predictions.
inline Loss elementwise(const char* name, Formula formula,
                        const LossOptions& options,
                        std::shared_ptr<const Description> how) {
  return Loss(
      name,
      [name, formula](const Tensor& y_true, const Tensor& y_pred) {
        const Site site = t_state.site;
        return formula(like_prediction(name, y_true, y_pred), y_pred, site);
      },
      options, std::move(how));
}

[[noreturn]] inline void fail_loss(const std::string& message) {
  throw errors::InvalidArgument("loss " + message + where_text());
}

// A loss of options whose values are `values(y_true, y_pred, o)`.
template <class Options>
Loss loss_of_values(const char* name,
                    Tensor (*values)(const Tensor&, const Tensor&,
                                     const Options&),
                    const Options& o, std::shared_ptr<const Description> how) {
  return Loss(
      name,
      [values, o](const Tensor& y, const Tensor& p) { return values(y, p, o); },
      {o.reduction}, std::move(how));
}

// The field that all losses have.
inline void reduction_fields(Fields& f, LossOptions& o) {
  f("reduction", o.reduction);
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_LOSSES_LOSS_MATH_H_
