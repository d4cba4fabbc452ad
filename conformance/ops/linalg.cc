// Factorisations and solvers of matrices, on devices that have them.

#include <algorithm>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

// Whole numbers up to 1 with a heavy diagonal: regular, condition near 1.
Input regular(Shape shape) {
  const int64_t n = shape[shape.rank() - 1];
  std::vector<double> values;
  for (int64_t i = 0; i < n * n; ++i) {
    const bool diagonal = i / n == i % n;
    const double rest = static_cast<double>((7 * i + 3) % 11 - 5) / 10;
    values.push_back(diagonal ? 3 + rest : rest);
  }
  if (values.empty()) values.push_back(0);
  return Input(shape).of(values);
}

// A symmetric one.
Input definite(Shape shape) {
  const int64_t n = shape[shape.rank() - 1];
  std::vector<double> values;
  for (int64_t i = 0; i < n * n; ++i) {
    const int64_t a = std::min(i / n, i % n), b = std::max(i / n, i % n);
    const double rest = static_cast<double>((5 * a + 3 * b) % 7 - 3) / 10;
    values.push_back(a == b ? 3 + rest : rest);
  }
  if (values.empty()) values.push_back(0);
  return Input(shape).of(values);
}

Case& close(Case& c) { return c.close_to(1e-4, 1e-5); }

}  // namespace

void add_linalg_cases(Cases& cases) {
  for (const Shape& shape : {Shape{4, 4}, Shape{3, 3, 3}, Shape{2, 2, 5, 5},
                             Shape{1, 1}, Shape{2, 0, 0}, Shape{0, 3, 3}}) {
    const std::string label = shape.str();
    close(cases.add("Cholesky", label, {definite(shape)}))
        .skip_gradients(
            "symmetric by convention, where differences see only the lower "
            "half: linalg_test has the check");
    close(cases.add("MatrixDeterminant", label, {regular(shape)}));
    for (const bool adjoint : {false, true}) {
      const std::string form = label + (adjoint ? "_adjoint" : "");
      close(cases.add("MatrixInverse", form, {regular(shape)}))
          .attr("adjoint", adjoint);
      Shape right = shape;
      right[right.rank() - 1] = 2;
      close(cases.add("MatrixSolve", form, {regular(shape), Input(right)}))
          .attr("adjoint", adjoint);
      for (const bool lower : {false, true}) {
        close(cases.add("MatrixTriangularSolve",
                        form + (lower ? "_lower" : "_upper"),
                        {regular(shape), Input(right)}))
            .attr("lower", lower)
            .attr("adjoint", adjoint);
      }
    }
  }
  close(cases.add("MatrixSolve", "no_columns", {regular({3, 3}), {3, 0}}));
  close(cases.add("MatrixDeterminant", "singular",
                  {Input({2, 3, 3}).of({1, 2, 3, 2, 4, 6, 1, 0, 1})}))
      .skip_gradients("the gradient needs an inverse");
}

}  // namespace berth::conformance
