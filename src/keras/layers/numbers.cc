// Normalization, Discretization and CategoryEncoding.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "berth/ops/array.h"
#include "berth/ops/indexing.h"
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
    state().casts_inputs = false;  // they may need more digits
    if (o_.mean.size() == o_.variance.size()) return;
    fail(
        fmt::format("Normalization: mean has {} numbers, variance {}; expected "
                    "as many, or none of both",
                    o_.mean.size(), o_.variance.size()));
  }

  void build(const std::vector<Shape>& inputs) override {
    const Shape& x = inputs[0];
    broadcast_ = x;
    for (int i = 0; i < x.rank(); ++i) broadcast_[i] = 1;
    for (int64_t axis : o_.axis) {
      const int i = normalize_axis(axis, x.rank(), "Normalization: an axis");
      if (x[i] < 0) {
        fail(
            fmt::format("Normalization: the input is {}; expected axis {} to "
                        "be known",
                        x.str(), axis));
      }
      broadcast_[i] = x[i];
    }
    const int64_t n = broadcast_.num_elements();
    const auto given = static_cast<int64_t>(o_.mean.size());
    if (given > 1 && given != n) {
      fail(
          fmt::format("Normalization: mean has {} numbers, the input is {}; "
                      "expected {}",
                      given, x.str(), n));
    }
    mean_ = add_weight("mean", {n}, of(o_.mean, 0), false);
    variance_ = add_weight("variance", {n}, of(o_.variance, 1), false);
  }

  Tensors call(const Tensors& inputs, bool) override {
    const Tensor x = math::cast(one_input(state(), inputs), float32, site());
    if (x.rank() != broadcast_.rank()) {
      fail(
          fmt::format("Normalization: the input is {}; expected {} axes, as "
                      "of the first call",
                      x.shape().str(), broadcast_.rank()));
    }
    const Tensor mean = reshape(mean_.value(site()), broadcast_, site());
    const Tensor deviation = math::maximum(
        math::sqrt(reshape(variance_.value(site()), broadcast_, site()),
                   site()),
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
  static Initializer of(const std::vector<double>& values, double otherwise) {
    return Initializer([values, otherwise](const Shape& shape, DType dtype) {
      std::vector<double> all = values;
      if (all.size() < 2) {
        all.assign(static_cast<size_t>(shape.num_elements()),
                   values.empty() ? otherwise : values[0]);
      }
      return math::cast(constant(all, shape), dtype);
    });
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
      fail(
          fmt::format("Discretization: num_bins is {}, there are {} "
                      "bin_boundaries, epsilon is {}; expected one of the two, "
                      "boundaries that ascend, 0 < epsilon < 1",
                      o_.num_bins, boundaries_.size(), o_.epsilon));
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

class CategoryEncodingBase final : public LayerBase {
 public:
  CategoryEncodingBase(int64_t tokens, const CategoryEncodingOptions& o,
                       Site site)
      : LayerBase("CategoryEncoding", o.name, site),
        tokens_(tokens),
        mode_(category_mode_of(state(), o.output_mode, false)) {
    check_positive(state(), "num_tokens", tokens_);
    if (mode_ == CategoryMode::kInt) {
      fail(
          "CategoryEncoding: output_mode is \"int\"; expected one_hot, "
          "multi_hot or count");
    }
  }
  Tensors call(const Tensors& x, bool) override {
    if (x.size() > 2 || (x.size() == 2 && mode_ != CategoryMode::kCount)) {
      fail(
          fmt::format("CategoryEncoding: got {} inputs; expected 1, or weights "
                      "too in mode \"count\"",
                      x.size()));
    }
    return {encoded(math::cast(x[0], int64, site()), mode_, tokens_,
                    x.size() > 1 ? x[1] : Tensor(), {}, site())};
  }

 private:
  const int64_t tokens_;
  const CategoryMode mode_;
};

struct NormalizationArgs {
  NormalizationOptions o;
  void fields(Fields& f) {
    f("axis", o.axis);
    f("mean", o.mean);
    f("variance", o.variance);
    f("invert", o.invert);
    f("name", o.name);
  }
  Layer make(Site site) const { return Normalization(o, site); }
};
struct DiscretizationArgs {
  DiscretizationOptions o;
  void fields(Fields& f) {
    f("bin_boundaries", o.bin_boundaries);
    // Once there are boundaries, how many were wanted says nothing.
    if (!f.reading() && !o.bin_boundaries.empty()) o.num_bins = 0;
    if (f.reading() || o.num_bins != 0) f("num_bins", o.num_bins);
    f("epsilon", o.epsilon);
    f("output_mode", o.output_mode);
    f("name", o.name);
  }
  Layer make(Site site) const { return Discretization(o, site); }
};
struct CategoryEncodingArgs {
  int64_t num_tokens = 1;
  CategoryEncodingOptions o;
  void fields(Fields& f) {
    f.must("num_tokens", num_tokens);
    f("output_mode", o.output_mode);
    f("name", o.name);
  }
  Layer make(Site site) const { return CategoryEncoding(num_tokens, o, site); }
};

}  // namespace

Normalization::Normalization(NormalizationOptions o, Site site)
    : Layer(make_layer<NormalizationBase>(o, site)) {
  describe(*this, NormalizationArgs{std::move(o)});
}
void Normalization::adapt(const AdaptData& data) {
  static_cast<NormalizationBase&>(*base()).adapt(data, *this);
}
Discretization::Discretization(DiscretizationOptions o, Site site)
    : Layer(make_layer<DiscretizationBase>(o, site)) {
  describe(*this, DiscretizationArgs{std::move(o)});
}
void Discretization::adapt(const AdaptData& data) {
  static_cast<DiscretizationBase&>(*base()).adapt(data);
  DiscretizationOptions o = static_cast<DiscretizationBase&>(*base()).options();
  o.bin_boundaries = bin_boundaries();
  o.name = name();
  describe(*this, DiscretizationArgs{std::move(o)});
}
std::vector<double> Discretization::bin_boundaries() const {
  return static_cast<const DiscretizationBase&>(*base()).boundaries();
}
CategoryEncoding::CategoryEncoding(int64_t num_tokens,
                                   CategoryEncodingOptions o, Site site)
    : Layer(make_layer<CategoryEncodingBase>(num_tokens, o, site)) {
  describe(*this, CategoryEncodingArgs{num_tokens, std::move(o)});
}

void add_number_classes(Classes& c);
void add_number_classes(Classes& c) {
  c.layers["Normalization"] = &layer_of<NormalizationArgs>;
  c.layers["Discretization"] = &layer_of<DiscretizationArgs>;
  c.layers["CategoryEncoding"] = &layer_of<CategoryEncodingArgs>;
}

}  // namespace berth::keras
