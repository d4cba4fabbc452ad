// Normalization: of mean 0 and variance 1, by what adapt() saw.

#include <algorithm>
#include <cmath>
#include <optional>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/layers/categories.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class NormalizationBase final : public LayerBase {
 public:
  NormalizationBase(NormalizationOptions o, Site site)
      : LayerBase("Normalization", o.name, site), o_(std::move(o)) {
    state().casts.inputs = false;  // they may need more digits
    if (o_.mean.size() == o_.variance.size()) return;
    fail_in(state(),
            "Normalization: mean has {} numbers, variance {}; expected "
            "as many, or none of both",
            o_.mean.size(), o_.variance.size());
  }

  void build(const std::vector<Shape>& inputs) override {
    const Shape& x = inputs[0];
    broadcast_ = x;
    for (int i = 0; i < x.rank(); ++i) broadcast_[i] = 1;
    for (int64_t axis : o_.axis) {
      const int i = normalize_axis(axis, x.rank(), "Normalization: an axis");
      if (x[i] < 0) {
        fail_in(state(),
                "Normalization: the input is {}; expected axis {} to be known",
                x.str(), axis);
      }
      broadcast_[i] = x[i];
    }
    const int64_t n = broadcast_.num_elements();
    const auto given = static_cast<int64_t>(o_.mean.size());
    if (given > 1 && given != n) {
      fail_in(state(),
              "Normalization: mean has {} numbers, the input is {}; "
              "expected {}",
              given, x.str(), n);
    }
    if (given > 0) return;
    mean_ = add_weight("mean", {n}, initializers::Zeros(), false);
    variance_ = add_weight("variance", {n}, initializers::Ones(), false);
    // Keras has it, too, and never counts.
    add_weight("count", {}, Initializer([](const Shape& shape, DType) {
                 return fill(shape, 0, int32);
               }),
               false);
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor x = math::cast(one_input(state(), inputs), float32, site());
    if (x.rank() != broadcast_.rank()) {
      fail_in(state(),
              "Normalization: the input is {}; expected {} axes, as "
              "of the first call",
              x.shape().str(), broadcast_.rank());
    }
    const Tensor mean = statistic(mean_, o_.mean);
    const Tensor deviation =
        math::maximum(math::sqrt(statistic(variance_, o_.variance), site()),
                      fill({}, 1e-7, float32, site()), site());
    return {o_.invert ? x * deviation + mean : (x - mean) / deviation};
  }

  void adapt(const AdaptData& data, const Layer& self) {
    if (!o_.mean.empty()) {
      fail(
          "Normalization: adapt() of a layer that was given its mean; "
          "expected one without");
    }
    std::vector<double> sum, squares, shift;
    double rows = 0;
    each_batch(data, [&](const Tensor& batch) {
      self(batch);  // builds, and checks the rank
      add(batch, &sum, &squares, &shift, &rows);
    });
    if (rows == 0) fail("Normalization: adapt() saw nothing; expected data");
    std::vector<float> mean, variance;
    for (size_t i = 0; i < sum.size(); ++i) {
      const double m = sum[i] / rows;
      mean.push_back(static_cast<float>(m + shift[i]));
      variance.push_back(
          static_cast<float>(std::max(squares[i] / rows - m * m, 0.0)));
    }
    const auto n = static_cast<int64_t>(mean.size());
    mean_.assign(constant(mean, {n}, site()), site());
    variance_.assign(constant(variance, {n}, site()), site());
  }

 private:
  // In the shape that goes with the input: what the layer was given, or learnt.
  Tensor statistic(const Variable& learnt, std::vector<double> given) const {
    if (given.empty()) return reshape(learnt.value(site()), broadcast_, site());
    if (given.size() == 1) {
      given.resize(static_cast<size_t>(broadcast_.num_elements()), given[0]);
    }
    return math::cast(constant(given, broadcast_, site()), float32, site());
  }

  // Sums of what is above the first value that each mean saw, so that large
  // numbers lose nothing.
  void add(const Tensor& batch, std::vector<double>* sum,
           std::vector<double>* squares, std::vector<double>* shift,
           double* rows) const {
    const auto values = batch.to_vector<double>();
    const Shape& x = batch.shape();
    const auto kept = static_cast<size_t>(broadcast_.num_elements());
    const bool first = sum->empty();
    if (first) {
      sum->resize(kept);
      squares->resize(kept);
      shift->assign(kept, NAN);
    }
    std::vector<int64_t> at(static_cast<size_t>(x.rank()));
    for (double v : values) {
      size_t place = 0;
      for (int i = 0; i < x.rank(); ++i) {
        if (broadcast_[i] == 1) continue;
        place = place * static_cast<size_t>(broadcast_[i]) +
                static_cast<size_t>(at[static_cast<size_t>(i)]);
      }
      double& base = (*shift)[place];
      if (std::isnan(base)) base = v;
      (*sum)[place] += v - base;
      (*squares)[place] += (v - base) * (v - base);
      for (int i = x.rank() - 1; i >= 0; --i) {
        if (++at[static_cast<size_t>(i)] < x[i]) break;
        at[static_cast<size_t>(i)] = 0;
      }
    }
    if (kept > 0) {
      *rows += static_cast<double>(values.size()) / static_cast<double>(kept);
    }
  }

  const NormalizationOptions o_;
  Shape broadcast_;
  Variable mean_, variance_;
};

void one_or_null(Fields& f, const char* name, std::vector<double>& values) {
  std::optional<std::vector<double>> some;
  if (!values.empty()) some = values;
  f(name, some);
  values = some.value_or(std::vector<double>{});
}
void normalization_fields(Fields& f, NormalizationOptions& o) {
  f("axis", o.axis);
  one_or_null(f, "mean", o.mean);
  one_or_null(f, "variance", o.variance);
  f("invert", o.invert);
}

}  // namespace

Normalization::Normalization(NormalizationOptions o, Site site)
    : Layer(described<NormalizationBase, normalization_fields>(site,
                                                               std::move(o))) {}
void Normalization::adapt(const AdaptData& data) {
  static_cast<NormalizationBase&>(*base()).adapt(data, *this);
}

void add_normalization_layer_classes(Classes& c) {
  c.layers["Normalization"] = &layer_of<Normalization, normalization_fields>;
}

}  // namespace berth::keras
