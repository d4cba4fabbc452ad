// Factorisations of matrices, on devices that have them.

#include <algorithm>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

// Whole numbers up to 1 beside a diagonal of 2, 4, ...: singular values and
// eigenvalues differ.
Input graded(Shape shape) {
  const int64_t m = shape[shape.rank() - 2], n = shape[shape.rank() - 1];
  std::vector<double> values;
  for (int64_t i = 0; i < m * n; ++i) {
    const double rest = static_cast<double>((7 * i + 3) % 11 - 5) / 10;
    values.push_back(
        i / n == i % n ? 2.0 * static_cast<double>(i / n + 1) + rest : rest);
  }
  if (values.empty()) values.push_back(0);
  return Input(shape).of(values);
}

const char kDegenerate[] = "the gradient needs distinct values";

}  // namespace

void add_factor_cases(Cases& cases) {
  const auto add = [&](const char* op, const std::string& label,
                       Input input) -> Case& {
    return cases.add(op, label, {std::move(input)}).close_to(1e-4, 1e-5);
  };
  for (const Shape& s : {Shape{4, 4}, Shape{2, 3, 3}, Shape{1, 1}, Shape{5, 3},
                         Shape{2, 3, 5}, Shape{2, 0, 0}, Shape{0, 3, 2}}) {
    const int64_t m = s[s.rank() - 2], n = s[s.rank() - 1];
    add("Svd", s.str(), graded(s));
    add("Svd", s.str() + "_values", graded(s))
        .attr("compute_uv", false)
        .gradient_through(1)
        .skip(Mode::kGrad2, "the vectors are computed anew");
    add("Qr", s.str(), graded(s));
    if (m != n) continue;
    add("SelfAdjointEigV2", s.str(), graded(s));
    add("SelfAdjointEigV2", s.str() + "_values", graded(s))
        .attr("compute_v", false)
        .gradient_through(1)
        .skip(Mode::kGrad2, "the vectors are computed anew");
    add("Eig", s.str(), graded(s)).gradient_through(1);
    add("Lu", s.str(), graded(s));
    add("LogMatrixDeterminant", s.str(), graded(s));
  }
  for (const Shape& s : {Shape{4, 3}, Shape{3, 3}}) {
    add("Svd", s.str() + "_full", graded(s)).attr("full_matrices", true);
    add("Qr", s.str() + "_full", graded(s))
        .attr("full_matrices", true)
        .skip_gradients("TensorFlow has none either");
  }
  add("Lu", "int64", graded({3, 3})).attr("output_idx_type", int64);
  add("Eig", "conjugates", Input({3, 3}).of({1, -2, 0, 3, 1, 0, 0, 1, 4}))
      .gradient_through(1);
  add("Lu", "singular", Input({2, 2}).of({1, 2, 2, 4}))
      .skip_gradients(kDegenerate);
  add("LogMatrixDeterminant", "singular", Input({2, 2}).of({1, 2, 2, 4}))
      .skip_gradients("the gradient needs an inverse");
}

}  // namespace berth::conformance
