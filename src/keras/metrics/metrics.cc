// The handle, and metrics that are means.

#include "berth/keras/metrics.h"

#include <fmt/format.h>

#include <numeric>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/metrics/metric_names.h"
#include "keras/metrics/metric_util.h"
#include "keras/models/layer_state.h"
#include "keras/models/masks.h"
#include "keras/models/weight_limit.h"

namespace berth::keras {

MetricBase::MetricBase(std::string name) : name_(std::move(name)) {}
MetricBase::~MetricBase() = default;

void MetricBase::update_state(const Tensor&, const Tensor&, const Tensor&) {
  fail_metric(name_, "takes values alone; expected update_state(values)");
}
void MetricBase::update_values(const Tensor&, const Tensor&) {
  fail_metric(name_,
              "takes targets and predictions; expected update_state(y_true, "
              "y_pred)");
}

// Lifted: the first update is usually in a trace. The caller's line stays.
void MetricBase::make(const Shape* y_true, const Shape* y_pred) {
  const std::lock_guard lock(mutex_);
  if (built_ || (!y_pred && needs_shapes())) return;
  const Lifted lifted;
  const Shape none;
  try {
    build(y_true ? *y_true : none, y_pred ? *y_pred : none);
  } catch (...) {
    variables_.clear();
    throw;
  }
  built_ = true;
}

Variable MetricBase::add_variable(const std::string& name, const Shape& shape) {
  // Replicas add up what each saw.
  const Site site = t_state.site;
  if (!shape.is_fully_defined()) {
    fail_metric(name_, fmt::format("\"{}\" would have shape {}; expected known "
                                   "dimensions, all but the batch",
                                   name, shape.str()));
  }
  WeightLimit::take(name_ + "/" + name, shape);
  variables_.push_back(Variable(zeros(shape, float32, site),
                                {.name = name_ + "/" + name,
                                 .trainable = false,
                                 .aggregation = VariableAggregation::kSum},
                                site));
  return variables_.back();
}

namespace {

// The mean of what fn says, or of values.
class MeanMetric final : public MetricBase {
 public:
  MeanMetric(std::string name, Metric::Fn fn)
      : MetricBase(std::move(name)), fn_(std::move(fn)) {}

  void build(const Shape&, const Shape&) override {
    total_ = add_variable("total");
    count_ = add_variable("count");
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& weight) override {
    if (!fn_) return MetricBase::update_state(y_true, y_pred, weight);
    const Tensor mask = Masks::of(y_pred);
    const Tensor values = fn_(y_true, y_pred);
    if (!mask.defined()) return update_values(values, weight);
    Tensor w = spread_weights(name(), mask, metric_floats(values));
    if (weight.defined()) {
      w = math::multiply(w, spread_weights(name(), weight, values),
                         t_state.site);
    }
    update_values(values, w);
  }
  void update_values(const Tensor& values, const Tensor& weight) override {
    const Site site = t_state.site;
    Tensor v = metric_floats(values);
    const int64_t n = v.num_elements();
    const auto sum = [&](const Tensor& t) {
      return t.rank() == 0 ? t : math::reduce_sum(t, {}, site);
    };
    if (weight.defined()) {
      const Tensor w = spread_weights(name(), weight, v);
      total_.assign_add(sum(math::multiply(v, w, site)), site);
      count_.assign_add(sum(w), site);
      return;
    }
    total_.assign_add(sum(v), site);
    count_.assign_add(
        n >= 0 ? constant(static_cast<float>(n)) : sum(ones_like(v, site)),
        site);
  }
  Tensor result() override {
    return constant(quotient(values_of(total_)[0], values_of(count_)[0]));
  }

 private:
  const Metric::Fn fn_;
  Variable total_, count_;
};

}  // namespace

Metric::Metric(const char* name) : Metric(metric_by_name(name ? name : "")) {}
Metric::Metric(const std::string& name) : Metric(metric_by_name(name)) {}
Metric::Metric(std::string name, Fn fn,
               std::shared_ptr<const Description> description)
    : Metric(std::make_shared<MeanMetric>(std::move(name), std::move(fn))) {
  base_->description = std::move(description);
}
Metric::Metric(std::shared_ptr<MetricBase> base) : base_(std::move(base)) {
  if (base_ == nullptr) {
    throw errors::InvalidArgument(
        "a Metric was made of a null pointer; expected one to a MetricBase: "
        "write keras::make_metric<YourMetric>()");
  }
}

void Metric::update_state(const Tensor& y_true, const Tensor& y_pred,
                          const Tensor& sample_weight) const {
  const Shape &a = y_true.shape(), &b = y_pred.shape();
  base_->make(&a, &b);
  base_->update_state(y_true, y_pred, sample_weight);
}
void Metric::update_state(const Tensor& values) const {
  update_state(values, MetricWeights());
}
void Metric::update_state(const Tensor& values,
                          const MetricWeights& weights) const {
  const Shape& s = values.shape();
  base_->make(&s, &s);
  base_->update_values(values, weights.sample_weight);
}

Tensor Metric::result_tensor() const {
  base_->make(nullptr, nullptr);
  return base_->built() ? base_->result() : constant(0.0);
}
double Metric::result() const {
  const Tensor r = result_tensor();
  if (r.rank() == 0) {
    return r.dtype() == float64 ? r.item<double>()
                                : math::cast(r, float64).item<double>();
  }
  const std::vector<double> all =
      (r.dtype() == float64 ? r : math::cast(r, float64)).to_vector<double>();
  return quotient(std::accumulate(all.begin(), all.end(), 0.0),
                  static_cast<double>(all.size()));
}
void Metric::reset_state() const {
  for (const Variable& v : variables()) v.assign(zeros(v.shape(), v.dtype()));
}

const std::string& Metric::name() const { return base_->name(); }
const std::shared_ptr<const Description>& Metric::description() const {
  return base_->description;
}
std::vector<Variable> Metric::variables() const {
  base_->make(nullptr, nullptr);
  return base_->variables();
}

namespace {

Variable part_of_mean(const Metric& m, size_t i) {
  if (dynamic_cast<MeanMetric*>(m.base().get())) return m.variables()[i];
  throw errors::FailedPrecondition(fmt::format(
      "metric \"{}\" is no mean and has no total and count; see variables()",
      m.name()));
}

}  // namespace

Variable Metric::total() const { return part_of_mean(*this, 0); }
Variable Metric::count() const { return part_of_mean(*this, 1); }

}  // namespace berth::keras
