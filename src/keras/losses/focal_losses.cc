// Losses of unbalanced or noisy classes: focal, and generalized cross-entropy.

#include <fmt/format.h>

#include "berth/keras/losses.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_math.h"
#include "keras/losses/loss_shapes.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

using losses::BinaryFocalOptions;
using losses::CategoricalFocalOptions;

void check_focal(const char* name, double alpha, double gamma,
                 double smoothing) {
  if (alpha >= 0 && gamma >= 0 && smoothing >= 0 && smoothing <= 1) return;
  fail_loss(
      fmt::format("{}: alpha is {}, gamma {}, label_smoothing {}; "
                  "expected 0 or more, the last at most 1",
                  name, alpha, gamma, smoothing));
}

math::ReduceOptions along_last(bool keep) {
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
  const Tensor inside = clip_by_value(p, kEpsilon, 1 - kEpsilon, s);
  const Tensor crossentropy =
      -(y * math::log(inside, s) + (1.0 - y) * math::log(1.0 - inside, s));
  const Tensor of_true = y * p + (1.0 - y) * (1.0 - p);
  const Tensor wrong = 1.0 - of_true;
  Tensor all = math::pow(wrong, scalar_like(wrong, o.gamma), s) * crossentropy;
  if (o.apply_class_balancing) {
    all = (y * o.alpha + (1.0 - y) * (1 - o.alpha)) * all;
  }
  return math::reduce_mean(all, last_axis(), s);
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
  const Tensor inside = clip_by_value(share, kEpsilon, 1 - kEpsilon, s);
  const Tensor factor =
      math::pow(1.0 - inside, scalar_like(inside, o.gamma), s) * o.alpha;
  return math::reduce_sum(-(factor * y * math::log(inside, s)), last_axis(), s);
}

Tensor generalized(const Tensor& y_true, const Tensor& y_pred, double q) {
  const Site s = t_state.site;
  const Tensor labels =
      class_labels("categorical_generalized_cross_entropy", y_true, y_pred);
  const int64_t classes = y_pred.shape()[y_pred.rank() - 1];
  const Tensor hot = one_hot(labels, classes, {.dtype = y_pred.dtype()}, s);
  const Tensor p = math::reduce_sum(y_pred * hot, last_axis(), s);
  return (1.0 - math::pow(p, scalar_like(p, q), s)) / q;
}

void binary_focal_fields(Fields& f, BinaryFocalOptions& o) {
  f("reduction", o.reduction);
  f("apply_class_balancing", o.apply_class_balancing);
  f("alpha", o.alpha);
  f("gamma", o.gamma);
  f("from_logits", o.from_logits);
  f("label_smoothing", o.label_smoothing);
  f.fixed("axis", -1);
}
void categorical_focal_fields(Fields& f, CategoricalFocalOptions& o) {
  f("reduction", o.reduction);
  f("alpha", o.alpha);
  f("gamma", o.gamma);
  f("from_logits", o.from_logits);
  f("label_smoothing", o.label_smoothing);
  f.fixed("axis", -1);
}
void generalized_fields(Fields& f, double& q, LossOptions& o) {
  if (f.reading()) q = 0.5;
  f("reduction", o.reduction);
  f("q", q);
}

}  // namespace

namespace losses {

Loss BinaryFocalCrossentropy(const BinaryFocalOptions& o) {
  const char* name = "binary_focal_crossentropy";
  check_focal(name, o.alpha, o.gamma, o.label_smoothing);
  return loss_of_values(
      name, &binary_focal, o,
      made_with<binary_focal_fields>("BinaryFocalCrossentropy", o));
}
Loss CategoricalFocalCrossentropy(const CategoricalFocalOptions& o) {
  const char* name = "categorical_focal_crossentropy";
  check_focal(name, o.alpha, o.gamma, o.label_smoothing);
  return loss_of_values(
      name, &categorical_focal, o,
      made_with<categorical_focal_fields>("CategoricalFocalCrossentropy", o));
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
      made_with<generalized_fields>("CategoricalGeneralizedCrossEntropy", q,
                                    o));
}

}  // namespace losses

void add_focal_losses_classes(Classes& c) {
  auto& all = c.losses;
  all["BinaryFocalCrossentropy"] =
      &made_of<&losses::BinaryFocalCrossentropy, binary_focal_fields>;
  all["CategoricalFocalCrossentropy"] =
      &made_of<&losses::CategoricalFocalCrossentropy, categorical_focal_fields>;
  all["CategoricalGeneralizedCrossEntropy"] =
      &made_of<&losses::CategoricalGeneralizedCrossEntropy, generalized_fields>;
}

}  // namespace berth::keras
