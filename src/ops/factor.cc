// Factorisations of matrices: svd, qr, eigh, eig, lu, and the determinant's
// logarithm. Only host devices have kernels.

#include "berth/ops/factor.h"

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/array_util.h"
#include "ops/families.h"
#include "ops/matrices.h"
#include "ops/named_call.h"

namespace berth {

namespace linalg {

namespace {

Tensors factors(const OpDef& op, const Tensor& x, Site site,
                const Attrs* attrs = nullptr) {
  set_site(site);
  (void)x.dtype();  // throws on an empty handle
  return call_many(op, {&x}, attrs);
}

}  // namespace

Svd svd(const Tensor& x, const SvdOptions& o, Site site) {
  const Tensors r = factors(op_of<"Svd">(), x, site,
                            AttrsRef({{"compute_uv", o.compute_uv},
                                      {"full_matrices", o.full_matrices}})
                                .get());
  if (!o.compute_uv) return {r[0], {}, {}};
  return {r[0], r[1], r[2]};
}
Qr qr(const Tensor& x, bool full_matrices, Site site) {
  const Tensors r = factors(op_of<"Qr">(), x, site,
                            AttrsRef({{"full_matrices", full_matrices}}).get());
  return {r[0], r[1]};
}
Eigen eigh(const Tensor& x, Site site) {
  const Tensors r = factors(op_of<"SelfAdjointEigV2">(), x, site);
  return {r[0], r[1]};
}
Tensor eigvalsh(const Tensor& x, Site site) {
  return factors(op_of<"SelfAdjointEigV2">(), x, site,
                 AttrsRef({{"compute_v", false}}).get())[0];
}
Eigen eig(const Tensor& x, Site site) {
  const Tensors r = factors(op_of<"Eig">(), x, site);
  return {r[0], r[1]};
}
Tensor eigvals(const Tensor& x, Site site) { return eig(x, site).e; }
Lu lu(const Tensor& x, DType output_idx_type, Site site) {
  const Tensors r =
      factors(op_of<"Lu">(), x, site,
              AttrsRef({{"output_idx_type", output_idx_type}}).get());
  return {r[0], r[1]};
}
SlogDet slogdet(const Tensor& x, Site site) {
  const Tensors r = factors(op_of<"LogMatrixDeterminant">(), x, site);
  return {r[0], r[1]};
}

}  // namespace linalg

namespace {

// input 0 [..., m, n] as [..., rows, columns], or without rows (-2).
Shape like_matrix(const InferContext& c, int64_t rows, int64_t columns) {
  Shape s = c.shape(0);
  const int last = s.rank() - 1;
  s[last] = columns;
  if (rows == -2) {
    s.erase(last - 1);
  } else {
    s[last - 1] = rows;
  }
  return s;
}

int64_t shorter_side(int64_t m, int64_t n) {
  return m < 0 || n < 0 ? kUnknownDim : std::min(m, n);
}

void infer_svd(InferContext& c) {
  expect_matrices(c);
  const Shape& s = c.shape(0);
  const int64_t m = s[s.rank() - 2], n = s[s.rank() - 1];
  const int64_t p = shorter_side(m, n);
  const bool full = c.attr<bool>("full_matrices");
  const bool vectors = c.attr<bool>("compute_uv");
  c.set_output(0, real_type_of(c.dtype(0)), like_matrix(c, -2, p));
  c.set_output(1, c.dtype(0),
               vectors ? like_matrix(c, m, full ? m : p) : Shape{0});
  c.set_output(2, c.dtype(0),
               vectors ? like_matrix(c, n, full ? n : p) : Shape{0});
}

void infer_qr(InferContext& c) {
  expect_matrices(c);
  const Shape& s = c.shape(0);
  const int64_t m = s[s.rank() - 2], n = s[s.rank() - 1];
  const int64_t p = c.attr<bool>("full_matrices") ? m : shorter_side(m, n);
  c.set_output(0, c.dtype(0), like_matrix(c, m, p));
  c.set_output(1, c.dtype(0), like_matrix(c, p, n));
}

void infer_eigen(InferContext& c, DType dtype, bool vectors) {
  const int64_t n = side_of(c);
  c.set_output(0, dtype, like_matrix(c, -2, n));
  c.set_output(1, dtype, vectors ? like_matrix(c, n, n) : Shape{0});
}

void infer_lu(InferContext& c) {
  const int64_t n = side_of(c);
  const DType type = c.attr<DType>("output_idx_type");
  if (!(kIndexTypes & dtype_bit(type))) {
    c.fail(fmt::format("output_idx_type is {}; expected int32 or int64",
                       name_of(type)));
  }
  c.set_output(0, c.dtype(0), c.shape(0));
  c.set_output(1, type, like_matrix(c, -2, n));
}

// Outputs without elements, which have no batch, are whole.
std::vector<SplitSignature> split_factors(const InferContext& c) {
  std::vector<SplitSignature> rules = split_batch(c);
  for (SplitSignature& rule : rules) {
    for (int i = 1; i < c.num_outputs(); ++i) {
      if (c.output(i).shape.rank() == 1 && c.shape(0).rank() > 2) {
        rule.outputs[static_cast<size_t>(i)] = kWhole;
      }
    }
  }
  return rules;
}

// 1 / x, 0 where x is.
Tensor safe_reciprocal(const Tensor& x) { return x / (x * x + 1e-20); }

// 1 / (v_j - v_i) at [i, j], 0 on the diagonal, also of its own gradient.
Tensor reciprocal_gaps(const Tensor& v) {
  const int64_t n = v.shape()[v.rank() - 1];
  const Tensor same = eye(n, n, {}, bool_, {});
  const Tensor gaps = expand_dims(v, -2, {}) - expand_dims(v, -1, {});
  return where(same, scalar_like(v, 0),
               safe_reciprocal(where(same, scalar_like(v, 1), gaps, {})), {});
}

Tensor rows_scaled(const Tensor& x, const Tensor& by) {
  return x * expand_dims(math::cast(by, x.dtype(), {}), -1, {});
}
Tensor columns_scaled(const Tensor& x, const Tensor& by) {
  return x * expand_dims(math::cast(by, x.dtype(), {}), -2, {});
}

// i Im x, for a complex x.
Tensor imaginary(const Tensor& x) {
  const Tensor im = math::imag(x, {});
  return math::complex(zeros_like(im, {}), im, {});
}

// The first k columns of x [..., n], and the others.
std::pair<Tensor, Tensor> columns_at(const Tensor& x, int64_t k) {
  const int64_t n = x.shape()[x.rank() - 1];
  Tensors parts = split(x, std::vector<int64_t>{k, n - k}, -1, {});
  return {parts[0], parts[1]};
}

struct SvdParts {
  Tensor u, v, du, dv;
};

// With x [..., m, n], m <= n (Ionescu and others, arXiv:1509.07838; complex:
// Wan and Zhang, arXiv:1909.02659).
Tensor grad_svd_wide(const Tensor& s, const Tensor& ds, const SvdParts& p,
                     int64_t m, int64_t n, bool full) {
  const Tensor gaps =
      math::cast(reciprocal_gaps(math::square(s, {})), p.u.dtype(), {});
  const auto [v1, v2] = columns_at(p.v, m);
  const auto [dv1, dv2] = columns_at(p.dv, m);
  const Tensor vdv = tn(v1, dv1);
  const Tensor by_u = gaps * tn(p.u, p.du), by_v = gaps * vdv;
  Tensor on_diagonal = math::cast(ds, vdv.dtype(), {});
  if (is_complex(vdv.dtype())) {  // a vector's phase, which s lacks
    const Tensor phase = imaginary(linalg::diag_part(vdv, 0, {}));
    on_diagonal =
        on_diagonal - phase * math::cast(safe_reciprocal(s), vdv.dtype(), {});
  }
  const Tensor inner = linalg::diag(on_diagonal, 0, {}) +
                       columns_scaled(by_u + adjoint(by_u), s) +
                       rows_scaled(by_v + adjoint(by_v), s);
  const Tensor d = matmul(p.u, nt(inner, v1), {}, {});
  if (m == n) return d;
  Tensor outside = adjoint(dv1) - nt(tn(dv1, v1), v1);
  if (full) outside = outside - nt(tn(v1, dv2), v2);
  return d + matmul(columns_scaled(p.u, safe_reciprocal(s)), outside, {}, {});
}

Tensors grad_svd(const GradCall& g) {
  const Shape& shape = g.x(0).shape();
  int64_t m = shape[shape.rank() - 2], n = shape[shape.rank() - 1];
  const bool full = g.attr<bool>("full_matrices");
  if (!g.attr<bool>("compute_uv")) {
    const linalg::Svd r = linalg::svd(g.x(0), {}, {});
    return {matmul(r.u, rows_scaled(adjoint(r.v), g.dy(0)), {}, {})};
  }
  if (full && std::abs(m - n) > 1) {
    throw errors::Unimplemented(fmt::format(
        "svd: no gradient with full_matrices for [..., {}, {}]: the sides "
        "differ by more than 1",
        m, n));
  }
  if (m <= n) {
    return {grad_svd_wide(g.y(0), g.dy(0), {g.y(1), g.y(2), g.dy(1), g.dy(2)},
                          m, n, full)};
  }
  return {adjoint(grad_svd_wide(
      g.y(0), g.dy(0), {g.y(2), g.y(1), g.dy(2), g.dy(1)}, n, m, full))};
}

// x R^-H for an upper triangular R.
Tensor over_upper(const Tensor& x, const Tensor& r) {
  return adjoint(linalg::triangular_solve(r, adjoint(x), {.lower = false}, {}));
}

// For m >= n (Walter and Lehmann, arXiv:1001.1654; complex: Roberts and
// Roberts, arXiv:2009.10071).
Tensor grad_qr_tall(const Tensor& q, const Tensor& r, const Tensor& dq,
                    const Tensor& dr) {
  const Tensor qdq = tn(q, dq), rdr = nt(r, dr);
  const Tensor skew = qdq - adjoint(qdq) + rdr - adjoint(rdr);
  const Tensor lower = linalg::band_part(skew, -1, 0, {});
  Tensor outside = dq - matmul(q, qdq, {}, {});
  if (is_complex(q.dtype())) {  // r's diagonal is real
    const Tensor phase =
        imaginary(linalg::diag_part(rdr - adjoint(qdq), 0, {}));
    outside = outside - columns_scaled(q, phase);
  }
  return matmul(q, dr + over_upper(lower, r), {}, {}) + over_upper(outside, r);
}

Tensors grad_qr(const GradCall& g) {
  const Shape& s = g.x(0).shape();
  const int64_t m = s[s.rank() - 2], n = s[s.rank() - 1];
  const Tensor q = g.y(0), r = g.y(1), dq = g.dy(0), dr = g.dy(1);
  if (m >= n) {
    if (m > n && g.attr<bool>("full_matrices")) {
      throw errors::Unimplemented(fmt::format(
          "qr: no gradient with full_matrices for [..., {}, {}]", m, n));
    }
    return {grad_qr_tall(q, r, dq, dr)};
  }
  const Tensor rest = columns_at(g.x(0), m).second;
  const auto [du, dv] = columns_at(dr, m);
  const Tensor square =
      grad_qr_tall(q, columns_at(r, m).first, dq + nt(rest, dv), du);
  return {concat({square, matmul(q, dv, {}, {})}, -1, {})};
}

// All belongs to the lower part, which alone is read.
Tensors grad_eigh(const GradCall& g) {
  Tensor v = g.y(1), mid = linalg::diag(g.dy(0), 0, {});
  if (!g.attr<bool>("compute_v")) {
    v = linalg::eigh(g.x(0), {}).v;
  } else if (g.has_dy(1)) {
    const Tensor gaps = reciprocal_gaps(math::real(g.y(0), {}));
    mid = mid + math::cast(gaps, v.dtype(), {}) * tn(v, g.dy(1));
  }
  const Tensor d = matmul(v, nt(mid, v), {}, {});
  const Tensor both = d + adjoint(d);
  return {linalg::band_part(both, -1, 0, {}) -
          linalg::band_part(both, 0, 0, {}) * 0.5};
}

Tensors grad_eig(const GradCall& g) {
  const Tensor e = g.y(0), v = g.y(1), vt = linalg::adjoint(v, {});
  Tensor mid = linalg::diag(g.dy(0), 0, {});
  if (g.has_dy(1)) {
    const Tensor gap = expand_dims(e, -2, {}) - expand_dims(e, -1, {});
    const Tensor square = math::square(math::real(gap, {}), {}) +
                          math::square(math::imag(gap, {}), {});
    const Tensor by = gap / math::cast(square + 1e-20, gap.dtype(), {});
    const Tensor vgv = matmul(vt, g.dy(1), {}, {});
    const Tensor along = math::cast(
        math::real(linalg::diag_part(vgv, 0, {}), {}), v.dtype(), {});
    mid = mid + by * (vgv - columns_scaled(matmul(vt, v, {}, {}), along));
  }
  const Tensor d = linalg::solve(vt, matmul(mid, vt, {}, {}), {}, {});
  return {is_complex(g.x(0).dtype()) ? d : math::real(d, {})};
}

// x = P^T L U: dx = P^T L^-H (lower(L^H dL) + upper(dU U^H)) U^-H.
Tensors grad_lu(const GradCall& g) {
  const Tensor y = g.y(0), dy = g.dy(0);
  const Tensor upper = linalg::band_part(y, 0, -1, {});
  const Tensor diagonal = linalg::band_part(ones_like(y, {}), 0, 0, {});
  const Tensor lower = y - upper + diagonal;
  const Tensor du = linalg::band_part(dy, 0, -1, {});
  const Tensor by_l = linalg::band_part(tn(lower, dy - du), -1, 0, {});
  const Tensor inner = by_l - linalg::band_part(by_l, 0, 0, {}) +
                       linalg::band_part(nt(du, upper), 0, -1, {});
  const Tensor right = over_upper(inner, upper);
  const Tensor d =
      linalg::triangular_solve(lower, right, {.adjoint = true}, {});
  // Row i came from row p[i].
  const Tensor back = math::cast(
      math::equal(
          expand_dims(g.y(1), -2, {}),
          expand_dims(range(0, y.shape()[y.rank() - 1], 1, g.y(1).dtype(), {}),
                      -1, {}),
          {}),
      y.dtype(), {});
  return {matmul(back, d, {}, {})};
}

Tensors grad_log_determinant(const GradCall& g) {
  Tensor of = g.dy(1);
  if (is_complex(of.dtype())) {  // the sign has a phase, the logarithm is real
    const Tensor turn = math::imag(g.dy(0) * math::conj(g.y(0), {}), {});
    of = math::complex(math::real(of, {}), turn, {});
  }
  const Tensor by = expand_dims(expand_dims(of, -1, {}), -1, {});
  return {by * linalg::inv(g.x(0), {.adjoint = true}, {})};
}

void factor_op(OpBuilder& op, InferFn infer, GradientFn gradient) {
  op.input("input", kMatrixTypes)
      .infer(infer)
      .cost([](const InferContext& c) {
        Cost cost = cost_cubic(c);
        cost.flops *= 10;
        return cost;
      })
      .split(&split_factors)
      .gradient(gradient);
}

}  // namespace

void register_factor_ops(OpRegistry& r) {
  factor_op(r.op("Svd")
                .output("s")
                .output("u")
                .output("v")
                .attr("compute_uv", true)
                .attr("full_matrices", false),
            &infer_svd, &grad_svd);
  factor_op(r.op("Qr").output("q").output("r").attr("full_matrices", false),
            &infer_qr, &grad_qr);
  factor_op(
      r.op("SelfAdjointEigV2").output("e").output("v").attr("compute_v", true),
      [](InferContext& c) {
        infer_eigen(c, c.dtype(0), c.attr<bool>("compute_v"));
      },
      &grad_eigh);
  factor_op(
      r.op("Eig").output("e").output("v"),
      [](InferContext& c) {
        const DType real = real_type_of(c.dtype(0));
        infer_eigen(c, real == float32 ? complex64 : complex128, true);
      },
      &grad_eig);
  factor_op(r.op("Lu").output("lu").output("p").attr("output_idx_type", int32),
            &infer_lu, &grad_lu);
  OpBuilder&& log_det = r.op("LogMatrixDeterminant");
  factor_op(
      log_det.output("sign").output("log_abs_determinant"),
      [](InferContext& c) {
        infer_det(c);
        c.set_output(1, c.dtype(0), c.output(0).shape);
      },
      &grad_log_determinant);
  log_det.split(&split_batch);
}

}  // namespace berth
