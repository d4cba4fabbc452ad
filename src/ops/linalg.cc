// Factorisations and solvers of matrices. Only host devices have kernels.

#include "berth/ops/linalg.h"

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/matrices.h"
#include "ops/named_call.h"

namespace berth {

namespace linalg {

Tensor cholesky(const Tensor& x, Site site) {
  return call_checked(op_of<"Cholesky">(), site, {&x});
}
Tensor solve(const Tensor& matrix, const Tensor& rhs, const SolveOptions& o,
             Site site) {
  return call_checked(op_of<"MatrixSolve">(), site, {&matrix, &rhs},
                      AttrsRef({{"adjoint", o.adjoint}}).get());
}
Tensor triangular_solve(const Tensor& matrix, const Tensor& rhs,
                        const TriangularSolveOptions& o, Site site) {
  return call_checked(
      op_of<"MatrixTriangularSolve">(), site, {&matrix, &rhs},
      AttrsRef({{"lower", o.lower}, {"adjoint", o.adjoint}}).get());
}
Tensor cholesky_solve(const Tensor& chol, const Tensor& rhs, Site site) {
  return triangular_solve(chol, triangular_solve(chol, rhs, {}, site),
                          {.adjoint = true}, site);
}
Tensor inv(const Tensor& x, const SolveOptions& o, Site site) {
  return call_checked(op_of<"MatrixInverse">(), site, {&x},
                      AttrsRef({{"adjoint", o.adjoint}}).get());
}
Tensor det(const Tensor& x, Site site) {
  return call_checked(op_of<"MatrixDeterminant">(), site, {&x});
}

}  // namespace linalg

void expect_matrices(const InferContext& c) {
  const Shape& s = c.shape(0);
  if (s.rank() < 2) {
    c.fail(fmt::format("the matrix is {}; expected [..., m, n]", s.str()));
  }
  for (int i = s.rank() - 2; i < s.rank(); ++i) {
    if (s[i] > INT32_MAX / 2) {
      c.fail(fmt::format("a side of {} is too long", s[i]));
    }
  }
}

int64_t side_of(const InferContext& c) {
  const Shape& s = c.shape(0);
  if (s.rank() < 2) {
    c.fail(fmt::format("the matrix is {}; expected [..., n, n]", s.str()));
  }
  const int64_t n = c.merge_dims(
      s[s.rank() - 2], s[s.rank() - 1],
      fmt::format("the matrix is {}; expected [..., n, n]", s.str()));
  if (n > INT32_MAX / 2) c.fail(fmt::format("a side of {} is too long", n));
  return n;
}

std::vector<SplitSignature> split_batch(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (int i = 0; i + 2 < c.shape(0).rank(); ++i) {
    SplitSignature rule;
    rule.inputs.assign(static_cast<size_t>(c.num_inputs()), cut(i));
    rule.outputs.assign(static_cast<size_t>(c.num_outputs()), cut(i));
    rules.push_back(std::move(rule));
  }
  return rules;
}

Cost cost_cubic(const InferContext& c) {
  const Shape& s = c.shape(0);
  Cost cost = cost_move(c);
  cost.flops = static_cast<double>(s.num_elements()) *
               static_cast<double>(s[s.rank() - 1]);
  return cost;
}

void infer_det(InferContext& c) {
  (void)side_of(c);
  Shape out = c.shape(0);
  out.erase(out.rank() - 1);
  out.erase(out.rank() - 1);
  c.set_output(0, c.dtype(0), out);
}

namespace {

void infer_square(InferContext& c) {
  (void)side_of(c);
  infer_same_as_0(c);
}

void infer_solve(InferContext& c) {
  const int64_t n = side_of(c);
  const Shape &a = c.shape(0), &b = c.shape(1);
  bool fits = a.rank() == b.rank();
  for (int i = 0; fits && i + 2 < a.rank(); ++i) {
    fits = a[i] < 0 || b[i] < 0 || a[i] == b[i];
  }
  if (fits) {
    const int64_t rows = b[b.rank() - 2];
    fits = n < 0 || rows < 0 || n == rows;
  }
  if (!fits) {
    c.fail(
        fmt::format("the matrix is {}, the right side {}; expected "
                    "[..., n, n] and [..., n, k]",
                    a.str(), b.str()));
  }
  c.set_output(0, c.dtype(0), b);
}

std::vector<SplitSignature> split_solve(const InferContext& c) {
  std::vector<SplitSignature> rules = split_batch(c);
  const int8_t columns = cut(c.shape(1).rank() - 1);
  rules.push_back({{kWhole, columns}, {columns}});
  return rules;
}

// Phi(L^H dL) between two triangular solves, made symmetric (Murray,
// arXiv:1602.07527).
Tensors grad_cholesky(const GradCall& g) {
  const Tensor& l = g.y();
  const Tensor inner = tn(l, g.dy());
  // The lower triangle with half the diagonal.
  const Tensor half = (linalg::band_part(inner, -1, 0, {}) +
                       linalg::band_part(inner, -1, 0, {}) -
                       linalg::band_part(inner, 0, 0, {})) *
                      0.5;
  const Tensor left = linalg::triangular_solve(l, half, {.adjoint = true}, {});
  const Tensor both =
      linalg::triangular_solve(l, adjoint(left), {.adjoint = true}, {});
  return {(both + adjoint(both)) * 0.5};
}

// d rhs = A^-H dy; d A = -d rhs y^H, the other way round for the adjoint.
Tensor grad_of_matrix(const Tensor& drhs, const Tensor& y, bool adjoint) {
  return adjoint ? -nt(y, drhs) : -nt(drhs, y);
}

Tensors grad_solve(const GradCall& g) {
  const bool adjoint = g.attr<bool>("adjoint");
  const Tensor drhs = linalg::solve(g.x(0), g.dy(), {.adjoint = !adjoint}, {});
  return {g.needs(0) ? grad_of_matrix(drhs, g.y(), adjoint) : Tensor(), drhs};
}

Tensors grad_triangular_solve(const GradCall& g) {
  const bool adjoint = g.attr<bool>("adjoint"), lower = g.attr<bool>("lower");
  const Tensor drhs = linalg::triangular_solve(
      g.x(0), g.dy(), {.lower = lower, .adjoint = !adjoint}, {});
  if (!g.needs(0)) return {{}, drhs};
  return {linalg::band_part(grad_of_matrix(drhs, g.y(), adjoint),
                            lower ? -1 : 0, lower ? 0 : -1, {}),
          drhs};
}

Tensors grad_inverse(const GradCall& g) {
  const Tensor& y = g.y();
  const Tensor d = -nt(tn(y, g.dy()), y);
  return {g.attr<bool>("adjoint") ? adjoint(d) : d};
}

Tensors grad_det(const GradCall& g) {
  const Tensor scale =
      expand_dims(expand_dims(g.dy() * math::conj(g.y(), {}), -1, {}), -1, {});
  return {scale * linalg::inv(g.x(0), {.adjoint = true}, {})};
}

}  // namespace

void register_linalg_ops(OpRegistry& r) {
  r.op("Cholesky")
      .input("input", kMatrixTypes)
      .output("output")
      .infer(&infer_square)
      .cost(&cost_cubic)
      .split(&split_batch)
      .gradient(&grad_cholesky);
  r.op("MatrixSolve")
      .input("matrix", kMatrixTypes)
      .input("rhs", kMatrixTypes)
      .output("output")
      .attr("adjoint", false)
      .infer(&infer_solve)
      .cost(&cost_cubic)
      .split(&split_solve)
      .gradient(&grad_solve);
  r.op("MatrixTriangularSolve")
      .input("matrix", kMatrixTypes)
      .input("rhs", kMatrixTypes)
      .output("output")
      .attr("lower", true)
      .attr("adjoint", false)
      .infer(&infer_solve)
      .cost(&cost_cubic)
      .split(&split_solve)
      .gradient(&grad_triangular_solve);
  r.op("MatrixInverse")
      .input("input", kMatrixTypes)
      .output("output")
      .attr("adjoint", false)
      .infer(&infer_square)
      .cost(&cost_cubic)
      .split(&split_batch)
      .gradient(&grad_inverse);
  r.op("MatrixDeterminant")
      .input("input", kMatrixTypes)
      .output("output")
      .infer(&infer_det)
      .cost(&cost_cubic)
      .split(&split_batch)
      .gradient(&grad_det);
}

}  // namespace berth
