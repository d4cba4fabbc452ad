// The formulas of the losses.

#include <fmt/format.h>

#include <cmath>

#include "base/immortal.h"
#include "berth/errors.h"
#include "berth/keras/losses.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_shapes.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

// Keras keeps probabilities and divisors this far from 0.
constexpr double kEpsilon = 1e-7;

const math::ReduceOptions& last_axis() {
  using Options = math::ReduceOptions;
  static const auto& options =
      immortal<Options>(Options{.axis = std::vector<int64_t>{-1}});
  return options;
}

// The mean, the sum over the last axis; of scalars, themselves.
Tensor mean_of(const Tensor& values, Site site) {
  return values.rank() == 0 ? values
                            : math::reduce_mean(values, last_axis(), site);
}
Tensor sum_of(const Tensor& values, Site site) {
  return values.rank() == 0 ? values
                            : math::reduce_sum(values, last_axis(), site);
}

Tensor at_least(const Tensor& x, double low, Site site) {
  return math::maximum(x, scalar_like(x, low), site);
}

Tensor log_of_probabilities(const Tensor& p, Site site) {
  return math::log(clip_by_value(p, kEpsilon, 1 - kEpsilon, site), site);
}

using Formula = Tensor (*)(const Tensor& y, const Tensor& p, Site site);

// A loss of targets that have the shape of the predictions.
Loss elementwise(const char* name, Formula formula, const LossOptions& options,
                 std::shared_ptr<const Description> how) {
  return Loss(
      name,
      [name, formula](const Tensor& y_true, const Tensor& y_pred) {
        const Site site = t_state.site;
        return formula(like_prediction(name, y_true, y_pred), y_pred, site);
      },
      options, std::move(how));
}

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

Tensor kl_divergence(const Tensor& y, const Tensor& p, Site s) {
  const Tensor a = clip_by_value(y, kEpsilon, 1, s);
  const Tensor b = clip_by_value(p, kEpsilon, 1, s);
  const Tensor log = math::log(math::divide(a, b, s), s);
  return sum_of(math::multiply(a, log, s), s);
}
Tensor poisson(const Tensor& y, const Tensor& p, Site s) {
  const Tensor log = math::log(p + kEpsilon, s);
  return mean_of(math::subtract(p, math::multiply(y, log, s), s), s);
}

Tensor binary(const Tensor& y, const Tensor& p, bool logits, Site s) {
  if (logits) {
    return mean_of(nn::sigmoid_cross_entropy_with_logits(y, p, s), s);
  }
  const Tensor inside = clip_by_value(p, kEpsilon, 1 - kEpsilon, s);
  const Tensor yes = math::multiply(y, math::log(inside, s), s);
  const Tensor no = math::multiply(1.0 - y, math::log(1.0 - inside, s), s);
  return -mean_of(math::add(yes, no, s), s);
}

Tensor categorical(const Tensor& y, const Tensor& p, bool logits, Site s) {
  if (logits) return nn::softmax_cross_entropy_with_logits(y, p, s);
  const Tensor sum = math::reduce_sum(
      p, {.axis = std::vector<int64_t>{-1}, .keepdims = true}, s);
  const Tensor log = log_of_probabilities(math::divide(p, sum, s), s);
  return -sum_of(math::multiply(y, log, s), s);
}

// The logarithm of probabilities is a set of logits for them.
Tensor sparse(const Tensor& y_true, const Tensor& y_pred, bool logits) {
  const Site site = t_state.site;
  const Tensor y =
      class_labels("sparse_categorical_crossentropy", y_true, y_pred);
  return nn::sparse_softmax_cross_entropy_with_logits(
      y, logits ? y_pred : log_of_probabilities(y_pred, site), site);
}

double classes_of(const char* name, const Tensor& p) {
  const int rank = p.rank();
  if (rank > 0 && p.shape()[rank - 1] > 0) {
    return static_cast<double>(p.shape()[rank - 1]);
  }
  throw errors::InvalidArgument(fmt::format(
      "loss {}: predictions are {}{}; expected a known number of classes on "
      "the last axis",
      name, p.shape().str(), where_text()));
}

void check_smoothing(const char* name, double share) {
  if (share >= 0 && share <= 1) return;
  throw errors::InvalidArgument(fmt::format(
      "loss {}: label_smoothing is {}; expected 0 to 1", name, share));
}

// Fields of losses; kMake is the public function.
template <Loss (*kMake)(const LossOptions&)>
struct PlainLossArgs {
  LossOptions o;
  void fields(Fields& f) { f("reduction", o.reduction); }
  Loss make() const { return kMake(o); }
};
struct HuberArgs {
  losses::HuberOptions o;
  void fields(Fields& f) {
    f("reduction", o.reduction);
    f("delta", o.delta);
  }
  Loss make() const { return losses::Huber(o); }
};
struct CosineArgs {
  losses::CosineOptions o;
  void fields(Fields& f) {
    f("reduction", o.reduction);
    f("axis", o.axis);
  }
  Loss make() const { return losses::CosineSimilarity(o); }
};
template <Loss (*kMake)(const losses::CrossentropyOptions&)>
struct CrossentropyArgs {
  losses::CrossentropyOptions o;
  void fields(Fields& f) {
    f("reduction", o.reduction);
    f("from_logits", o.from_logits);
    f("label_smoothing", o.label_smoothing);
    f.fixed("axis", -1);
  }
  Loss make() const { return kMake(o); }
};

}  // namespace

namespace losses {

Loss MeanSquaredError(const LossOptions& o) {
  return elementwise(
      "mean_squared_error", &squared_error, o,
      description("MeanSquaredError", PlainLossArgs<&MeanSquaredError>{o}));
}
Loss MeanAbsoluteError(const LossOptions& o) {
  return elementwise(
      "mean_absolute_error", &absolute_error, o,
      description("MeanAbsoluteError", PlainLossArgs<&MeanAbsoluteError>{o}));
}
Loss MeanAbsolutePercentageError(const LossOptions& o) {
  return elementwise(
      "mean_absolute_percentage_error", &percentage_error, o,
      description("MeanAbsolutePercentageError",
                  PlainLossArgs<&MeanAbsolutePercentageError>{o}));
}
Loss MeanSquaredLogarithmicError(const LossOptions& o) {
  return elementwise(
      "mean_squared_logarithmic_error", &logarithmic_error, o,
      description("MeanSquaredLogarithmicError",
                  PlainLossArgs<&MeanSquaredLogarithmicError>{o}));
}
Loss LogCosh(const LossOptions& o) {
  return elementwise("log_cosh", &keras::log_cosh, o,
                     description("LogCosh", PlainLossArgs<&LogCosh>{o}));
}
Loss Hinge(const LossOptions& o) {
  return elementwise("hinge", &keras::hinge, o,
                     description("Hinge", PlainLossArgs<&Hinge>{o}));
}
Loss SquaredHinge(const LossOptions& o) {
  return elementwise(
      "squared_hinge", &keras::squared_hinge, o,
      description("SquaredHinge", PlainLossArgs<&SquaredHinge>{o}));
}
Loss CategoricalHinge(const LossOptions& o) {
  return elementwise(
      "categorical_hinge", &keras::categorical_hinge, o,
      description("CategoricalHinge", PlainLossArgs<&CategoricalHinge>{o}));
}
Loss KLDivergence(const LossOptions& o) {
  return elementwise(
      "kl_divergence", &keras::kl_divergence, o,
      description("KLDivergence", PlainLossArgs<&KLDivergence>{o}));
}
Loss Poisson(const LossOptions& o) {
  return elementwise("poisson", &keras::poisson, o,
                     description("Poisson", PlainLossArgs<&Poisson>{o}));
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
      {o.reduction}, description("Huber", HuberArgs{o}));
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
      {o.reduction}, description("CosineSimilarity", CosineArgs{o}));
}

Loss BinaryCrossentropy(const CrossentropyOptions& o) {
  const char* name = "binary_crossentropy";
  check_smoothing(name, o.label_smoothing);
  return Loss(
      name,
      [name, o](const Tensor& y_true, const Tensor& y_pred) {
        const Site site = t_state.site;
        Tensor y = like_prediction(name, y_true, y_pred);
        const double share = o.label_smoothing;
        if (share > 0) y = y * (1 - share) + 0.5 * share;
        return binary(y, y_pred, o.from_logits, site);
      },
      {o.reduction},
      description("BinaryCrossentropy",
                  CrossentropyArgs<&BinaryCrossentropy>{o}));
}

Loss CategoricalCrossentropy(const CrossentropyOptions& o) {
  const char* name = "categorical_crossentropy";
  check_smoothing(name, o.label_smoothing);
  return Loss(
      name,
      [name, o](const Tensor& y_true, const Tensor& y_pred) {
        const Site site = t_state.site;
        Tensor y = like_prediction(name, y_true, y_pred);
        const double share = o.label_smoothing;
        if (share > 0) {
          y = y * (1 - share) + share / classes_of(name, y_pred);
        }
        return categorical(y, y_pred, o.from_logits, site);
      },
      {o.reduction},
      description("CategoricalCrossentropy",
                  CrossentropyArgs<&CategoricalCrossentropy>{o}));
}

Loss SparseCategoricalCrossentropy(const CrossentropyOptions& o) {
  if (o.label_smoothing != 0) {
    throw errors::InvalidArgument(
        "loss sparse_categorical_crossentropy: label_smoothing is set; "
        "expected 0: CategoricalCrossentropy of one_hot labels has it");
  }
  return Loss(
      "sparse_categorical_crossentropy",
      [logits = o.from_logits](const Tensor& y_true, const Tensor& y_pred) {
        return sparse(y_true, y_pred, logits);
      },
      {o.reduction},
      description("SparseCategoricalCrossentropy",
                  CrossentropyArgs<&SparseCategoricalCrossentropy>{o}));
}

}  // namespace losses

void add_loss_classes(Classes& c);
void add_loss_classes(Classes& c) {
  using namespace losses;
  auto& all = c.losses;
  all["MeanSquaredError"] = &made_of<Loss, PlainLossArgs<&MeanSquaredError>>;
  all["MeanAbsoluteError"] = &made_of<Loss, PlainLossArgs<&MeanAbsoluteError>>;
  all["MeanAbsolutePercentageError"] =
      &made_of<Loss, PlainLossArgs<&MeanAbsolutePercentageError>>;
  all["MeanSquaredLogarithmicError"] =
      &made_of<Loss, PlainLossArgs<&MeanSquaredLogarithmicError>>;
  all["LogCosh"] = &made_of<Loss, PlainLossArgs<&LogCosh>>;
  all["Hinge"] = &made_of<Loss, PlainLossArgs<&Hinge>>;
  all["SquaredHinge"] = &made_of<Loss, PlainLossArgs<&SquaredHinge>>;
  all["CategoricalHinge"] = &made_of<Loss, PlainLossArgs<&CategoricalHinge>>;
  all["KLDivergence"] = &made_of<Loss, PlainLossArgs<&KLDivergence>>;
  all["Poisson"] = &made_of<Loss, PlainLossArgs<&Poisson>>;
  all["BinaryCrossentropy"] =
      &made_of<Loss, CrossentropyArgs<&BinaryCrossentropy>>;
  all["CategoricalCrossentropy"] =
      &made_of<Loss, CrossentropyArgs<&CategoricalCrossentropy>>;
  all["SparseCategoricalCrossentropy"] =
      &made_of<Loss, CrossentropyArgs<&SparseCategoricalCrossentropy>>;
  all["Huber"] = &made_of<Loss, HuberArgs>;
  all["CosineSimilarity"] = &made_of<Loss, CosineArgs>;
}

}  // namespace berth::keras
