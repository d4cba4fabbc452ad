// Discretization: numbers as bins.

#include <algorithm>
#include <cmath>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/layers/categories.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

// Values and how much each stands for, ascending.
struct Summary {
  std::vector<double> values, weights;
};

double interpolated(double at, const std::vector<double>& x,
                    const std::vector<double>& y) {
  if (at <= x.front()) return y.front();
  if (at >= x.back()) return y.back();
  const auto right = std::upper_bound(x.begin(), x.end(), at);
  const auto i = static_cast<size_t>(right - x.begin());
  const double width = x[i] - x[i - 1];
  return width == 0 ? y[i]
                    : y[i - 1] + (at - x[i - 1]) / width * (y[i] - y[i - 1]);
}

// About 1 / epsilon values that share the weight evenly.
Summary compressed(const Summary& s, double epsilon) {
  const auto n = static_cast<double>(s.values.size());
  if (s.values.empty() || n * epsilon < 1) return s;
  std::vector<double> sums, shares;
  double sum = 0;
  for (double w : s.weights) sums.push_back(sum += w);
  for (double c : sums) shares.push_back(c / sum);
  Summary result;
  double before = 0;
  const auto parts = static_cast<int64_t>(std::ceil(1 / epsilon - 1e-9));
  for (int64_t i = 0; i < parts; ++i) {
    const double at = epsilon + static_cast<double>(i) * epsilon;
    const double upto = interpolated(at, shares, sums);
    result.values.push_back(interpolated(at, shares, s.values));
    result.weights.push_back(upto - before);
    before = upto;
  }
  return result;
}

Summary summary_of(std::vector<double> values, double epsilon) {
  std::sort(values.begin(), values.end());
  const double step =
      std::max(static_cast<double>(values.size()) * epsilon, 1.0);
  Summary s;
  for (auto i = static_cast<size_t>(step - 1); i < values.size();
       i += static_cast<size_t>(step)) {
    s.values.push_back(values[i]);
    s.weights.push_back(step);
  }
  return s;
}

Summary merged_summaries(const Summary& a, const Summary& b, double epsilon) {
  std::vector<std::pair<double, double>> all;
  for (const Summary* s : {&a, &b}) {
    for (size_t i = 0; i < s->values.size(); ++i) {
      all.emplace_back(s->values[i], s->weights[i]);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& x, const auto& y) {
    return x.first < y.first;
  });
  Summary s;
  for (const auto& [value, weight] : all) {
    s.values.push_back(value);
    s.weights.push_back(weight);
  }
  return compressed(s, epsilon);
}

class DiscretizationBase final : public LayerBase {
 public:
  DiscretizationBase(DiscretizationOptions o, Site site)
      : LayerBase("Discretization", o.name, site),
        o_(std::move(o)),
        mode_(category_mode_of(state(), o_.output_mode, false)),
        boundaries_(o_.bin_boundaries) {
    const bool given = !boundaries_.empty();
    if (given == (o_.num_bins > 0) || o_.num_bins < 0 ||
        !(o_.epsilon > 0 && o_.epsilon < 1) ||
        !std::is_sorted(boundaries_.begin(), boundaries_.end())) {
      fail_in(state(),
              "Discretization: num_bins is {}, there are {} "
              "bin_boundaries, epsilon is {}; expected one of the two, "
              "boundaries that ascend, 0 < epsilon < 1",
              o_.num_bins, boundaries_.size(), o_.epsilon);
    }
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    if (boundaries_.empty() && o_.num_bins != 1) {
      fail(
          "Discretization: has no boundaries; expected bin_boundaries, or "
          "adapt() first");
    }
    const auto n = static_cast<int64_t>(boundaries_.size());
    const std::vector<float> list(boundaries_.begin(), boundaries_.end());
    // How many boundaries are not above it.
    const Tensor above = math::greater_equal(
        expand_dims(math::cast(x, float32, site()), -1, site()),
        constant(list, {n}, site()), site());
    const Tensor bins =
        math::reduce_sum(math::cast(above, int64, site()),
                         {.axis = std::vector<int64_t>{-1}}, site());
    return {encoded(bins, mode_, n + 1, {}, {}, site())};
  }

  void adapt(const AdaptData& data) {
    if (o_.num_bins == 0) {
      fail(
          "Discretization: adapt() of a layer that was given its "
          "bin_boundaries; expected num_bins");
    }
    Summary all;
    each_batch(data, [&](const Tensor& batch) {
      all = merged_summaries(summary_of(batch.to_vector<double>(), o_.epsilon),
                             all, o_.epsilon);
    });
    if (all.values.empty()) {
      fail("Discretization: adapt() saw nothing; expected data");
    }
    const Summary bins =
        compressed(all, 1.0 / static_cast<double>(o_.num_bins));
    boundaries_.assign(bins.values.begin(), bins.values.end() - 1);
  }
  const std::vector<double>& boundaries() const { return boundaries_; }
  const DiscretizationOptions& options() const { return o_; }

 private:
  const DiscretizationOptions o_;
  const CategoryMode mode_;
  std::vector<double> boundaries_;
};
void discretization_fields(Fields& f, DiscretizationOptions& o) {
  f("bin_boundaries", o.bin_boundaries);
  // Once there are boundaries, how many were wanted says nothing.
  if (!f.reading() && !o.bin_boundaries.empty()) o.num_bins = 0;
  if (f.reading() || o.num_bins != 0) f("num_bins", o.num_bins);
  f("epsilon", o.epsilon);
  f("output_mode", o.output_mode);
}

}  // namespace

Discretization::Discretization(DiscretizationOptions o, Site site)
    : Layer(described<DiscretizationBase, discretization_fields>(
          site, std::move(o))) {}
void Discretization::adapt(const AdaptData& data) {
  static_cast<DiscretizationBase&>(*base()).adapt(data);
  DiscretizationOptions o = static_cast<DiscretizationBase&>(*base()).options();
  o.bin_boundaries = bin_boundaries();
  o.name = name();
  describe<discretization_fields>(*this, std::move(o));
}
std::vector<double> Discretization::bin_boundaries() const {
  return static_cast<const DiscretizationBase&>(*base()).boundaries();
}

void add_discretization_classes(Classes& c) {
  c.layers["Discretization"] = &layer_of<Discretization, discretization_fields>;
}

}  // namespace berth::keras
