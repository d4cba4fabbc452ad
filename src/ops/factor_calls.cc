// Functions made of factorisations: pseudo-inverse, rank, least squares, and
// what an LU factorisation is used for.

#include <limits>

#include "berth/ops/array.h"
#include "berth/ops/factor.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "ops/array_util.h"
#include "ops/matrices.h"

namespace berth::linalg {

namespace {

// max(m, n) epsilon of x [..., m, n].
double rounding_of(const Tensor& x) {
  const Shape& s = x.shape();
  const auto side = static_cast<double>(
      std::max(s[s.rank() - 1], s[std::max(0, s.rank() - 2)]));
  return side * (real_type_of(x.dtype()) == float64
                     ? std::numeric_limits<double>::epsilon()
                     : double{std::numeric_limits<float>::epsilon()});
}

// The largest of each row of singular values, kept as an axis of length 1.
Tensor largest_of(const Tensor& s) {
  return math::reduce_max(
      s, {.axis = std::vector<int64_t>{-1}, .keepdims = true}, {});
}

// Rows of x [..., n, k] in the order of places [..., n].
Tensor rows_at(const Tensor& x, const Tensor& places) {
  return gather(x, places,
                {.axis = x.rank() - 2, .batch_dims = places.rank() - 1}, {});
}

}  // namespace

Tensor lu_solve(const Tensor& lower_upper, const Tensor& perm,
                const Tensor& rhs, Site site) {
  set_site(site);
  const Tensor upper = band_part(lower_upper, 0, -1, site);
  const Tensor lower =
      lower_upper - upper + band_part(ones_like(upper, site), 0, 0, site);
  return triangular_solve(upper,
                          triangular_solve(lower, rows_at(rhs, perm), {}, site),
                          {.lower = false}, site);
}

Tensor lu_matrix_inverse(const Tensor& lower_upper, const Tensor& perm,
                         Site site) {
  set_site(site);
  const Tensor one = band_part(ones_like(lower_upper, site), 0, 0, site);
  return lu_solve(lower_upper, perm, one, site);
}

Tensor lu_reconstruct(const Tensor& lower_upper, const Tensor& perm,
                      Site site) {
  set_site(site);
  const Tensor upper = band_part(lower_upper, 0, -1, site);
  const Tensor lower =
      lower_upper - upper + band_part(ones_like(upper, site), 0, 0, site);
  return rows_at(matmul(lower, upper, {}, site), argsort(perm, {}, site));
}

Tensor logdet(const Tensor& x, Site site) {
  const Tensor diagonal = diag_part(cholesky(x, site), 0, site);
  return math::reduce_sum(math::log(math::real(diagonal, site), site),
                          {.axis = std::vector<int64_t>{-1}}, site) *
         2;
}

Tensor pinv(const Tensor& x, std::optional<double> rcond, Site site) {
  const Svd f = svd(x, {}, site);
  const Tensor kept = math::greater(
      f.s, largest_of(f.s) * rcond.value_or(10 * rounding_of(x)), site);
  const Tensor one = scalar_like(f.s, 1), none = scalar_like(f.s, 0);
  const Tensor inverse =
      where(kept, one / where(kept, f.s, one, site), none, site);
  const Tensor by = math::cast(expand_dims(inverse, -2, site), x.dtype(), site);
  return nt(f.v * by, f.u);
}

Tensor matrix_rank(const Tensor& x, std::optional<double> tol, Site site) {
  const Tensor s = svd(x, {.compute_uv = false}, site).s;
  const Tensor least =
      tol ? scalar_like(s, *tol) : largest_of(s) * rounding_of(x);
  return math::reduce_sum(math::cast(math::greater(s, least, site), int32, {}),
                          {.axis = std::vector<int64_t>{-1}}, site);
}

Tensor lstsq(const Tensor& matrix, const Tensor& rhs,
             const LeastSquaresOptions& o, Site site) {
  set_site(site);
  if (!o.fast) return matmul(pinv(matrix, {}, site), rhs, {}, site);
  const Shape& s = matrix.shape();
  const bool tall = s.rank() < 2 || s[s.rank() - 2] >= s[s.rank() - 1];
  Tensor square = tall ? tn(matrix, matrix) : nt(matrix, matrix);
  if (o.l2_regularizer != 0) {
    const Tensor one = band_part(ones_like(square, site), 0, 0, site);
    square = square + one * o.l2_regularizer;
  }
  const Tensor root = cholesky(square, site);
  if (tall) return cholesky_solve(root, tn(matrix, rhs), site);
  return tn(matrix, cholesky_solve(root, rhs, site));
}

Tensor adjoint(const Tensor& x, Site site) {
  return matrix_transpose(math::conj(x, site), site);
}

}  // namespace berth::linalg
