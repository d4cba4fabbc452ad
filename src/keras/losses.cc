#include "berth/keras/losses.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/targets.h"
#include "op/dispatcher.h"

namespace berth::keras {

namespace {

// Keras keeps probabilities this far from 0 and 1.
constexpr double kEpsilon = 1e-7;

const math::ReduceOptions kLastAxis{.axis = std::vector<int64_t>{-1}};

Tensor log_of_probabilities(const Tensor& p, Site site) {
  const Tensor low = fill({}, kEpsilon, p.dtype(), site);
  const Tensor high = fill({}, 1 - kEpsilon, p.dtype(), site);
  return math::log(math::minimum(math::maximum(p, low, site), high, site),
                   site);
}

Tensor squared_error(const Tensor& y_true, const Tensor& y_pred) {
  const Site site = t_state.site;
  const Tensor y = like_prediction("mean_squared_error", y_true, y_pred);
  const Tensor e = math::squared_difference(y_pred, y, site);
  return e.rank() == 0 ? e : math::reduce_mean(e, kLastAxis, site);
}

Tensor categorical(const Tensor& y_true, const Tensor& y_pred, bool logits) {
  const Site site = t_state.site;
  const Tensor y = like_prediction("categorical_crossentropy", y_true, y_pred);
  if (logits) return nn::softmax_cross_entropy_with_logits(y, y_pred, site);
  const Tensor sum = math::reduce_sum(
      y_pred, {.axis = std::vector<int64_t>{-1}, .keepdims = true}, site);
  const Tensor log = log_of_probabilities(y_pred / sum, site);
  return -math::reduce_sum(y * log, kLastAxis, site);
}

// The logarithm of probabilities is a set of logits for them.
Tensor sparse(const Tensor& y_true, const Tensor& y_pred, bool logits) {
  const Site site = t_state.site;
  const Tensor y =
      class_labels("sparse_categorical_crossentropy", y_true, y_pred);
  return nn::sparse_softmax_cross_entropy_with_logits(
      y, logits ? y_pred : log_of_probabilities(y_pred, site), site);
}

Loss by_name(const std::string& name) {
  if (name == "mse" || name == "mean_squared_error") {
    return losses::MeanSquaredError();
  }
  if (name == "categorical_crossentropy") {
    return losses::CategoricalCrossentropy();
  }
  if (name == "sparse_categorical_crossentropy") {
    return losses::SparseCategoricalCrossentropy();
  }
  throw errors::InvalidArgument(
      fmt::format("there is no loss \"{}\"; expected mse, mean_squared_error, "
                  "categorical_crossentropy or sparse_categorical_crossentropy",
                  name));
}

}  // namespace

Loss::Loss(const char* name) : Loss(by_name(name ? name : "")) {}
Loss::Loss(const std::string& name) : Loss(by_name(name)) {}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred,
                        Site site) const {
  if (!fn_) {
    throw errors::FailedPrecondition("an empty Loss was called");
  }
  set_site(site);
  const Tensor values = fn_(y_true, y_pred);
  return values.rank() == 0 ? values : math::reduce_mean(values, {}, site);
}

namespace losses {

Loss MeanSquaredError() { return Loss("mean_squared_error", &squared_error); }

Loss CategoricalCrossentropy(CrossentropyOptions o) {
  return Loss("categorical_crossentropy",
              [o](const Tensor& y_true, const Tensor& y_pred) {
                return categorical(y_true, y_pred, o.from_logits);
              });
}

Loss SparseCategoricalCrossentropy(CrossentropyOptions o) {
  return Loss("sparse_categorical_crossentropy",
              [o](const Tensor& y_true, const Tensor& y_pred) {
                return sparse(y_true, y_pred, o.from_logits);
              });
}

}  // namespace losses
}  // namespace berth::keras
