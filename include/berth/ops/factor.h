// factor: factorisations of matrices and what is made of them (tf.linalg.*).
//
// Matrices are the last two axes of a tensor of float32, float64, complex64 or
// complex128, the axes before them a batch; "transposed" means conjugated, too.
// They run on host devices (LAPACK) and throw errors::InvalidArgument for a
// shape that does not fit, naming the matrix of the batch where the numbers are
// at fault. Vectors have length 1, and of the signs they may have that which
// makes the first of their largest elements (90 per cent of the largest
// modulus) positive. Gradients are those of TensorFlow: of vectors they exist
// where values differ. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_FACTOR_H_
#define BERTH_OPS_FACTOR_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "berth/tensor.h"

namespace berth::linalg {

struct SvdOptions {
  bool full_matrices = false;
  bool compute_uv = true;  // else u and v are empty handles
};
struct Svd {
  Tensor s;  // [..., p], p = min(m, n), the largest first; real
  Tensor u;  // [..., m, p]; m in place of p with full_matrices
  Tensor v;  // [..., n, p]; n
};
// x = u diag(s) v^H for x [..., m, n].
Svd svd(const Tensor& x, const SvdOptions& options = {},
        Site site = Site::here());

struct Qr {
  Tensor
      q;  // [..., m, min(m, n)] with orthogonal columns; m with full_matrices
  Tensor r;  // [..., min(m, n), n], upper triangular
};
// x = q r, by Householder reflections.
Qr qr(const Tensor& x, bool full_matrices = false, Site site = Site::here());

struct Eigen {
  Tensor e;  // [..., n], of the dtype of v
  Tensor v;  // [..., n, n]: column i belongs to value i
};
// The values, ascending, and vectors of a Hermitian x [..., n, n], whose lower
// part is read.
Eigen eigh(const Tensor& x, Site site = Site::here());
Tensor eigvalsh(const Tensor& x, Site site = Site::here());
// Those of any x, complex; ascending by real, then by imaginary part. The
// gradient of v holds for functions of it that its phase does not matter to.
Eigen eig(const Tensor& x, Site site = Site::here());
Tensor eigvals(const Tensor& x, Site site = Site::here());

struct Lu {
  Tensor lu;  // [..., n, n]: L below its diagonal of ones, U on and above it
  Tensor p;   // [..., n]: row i of L U is row p[i] of x
};
// With partial pivoting. A singular x has a zero on U's diagonal.
Lu lu(const Tensor& x, DType output_idx_type = int32, Site site = Site::here());
// X with x X = rhs [..., n, k], for the result of lu(x).
Tensor lu_solve(const Tensor& lower_upper, const Tensor& perm,
                const Tensor& rhs, Site site = Site::here());
Tensor lu_matrix_inverse(const Tensor& lower_upper, const Tensor& perm,
                         Site site = Site::here());
// The matrix that was factorised.
Tensor lu_reconstruct(const Tensor& lower_upper, const Tensor& perm,
                      Site site = Site::here());

struct SlogDet {
  Tensor sign;                 // [...]: of modulus 1 or, if singular, 0
  Tensor log_abs_determinant;  // [...]: -infinity if singular
};
SlogDet slogdet(const Tensor& x, Site site = Site::here());
// log det of a Hermitian positive definite x, by cholesky().
Tensor logdet(const Tensor& x, Site site = Site::here());

// The pseudo-inverse [..., n, m] of x [..., m, n]; singular values up to rcond
// times the largest count as 0. Default: 10 max(m, n) epsilon.
Tensor pinv(const Tensor& x, std::optional<double> rcond = std::nullopt,
            Site site = Site::here());
// How many singular values exceed tol, int32 [...]. Default: max(m, n) epsilon
// times the largest.
Tensor matrix_rank(const Tensor& x, std::optional<double> tol = std::nullopt,
                   Site site = Site::here());

struct LeastSquaresOptions {
  double l2_regularizer = 0;
  // By the normal equations, for a full rank and a moderate condition; else by
  // pinv(), without the regularizer.
  bool fast = true;
};
// X [..., n, k] of least |matrix X - rhs|^2 + l2_regularizer |X|^2, and of the
// least norm where there are several.
Tensor lstsq(const Tensor& matrix, const Tensor& rhs,
             const LeastSquaresOptions& options = {}, Site site = Site::here());

// The transposed conjugate: [..., m, n] -> [..., n, m].
Tensor adjoint(const Tensor& x, Site site = Site::here());

}  // namespace berth::linalg

#endif  // BERTH_OPS_FACTOR_H_
