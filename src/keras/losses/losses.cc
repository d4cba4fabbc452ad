// Loss: names, weights, reduction.

#include "berth/keras/losses.h"

#include <fmt/format.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/custom_objects.h"
#include "keras/config/fields.h"
#include "keras/models/masks.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/replica_scope.h"

namespace berth::keras {

namespace {

struct Named {
  const char* name;
  const char* alias;  // Keras' second name
  Loss (*make)();
};

constexpr Named kLosses[] = {
    {"mean_squared_error", "mse", [] { return losses::MeanSquaredError(); }},
    {"mean_absolute_error", "mae", [] { return losses::MeanAbsoluteError(); }},
    {"mean_absolute_percentage_error", "mape",
     [] { return losses::MeanAbsolutePercentageError(); }},
    {"mean_squared_logarithmic_error", "msle",
     [] { return losses::MeanSquaredLogarithmicError(); }},
    {"huber", "huber_loss", [] { return losses::Huber(); }},
    {"log_cosh", "logcosh", [] { return losses::LogCosh(); }},
    {"binary_crossentropy", "bce", [] { return losses::BinaryCrossentropy(); }},
    {"categorical_crossentropy", "",
     [] { return losses::CategoricalCrossentropy(); }},
    {"sparse_categorical_crossentropy", "",
     [] { return losses::SparseCategoricalCrossentropy(); }},
    {"hinge", "", [] { return losses::Hinge(); }},
    {"squared_hinge", "", [] { return losses::SquaredHinge(); }},
    {"categorical_hinge", "", [] { return losses::CategoricalHinge(); }},
    {"kl_divergence", "kld", [] { return losses::KLDivergence(); }},
    {"poisson", "", [] { return losses::Poisson(); }},
    {"cosine_similarity", "", [] { return losses::CosineSimilarity(); }},
    {"binary_focal_crossentropy", "",
     [] { return losses::BinaryFocalCrossentropy(); }},
    {"categorical_focal_crossentropy", "",
     [] { return losses::CategoricalFocalCrossentropy(); }},
    {"categorical_generalized_cross_entropy", "",
     [] { return losses::CategoricalGeneralizedCrossEntropy(); }},
    {"dice", "", [] { return losses::Dice(); }},
    {"tversky", "", [] { return losses::Tversky(); }},
    {"circle", "", [] { return losses::Circle(); }},
};

// One registered by name.
struct CustomLossArgs {
  void fields(Fields&) {}
};

Loss loss_by_name(const std::string& name) {
  std::string known;
  for (const Named& l : kLosses) {
    if (!name.empty() && (name == l.name || name == l.alias)) return l.make();
    known += fmt::format("{}{}", known.empty() ? "" : ", ", l.name);
    if (*l.alias) known += fmt::format(" ({})", l.alias);
  }
  if (const LossFactory own = find_custom_object(name).loss) {
    Loss made = own(Config());
    if (made.description()) return made;
    return {name,
            [made](const Tensor& y, const Tensor& p) {
              return made.per_sample(y, p);
            },
            {made.reduction()},
            description(name, CustomLossArgs())};
  }
  throw errors::InvalidArgument(
      fmt::format("there is no loss \"{}\"; expected one of {}", name, known));
}

// Weights with axes of 1 for those of `values` that they lack.
Tensor aligned_weights(const Tensor& weights, const Tensor& values, Site site) {
  Tensor w = weights.dtype() == values.dtype()
                 ? weights
                 : math::cast(weights, values.dtype(), site);
  if (w.rank() == values.rank() + 1 && w.shape()[w.rank() - 1] == 1) {
    w = squeeze(w, {-1}, site);
  }
  if (w.rank() > values.rank()) {
    throw errors::InvalidArgument(fmt::format(
        "sample_weight is {}, values of the loss are {}{}; expected that "
        "shape or its first axes",
        weights.shape().str(), values.shape().str(),
        where_text(nullptr, site)));
  }
  while (w.rank() > 0 && w.rank() < values.rank()) w = expand_dims(w, -1, site);
  return w;
}

}  // namespace

Loss::Loss(const char* name) : Loss(loss_by_name(name ? name : "")) {}
Loss::Loss(const std::string& name) : Loss(loss_by_name(name)) {}
Loss::Loss(std::string name, Fn fn, const LossOptions& options,
           std::shared_ptr<const Description> description)
    : name_(std::move(name)),
      fn_(std::move(fn)),
      reduction_(options.reduction),
      description_(std::move(description)) {
  if (reduction_ == "sum_over_batch_size" || reduction_ == "sum" ||
      reduction_ == "none") {
    return;
  }
  throw errors::InvalidArgument(fmt::format(
      "loss {}: reduction is \"{}\"; expected sum_over_batch_size, sum or none",
      name_, reduction_));
}

namespace {

// A replica's part of the mean over all replicas: the parts add up to it. A
// replica without examples has none, and is not asked for 0 / 0.
Tensor mean_of_replica(const Tensor& values, double share, Site site) {
  const int64_t n = values.num_elements();
  const double all =
      n > 0 && share > 0 ? std::round(static_cast<double>(n) / share) : 0;
  t_state.replica->check_mean(all);
  if (n < 0) return math::reduce_mean(values, {}, site) * share;
  const Tensor sum = math::reduce_sum(values, {}, site);
  if (all == 0) return sum;
  return sum / all;
}

}  // namespace

Tensor Loss::reduced(const Tensor& values, Site site) const {
  if (reduction_ == "none" || values.rank() == 0) return values;
  if (reduction_ == "sum") return math::reduce_sum(values, {}, site);
  return t_state.replica != nullptr
             ? mean_of_replica(values, t_state.replica->share(), site)
             : math::reduce_mean(values, {}, site);
}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred,
                        Site site) const {
  return (*this)(y_true, y_pred, Tensor(), site);
}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred,
                        const Tensor& sample_weight, Site site) const {
  if (!fn_) throw errors::FailedPrecondition("an empty Loss was called");
  set_site(site);
  const MaskScope masks;  // of what fn_ leaves out
  Tensor values = fn_(y_true, y_pred);
  Tensor mask = Masks::of(values);
  if (sample_weight.defined()) {
    values = math::multiply(values,
                            aligned_weights(sample_weight, values, site), site);
  }
  if (const Tensor given = Masks::of(y_pred); given.defined()) {
    mask = mask.defined() ? math::logical_and(mask, given, site) : given;
  }
  if (mask.defined()) {
    const Tensor w = reduction_ == "sum_over_batch_size"
                         ? mask_weights(mask, values.dtype(), site)
                         : mask;
    values = math::multiply(values, aligned_weights(w, values, site), site);
  }
  return reduced(values, site);
}

}  // namespace berth::keras
