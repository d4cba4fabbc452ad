#include "berth/keras/metrics.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/classes.h"
#include "keras/custom_objects.h"
#include "keras/layer_state.h"
#include "keras/targets.h"

namespace berth::keras {

struct Metric::State {
  std::string name;
  Fn fn;
  std::shared_ptr<const Description> description;
  std::once_flag once;
  Variable total, count;

  // Lifted: the first update is usually in a trace. The caller's line stays.
  void make() {
    std::call_once(once, [&] {
      const Site site = t_state.site;
      const Lifted lifted;
      const auto zero = [&](const char* what) {
        // Replicas add up what each saw.
        return Variable(zeros({}, float32, site),
                        {.name = name + "/" + what,
                         .trainable = false,
                         .aggregation = VariableAggregation::kSum},
                        site);
      };
      total = zero("total");
      count = zero("count");
    });
  }
};

namespace {

Tensor as_float(const Tensor& x) {
  return x.dtype() == float32 ? x : math::cast(x, float32, t_state.site);
}

Tensor sparse_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const Site site = t_state.site;
  const Tensor y = class_labels("accuracy", y_true, y_pred);
  const Tensor best = math::argmax(y_pred, -1, site);
  const Tensor labels = y.dtype() == int64 ? y : math::cast(y, int64, site);
  return as_float(math::equal(labels, best, site));
}

Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const Site site = t_state.site;
  const Tensor y = like_prediction("accuracy", y_true, y_pred);
  return as_float(math::equal(math::argmax(y, -1, site),
                              math::argmax(y_pred, -1, site), site));
}

Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor y = like_prediction("accuracy", y_true, y_pred);
  return as_float(math::equal(y > 0.5, y_pred > 0.5, t_state.site));
}

// Keras' choice for "accuracy".
Tensor accuracy(const Tensor& y_true, const Tensor& y_pred) {
  const int rank = y_pred.rank();
  if (rank == 0 || y_pred.shape()[rank - 1] == 1) {
    return binary_accuracy(y_true, y_pred);
  }
  const int r = y_true.rank();
  const bool labels = r + 1 == rank || (r > 0 && y_true.shape()[r - 1] == 1);
  return labels ? sparse_accuracy(y_true, y_pred)
                : categorical_accuracy(y_true, y_pred);
}

Tensor squared_errors(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor y = like_prediction("mean_squared_error", y_true, y_pred);
  return math::squared_difference(y_pred, y, t_state.site);
}

// Fields of a metric that kMake, the public function, makes.
template <Metric (*kMake)(metrics::MetricOptions)>
struct PlainMetricArgs {
  metrics::MetricOptions o;
  void fields(Fields& f) { f("name", o.name); }
  Metric make() const { return kMake(o); }
};
// What stands for the others, and one registered by name.
struct NamedMetricArgs {
  void fields(Fields&) {}
  Metric make() const { return "accuracy"; }
};

Metric metric_by_name(const std::string& name) {
  using namespace metrics;
  if (name == "accuracy" || name == "acc") {
    return {name, &accuracy, description("accuracy", NamedMetricArgs())};
  }
  if (name == "sparse_categorical_accuracy") {
    return SparseCategoricalAccuracy();
  }
  if (name == "categorical_accuracy") return CategoricalAccuracy();
  if (name == "binary_accuracy") return BinaryAccuracy();
  if (name == "mse" || name == "mean_squared_error") {
    return MeanSquaredError({.name = name});
  }
  if (const MetricFactory own = find_custom_object(name).metric) {
    return own(Config());
  }
  throw errors::InvalidArgument(fmt::format(
      "there is no metric \"{}\"; expected accuracy, "
      "sparse_categorical_accuracy, categorical_accuracy, binary_accuracy, mse",
      name));
}

std::string name_or(const metrics::MetricOptions& o, const char* name) {
  return o.name.empty() ? name : o.name;
}

}  // namespace

Metric::Metric(const char* name) : Metric(metric_by_name(name ? name : "")) {}
Metric::Metric(const std::string& name) : Metric(metric_by_name(name)) {}
Metric::Metric(std::string name, Fn fn,
               std::shared_ptr<const Description> description)
    : state_(std::make_shared<State>()) {
  state_->description = std::move(description);
  state_->name = std::move(name);
  state_->fn = std::move(fn);
}

void Metric::update_state(const Tensor& y_true, const Tensor& y_pred) const {
  if (!state_->fn) {
    throw errors::InvalidArgument(fmt::format(
        "metric \"{}\" takes values alone; expected update_state(values)",
        name()));
  }
  update_state(state_->fn(y_true, y_pred));
}

void Metric::update_state(const Tensor& values) const {
  state_->make();
  const Site site = t_state.site;
  const Tensor v = as_float(values);
  const int64_t n = v.num_elements();
  state_->total.assign_add(v.rank() == 0 ? v : math::reduce_sum(v, {}, site),
                           site);
  state_->count.assign_add(n >= 0
                               ? constant(static_cast<float>(n))
                               : math::reduce_sum(ones_like(v, site), {}, site),
                           site);
}

double Metric::result() const {
  state_->make();
  const double n = state_->count.value().item<double>();
  return n == 0 ? 0 : state_->total.value().item<double>() / n;
}

void Metric::reset_state() const {
  state_->make();
  const Tensor zero = constant(0.f);
  state_->total.assign(zero);
  state_->count.assign(zero);
}

const std::string& Metric::name() const { return state_->name; }
const std::shared_ptr<const Description>& Metric::description() const {
  return state_->description;
}
Variable Metric::total() const {
  state_->make();
  return state_->total;
}
Variable Metric::count() const {
  state_->make();
  return state_->count;
}

namespace metrics {

Metric Mean(MetricOptions o) {
  return {name_or(o, "mean"), nullptr,
          description("Mean", PlainMetricArgs<&Mean>{o})};
}
Metric SparseCategoricalAccuracy(MetricOptions o) {
  return {name_or(o, "sparse_categorical_accuracy"), &sparse_accuracy,
          description("SparseCategoricalAccuracy",
                      PlainMetricArgs<&SparseCategoricalAccuracy>{o})};
}
Metric CategoricalAccuracy(MetricOptions o) {
  return {name_or(o, "categorical_accuracy"), &categorical_accuracy,
          description("CategoricalAccuracy",
                      PlainMetricArgs<&CategoricalAccuracy>{o})};
}
Metric BinaryAccuracy(MetricOptions o) {
  return {name_or(o, "binary_accuracy"), &binary_accuracy,
          description("BinaryAccuracy", PlainMetricArgs<&BinaryAccuracy>{o})};
}
Metric MeanSquaredError(MetricOptions o) {
  return {
      name_or(o, "mean_squared_error"), &squared_errors,
      description("MeanSquaredError", PlainMetricArgs<&MeanSquaredError>{o})};
}

}  // namespace metrics

void add_metric_classes(Classes& c);
void add_metric_classes(Classes& c) {
  using namespace metrics;
  auto& all = c.metrics;
  all["accuracy"] = &made_of<Metric, NamedMetricArgs>;
  all["Mean"] = &made_of<Metric, PlainMetricArgs<&Mean>>;
  all["SparseCategoricalAccuracy"] =
      &made_of<Metric, PlainMetricArgs<&SparseCategoricalAccuracy>>;
  all["CategoricalAccuracy"] =
      &made_of<Metric, PlainMetricArgs<&CategoricalAccuracy>>;
  all["BinaryAccuracy"] = &made_of<Metric, PlainMetricArgs<&BinaryAccuracy>>;
  all["MeanSquaredError"] =
      &made_of<Metric, PlainMetricArgs<&MeanSquaredError>>;
}

}  // namespace berth::keras
