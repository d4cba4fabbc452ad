// Layer normalisation.

#include <cmath>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

constexpr double kLayerEpsilon = 1e-3;

// Mean or inverse deviation of the rows of input 1.
Input row_moment(Shape rows, int64_t d, bool inverse) {
  return Input(rows).derived([=](const Arrays& before) {
    const Array& x = before[1];
    Array result(x.dtype(), rows);
    const auto count = static_cast<double>(d);
    for (int64_t r = 0; r < result.size(); ++r) {
      double mean = 0, squares = 0;
      for (int64_t i = 0; i < d; ++i) mean += x.at(r * d + i) / count;
      for (int64_t i = 0; i < d; ++i) {
        squares += std::pow(x.at(r * d + i) - mean, 2) / count;
      }
      result.set(r, inverse ? 1 / std::sqrt(squares + kLayerEpsilon) : mean);
    }
    return result;
  });
}

Case& forward(Cases& cases, std::string label, Shape x) {
  const Shape row{x[x.rank() - 1]};
  return cases.add("LayerNorm", label, {Input(x), Input(row), Input(row)})
      .attr("epsilon", kLayerEpsilon)
      .close_to(1e-4, 1e-5)
      .gradient_through(1);
}

Case& backward(Cases& cases, std::string label, Shape x) {
  const int64_t d = x[x.rank() - 1];
  Shape rows;
  for (int i = 0; i + 1 < x.rank(); ++i) rows.push_back(x[i]);
  return cases
      .add("LayerNormGrad", label,
           {Input(x), Input(x), Input({d}), row_moment(rows, d, false),
            row_moment(rows, d, true)})
      .close_to(1e-4, 1e-4)
      .skip(Mode::kGrad2,
            "third derivatives of a layer norm: its saved statistics pass no "
            "gradient on");
}

}  // namespace

void add_layer_norm_cases(Cases& cases) {
  for (const auto& [label, shape] :
       {std::pair<const char*, Shape>{"matrix", {6, 5}},
        {"batch", {2, 3, 4}},
        {"vector", {7}},
        {"long_rows", {3, 67}},
        {"many_rows", {70, 3}}}) {
    forward(cases, label, shape);
    backward(cases, label, shape);
  }
  forward(cases, "no_rows", {0, 3});
  backward(cases, "no_rows", {0, 3});
  forward(cases, "one_column", {4, 1}).skip_gradients("y does not depend on x");
  cases
      .add("LayerNorm", "special",
           {Input({4, 3}).of(
                {NAN, 1, 2, INFINITY, 0, 1, -INFINITY, 1, INFINITY, 1, 2, 3}),
            Input({3}), Input({3})})
      .skip_gradients("not finite");
  const DTypeSet single = dtype_bit(float32);
  forward(cases, "1m", {1024, 1024}).types(single).perf_only();
  backward(cases, "1m", {1024, 1024}).types(single).perf_only();
}

}  // namespace berth::conformance
