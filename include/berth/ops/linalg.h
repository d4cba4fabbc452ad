// linalg: matrices in the last two axes of a tensor (tf.linalg.*).
//
// The preceding axes are a batch. The solvers take float32, float64, complex64
// or complex128, whose transposes are conjugated; they run on host devices
// (LAPACK) and throw errors::InvalidArgument, naming the matrix of the batch,
// for one that is singular or not positive definite. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_LINALG_H_
#define BERTH_OPS_LINALG_H_

#include <cstdint>
#include <utility>

#include "berth/tensor.h"

namespace berth::linalg {

// [..., n] -> [..., n + |k|, n + |k|] with x on diagonal k (above the main one
// if positive) and zeros elsewhere.
Tensor diag(const Tensor& x, int64_t k = 0, Site site = Site::here());
// Diagonal k of x [..., m, n], whose m and n must be known.
Tensor diag_part(const Tensor& x, int64_t k = 0, Site site = Site::here());
// x [..., m, n] with zeros except for num_lower diagonals below the main one
// and num_upper above it; a negative number keeps all.
Tensor band_part(const Tensor& x, int64_t num_lower, int64_t num_upper,
                 Site site = Site::here());
// Sum of the diagonal: [..., m, n] -> [...].
Tensor trace(const Tensor& x, Site site = Site::here());
// [..., m, n] -> [..., n, m].
Tensor matrix_transpose(const Tensor& x, Site site = Site::here());

// The lower triangular L with L L^H = x, from the lower part of x [..., n, n].
// Its gradient is symmetric.
Tensor cholesky(const Tensor& x, Site site = Site::here());

struct SolveOptions {
  bool adjoint = false;  // solve with the transposed matrix
};
// X with matrix X = rhs: [..., n, n], [..., n, k] -> [..., n, k].
Tensor solve(const Tensor& matrix, const Tensor& rhs,
             const SolveOptions& options = {}, Site site = Site::here());

struct TriangularSolveOptions {
  bool lower = true;  // the triangle of the matrix to read
  bool adjoint = false;
};
Tensor triangular_solve(const Tensor& matrix, const Tensor& rhs,
                        const TriangularSolveOptions& options = {},
                        Site site = Site::here());
// X with L L^H X = rhs, for the result L of cholesky().
Tensor cholesky_solve(const Tensor& chol, const Tensor& rhs,
                      Site site = Site::here());
Tensor inv(const Tensor& x, const SolveOptions& options = {},
           Site site = Site::here());
// Determinant: [..., n, n] -> [...]. Its gradient needs an inverse.
Tensor det(const Tensor& x, Site site = Site::here());

}  // namespace berth::linalg

#endif  // BERTH_OPS_LINALG_H_
