// Losses of unbalanced classes, regions and embeddings; losses as functions.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/keras/losses.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_shapes.h"
#include "keras/models/masks.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

using losses::BinaryFocalOptions;
using losses::CategoricalFocalOptions;
using losses::CircleOptions;
using losses::DiceOptions;
using losses::TverskyOptions;

constexpr double kLeast = 1e-7;  // Keras' epsilon

[[noreturn]] void fail_loss(const std::string& message) {
  throw errors::InvalidArgument("loss " + message + where_text());
}

void check_focal(const char* name, double alpha, double gamma,
                 double smoothing) {
  if (alpha >= 0 && gamma >= 0 && smoothing >= 0 && smoothing <= 1) return;
  fail_loss(
      fmt::format("{}: alpha is {}, gamma {}, label_smoothing {}; "
                  "expected 0 or more, the last at most 1",
                  name, alpha, gamma, smoothing));
}

math::ReduceOptions along_last(bool keep = false) {
  return {.axis = std::vector<int64_t>{-1}, .keepdims = keep};
}

Tensor binary_focal(const Tensor& y_true, const Tensor& y_pred,
                    const BinaryFocalOptions& o) {
  const Site s = t_state.site;
  Tensor y = like_prediction("binary_focal_crossentropy", y_true, y_pred);
  if (o.label_smoothing > 0) {
    y = y * (1 - o.label_smoothing) + 0.5 * o.label_smoothing;
  }
  const Tensor p = o.from_logits ? math::sigmoid(y_pred, s) : y_pred;
  const Tensor inside = clip_by_value(p, kLeast, 1 - kLeast, s);
  const Tensor crossentropy =
      -(y * math::log(inside, s) + (1.0 - y) * math::log(1.0 - inside, s));
  const Tensor of_true = y * p + (1.0 - y) * (1.0 - p);
  const Tensor wrong = 1.0 - of_true;
  Tensor all = math::pow(wrong, scalar_like(wrong, o.gamma), s) * crossentropy;
  if (o.apply_class_balancing) {
    all = (y * o.alpha + (1.0 - y) * (1 - o.alpha)) * all;
  }
  return math::reduce_mean(all, along_last(), s);
}

Tensor categorical_focal(const Tensor& y_true, const Tensor& y_pred,
                         const CategoricalFocalOptions& o) {
  const Site s = t_state.site;
  Tensor y = like_prediction("categorical_focal_crossentropy", y_true, y_pred);
  if (o.label_smoothing > 0) {
    const double classes =
        static_cast<double>(y_pred.shape()[y_pred.rank() - 1]);
    if (classes <= 0) {
      fail_loss(fmt::format(
          "categorical_focal_crossentropy: predictions are {}; expected a "
          "known number of classes on the last axis",
          y_pred.shape().str()));
    }
    y = y * (1 - o.label_smoothing) + o.label_smoothing / classes;
  }
  const Tensor p = o.from_logits ? nn::softmax(y_pred, -1, s) : y_pred;
  const Tensor share = p / math::reduce_sum(p, along_last(true), s);
  const Tensor inside = clip_by_value(share, kLeast, 1 - kLeast, s);
  const Tensor factor =
      math::pow(1.0 - inside, scalar_like(inside, o.gamma), s) * o.alpha;
  return math::reduce_sum(-(factor * y * math::log(inside, s)), along_last(),
                          s);
}

Tensor generalized(const Tensor& y_true, const Tensor& y_pred, double q) {
  const Site s = t_state.site;
  const Tensor labels =
      class_labels("categorical_generalized_cross_entropy", y_true, y_pred);
  const int64_t classes = y_pred.shape()[y_pred.rank() - 1];
  const Tensor hot = one_hot(labels, classes, {.dtype = y_pred.dtype()}, s);
  const Tensor p = math::reduce_sum(y_pred * hot, along_last(), s);
  return (1.0 - math::pow(p, scalar_like(p, q), s)) / q;
}

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
  return 1.0 - sum(y * y_pred) * 2.0 / (sum(y) + sum(y_pred) + kLeast);
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
                       sum(y_pred * (1.0 - y)) * o.beta + kLeast);
}

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
        where(mask, values, fill({}, -1e9, far.dtype(), s), s), along_last(),
        s);
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

struct BinaryFocalArgs {
  BinaryFocalOptions o;
  void fields(Fields& f) {
    f("reduction", o.reduction);
    f("apply_class_balancing", o.apply_class_balancing);
    f("alpha", o.alpha);
    f("gamma", o.gamma);
    f("from_logits", o.from_logits);
    f("label_smoothing", o.label_smoothing);
    f.fixed("axis", -1);
  }
  Loss make() const { return losses::BinaryFocalCrossentropy(o); }
};
struct CategoricalFocalArgs {
  CategoricalFocalOptions o;
  void fields(Fields& f) {
    f("reduction", o.reduction);
    f("alpha", o.alpha);
    f("gamma", o.gamma);
    f("from_logits", o.from_logits);
    f("label_smoothing", o.label_smoothing);
    f.fixed("axis", -1);
  }
  Loss make() const { return losses::CategoricalFocalCrossentropy(o); }
};
struct GeneralizedArgs {
  double q = 0.5;
  LossOptions o;
  void fields(Fields& f) {
    f("reduction", o.reduction);
    f("q", q);
  }
  Loss make() const { return losses::CategoricalGeneralizedCrossEntropy(q, o); }
};
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
struct CircleArgs {
  CircleOptions o;
  void fields(Fields& f) {
    f("reduction", o.reduction);
    f("gamma", o.gamma);
    f("margin", o.margin);
    f("remove_diagonal", o.remove_diagonal);
  }
  Loss make() const { return losses::Circle(o); }
};

template <class Options>
Loss loss_of(const char* name,
             Tensor (*values)(const Tensor&, const Tensor&, const Options&),
             const Options& o, std::shared_ptr<const Description> how) {
  return Loss(
      name,
      [values, o](const Tensor& y, const Tensor& p) { return values(y, p, o); },
      {o.reduction}, std::move(how));
}

}  // namespace

namespace losses {

Loss BinaryFocalCrossentropy(const BinaryFocalOptions& o) {
  const char* name = "binary_focal_crossentropy";
  check_focal(name, o.alpha, o.gamma, o.label_smoothing);
  return loss_of(name, &binary_focal, o,
                 description("BinaryFocalCrossentropy", BinaryFocalArgs{o}));
}
Loss CategoricalFocalCrossentropy(const CategoricalFocalOptions& o) {
  const char* name = "categorical_focal_crossentropy";
  check_focal(name, o.alpha, o.gamma, o.label_smoothing);
  return loss_of(
      name, &categorical_focal, o,
      description("CategoricalFocalCrossentropy", CategoricalFocalArgs{o}));
}
Loss CategoricalGeneralizedCrossEntropy(double q, const LossOptions& o) {
  if (!(q > 0 && q < 1)) {
    fail_loss(fmt::format(
        "categorical_generalized_cross_entropy: q is {}; expected 0 < q < 1",
        q));
  }
  return Loss(
      "categorical_generalized_cross_entropy",
      [q](const Tensor& y, const Tensor& p) { return generalized(y, p, q); }, o,
      description("CategoricalGeneralizedCrossEntropy", GeneralizedArgs{q, o}));
}
Loss Dice(const DiceOptions& o) {
  return loss_of("dice", &dice_values, o, description("Dice", DiceArgs{o}));
}
Loss Tversky(const TverskyOptions& o) {
  return loss_of("tversky", &tversky_values, o,
                 description("Tversky", TverskyArgs{o}));
}
Loss Circle(const CircleOptions& o) {
  return loss_of("circle", &circle_values, o,
                 description("Circle", CircleArgs{o}));
}

Tensor mean_squared_error(const Tensor& y, const Tensor& p) {
  return MeanSquaredError().per_sample(y, p);
}
Tensor mean_absolute_error(const Tensor& y, const Tensor& p) {
  return MeanAbsoluteError().per_sample(y, p);
}
Tensor mean_absolute_percentage_error(const Tensor& y, const Tensor& p) {
  return MeanAbsolutePercentageError().per_sample(y, p);
}
Tensor mean_squared_logarithmic_error(const Tensor& y, const Tensor& p) {
  return MeanSquaredLogarithmicError().per_sample(y, p);
}
Tensor log_cosh(const Tensor& y, const Tensor& p) {
  return LogCosh().per_sample(y, p);
}
Tensor hinge(const Tensor& y, const Tensor& p) {
  return Hinge().per_sample(y, p);
}
Tensor squared_hinge(const Tensor& y, const Tensor& p) {
  return SquaredHinge().per_sample(y, p);
}
Tensor categorical_hinge(const Tensor& y, const Tensor& p) {
  return CategoricalHinge().per_sample(y, p);
}
Tensor kl_divergence(const Tensor& y, const Tensor& p) {
  return KLDivergence().per_sample(y, p);
}
Tensor poisson(const Tensor& y, const Tensor& p) {
  return Poisson().per_sample(y, p);
}
Tensor huber(const Tensor& y, const Tensor& p, double delta) {
  return Huber({.delta = delta}).per_sample(y, p);
}
Tensor cosine_similarity(const Tensor& y, const Tensor& p, int64_t axis) {
  return CosineSimilarity({.axis = axis}).per_sample(y, p);
}
Tensor binary_crossentropy(const Tensor& y, const Tensor& p,
                           const CrossentropyOptions& o) {
  return BinaryCrossentropy(o).per_sample(y, p);
}
Tensor categorical_crossentropy(const Tensor& y, const Tensor& p,
                                const CrossentropyOptions& o) {
  return CategoricalCrossentropy(o).per_sample(y, p);
}
Tensor sparse_categorical_crossentropy(const Tensor& y, const Tensor& p,
                                       const CrossentropyOptions& o) {
  return SparseCategoricalCrossentropy(o).per_sample(y, p);
}
Tensor binary_focal_crossentropy(const Tensor& y, const Tensor& p,
                                 const BinaryFocalOptions& o) {
  return BinaryFocalCrossentropy(o).per_sample(y, p);
}
Tensor categorical_focal_crossentropy(const Tensor& y, const Tensor& p,
                                      const CategoricalFocalOptions& o) {
  return CategoricalFocalCrossentropy(o).per_sample(y, p);
}
Tensor categorical_generalized_cross_entropy(const Tensor& y, const Tensor& p,
                                             double q) {
  return CategoricalGeneralizedCrossEntropy(q).per_sample(y, p);
}
Tensor dice(const Tensor& y, const Tensor& p, const DiceOptions& o) {
  return Dice(o).per_sample(y, p);
}
Tensor tversky(const Tensor& y, const Tensor& p, const TverskyOptions& o) {
  return Tversky(o).per_sample(y, p);
}
Tensor circle(const Tensor& y, const Tensor& p, const CircleOptions& o) {
  return Circle(o).per_sample(y, p);
}

}  // namespace losses

void add_more_loss_classes(Classes& c);
void add_more_loss_classes(Classes& c) {
  auto& all = c.losses;
  all["BinaryFocalCrossentropy"] = &made_of<Loss, BinaryFocalArgs>;
  all["CategoricalFocalCrossentropy"] = &made_of<Loss, CategoricalFocalArgs>;
  all["CategoricalGeneralizedCrossEntropy"] = &made_of<Loss, GeneralizedArgs>;
  all["Dice"] = &made_of<Loss, DiceArgs>;
  all["Tversky"] = &made_of<Loss, TverskyArgs>;
  all["Circle"] = &made_of<Loss, CircleArgs>;
}

}  // namespace berth::keras
