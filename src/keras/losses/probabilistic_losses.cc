// Losses of probabilities: cross-entropies, Kullback-Leibler divergence,
// Poisson.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/keras/losses.h"
#include "berth/ops/clip.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/losses/loss_math.h"
#include "keras/losses/loss_shapes.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth::keras {

namespace {

Tensor log_of_probabilities(const Tensor& p, Site site) {
  return math::log(clip_by_value(p, kEpsilon, 1 - kEpsilon, site), site);
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
void crossentropy_fields(Fields& f, losses::CrossentropyOptions& o) {
  f("reduction", o.reduction);
  f("from_logits", o.from_logits);
  f("label_smoothing", o.label_smoothing);
  f.fixed("axis", -1);
}

}  // namespace

namespace losses {

Loss KLDivergence(const LossOptions& o) {
  return elementwise("kl_divergence", &keras::kl_divergence, o,
                     made_with<reduction_fields>("KLDivergence", o));
}
Loss Poisson(const LossOptions& o) {
  return elementwise("poisson", &keras::poisson, o,
                     made_with<reduction_fields>("Poisson", o));
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
      {o.reduction}, made_with<crossentropy_fields>("BinaryCrossentropy", o));
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
      made_with<crossentropy_fields>("CategoricalCrossentropy", o));
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
      made_with<crossentropy_fields>("SparseCategoricalCrossentropy", o));
}

}  // namespace losses

void add_probabilistic_losses_classes(Classes& c) {
  auto& all = c.losses;
  all["KLDivergence"] = &made_of<&losses::KLDivergence, reduction_fields>;
  all["Poisson"] = &made_of<&losses::Poisson, reduction_fields>;
  all["BinaryCrossentropy"] =
      &made_of<&losses::BinaryCrossentropy, crossentropy_fields>;
  all["CategoricalCrossentropy"] =
      &made_of<&losses::CategoricalCrossentropy, crossentropy_fields>;
  all["SparseCategoricalCrossentropy"] =
      &made_of<&losses::SparseCategoricalCrossentropy, crossentropy_fields>;
}

}  // namespace berth::keras
