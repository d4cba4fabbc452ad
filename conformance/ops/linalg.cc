// Factorisations and solvers of matrices, on devices that have them.

#include <algorithm>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

// Whole numbers up to 1 with a heavy diagonal: regular, condition near 1. Of
// complex ones both parts.
Input regular(Shape shape, bool complex) {
  const int64_t n = shape[shape.rank() - 1];
  std::vector<double> values;
  for (int64_t i = 0; i < n * n; ++i) {
    const bool diagonal = i / n == i % n;
    const double rest = static_cast<double>((7 * i + 3) % 11 - 5) / 10;
    values.push_back(diagonal ? 3 + rest : rest);
    if (complex) values.push_back(static_cast<double>((3 * i + 1) % 7 - 3) / 5);
  }
  if (values.empty()) values = {0, 0};
  return Input(shape).of(values);
}

// A symmetric one, or a Hermitian one.
Input definite(Shape shape, bool complex) {
  const int64_t n = shape[shape.rank() - 1];
  std::vector<double> values;
  for (int64_t i = 0; i < n * n; ++i) {
    const int64_t a = std::min(i / n, i % n), b = std::max(i / n, i % n);
    const double rest = static_cast<double>((5 * a + 3 * b) % 7 - 3) / 10;
    values.push_back(a == b ? 3 + rest : rest);
    const double turn = a == b ? 0 : (2 * a + b) % 5 / 10.0;
    if (complex) values.push_back(i / n < i % n ? turn : -turn);
  }
  if (values.empty()) values = {0, 0};
  return Input(shape).of(values);
}

Case& close(Case& c) { return c.close_to(1e-4, 1e-5); }

void add_of(Cases& cases, const Shape& shape, bool complex) {
  const std::string label = shape.str() + (complex ? "_complex" : "");
  const Input any = regular(shape, complex);
  const auto add = [&](const char* op, const std::string& form,
                       std::vector<Input> inputs) -> Case& {
    return close(cases.add(op, label + form, std::move(inputs)))
        .types(complex ? kComplexTypes : kFloatingTypes);
  };
  add("Cholesky", "", {definite(shape, complex)})
      .skip_gradients(
          "symmetric by convention, where differences see only the lower "
          "half: linalg_test has the check");
  add("MatrixDeterminant", "", {any});
  Shape right = shape;
  right[right.rank() - 1] = 2;
  for (const bool adjoint : {false, true}) {
    const std::string form = adjoint ? "_adjoint" : "";
    add("MatrixInverse", form, {any}).attr("adjoint", adjoint);
    add("MatrixSolve", form, {any, Input(right)}).attr("adjoint", adjoint);
    for (const bool lower : {false, true}) {
      add("MatrixTriangularSolve", form + (lower ? "_lower" : "_upper"),
          {any, Input(right)})
          .attr("lower", lower)
          .attr("adjoint", adjoint);
    }
  }
}

}  // namespace

void add_linalg_cases(Cases& cases) {
  for (const bool complex : {false, true}) {
    for (const Shape& shape : {Shape{4, 4}, Shape{3, 3, 3}, Shape{2, 2, 5, 5},
                               Shape{1, 1}, Shape{2, 0, 0}, Shape{0, 3, 3}}) {
      add_of(cases, shape, complex);
    }
  }
  close(
      cases.add("MatrixSolve", "no_columns", {regular({3, 3}, false), {3, 0}}));
  close(cases.add("MatrixDeterminant", "singular",
                  {Input({2, 3, 3}).of({1, 2, 3, 2, 4, 6, 1, 0, 1})}))
      .skip_gradients("the gradient needs an inverse");
}

}  // namespace berth::conformance
