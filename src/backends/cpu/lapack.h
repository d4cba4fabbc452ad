// LAPACK over the matrices of a batch, one at a time; the executor splits the
// batch. Thread-safe.

#ifndef BERTH_BACKENDS_CPU_LAPACK_H_
#define BERTH_BACKENDS_CPU_LAPACK_H_

#include <lapacke.h>

#include "backends/reference/loops.h"
#include "backends/reference/scratch.h"
#include "op/kernel.h"

namespace berth::cpu {

// LAPACK's routines of one element type.
template <class T>
struct Lapack;
template <>
struct Lapack<float> {
  static constexpr auto potrf = &LAPACKE_spotrf;
  static constexpr auto gesv = &LAPACKE_sgesv;
  static constexpr auto trtrs = &LAPACKE_strtrs;
  static constexpr auto getrf = &LAPACKE_sgetrf;
  static constexpr auto getri = &LAPACKE_sgetri;
  static constexpr auto gesdd = &LAPACKE_sgesdd;
  static constexpr auto geqrf = &LAPACKE_sgeqrf;
  static constexpr auto orgqr = &LAPACKE_sorgqr;
  static constexpr auto syevd = &LAPACKE_ssyevd;
  static constexpr auto geev = &LAPACKE_sgeev;
};
template <>
struct Lapack<double> {
  static constexpr auto potrf = &LAPACKE_dpotrf;
  static constexpr auto gesv = &LAPACKE_dgesv;
  static constexpr auto trtrs = &LAPACKE_dtrtrs;
  static constexpr auto getrf = &LAPACKE_dgetrf;
  static constexpr auto getri = &LAPACKE_dgetri;
  static constexpr auto gesdd = &LAPACKE_dgesdd;
  static constexpr auto geqrf = &LAPACKE_dgeqrf;
  static constexpr auto orgqr = &LAPACKE_dorgqr;
  static constexpr auto syevd = &LAPACKE_dsyevd;
  static constexpr auto geev = &LAPACKE_dgeev;
};

// One thread for whichever BLAS is loaded, and no checks for NaN.
void set_up_lapack();

// Throws unless LAPACK's result is 0: negative means that it could not work,
// else matrix `b` of the batch has the defect.
void check_lapack(const KernelCall& c, int64_t b, lapack_int info,
                  const char* defect);

struct MatrixBatch {
  int64_t count;
  lapack_int rows, columns;
  int64_t size() const { return int64_t{rows} * columns; }
};
inline MatrixBatch batch_of(const View& v) {
  const int rank = v.shape->rank();
  return {reference::product_of(*v.shape, 0, rank - 2),
          static_cast<lapack_int>(v.dim(rank - 2)),
          static_cast<lapack_int>(v.dim(rank - 1))};
}

// Calls fn(T{}, b, n) for each matrix [n, n] of the batch that is not empty.
template <class Fn>
void for_each_matrix(const KernelCall& c, Fn&& fn) {
  set_up_lapack();
  const MatrixBatch s = batch_of(c.in[0]);
  if (s.rows == 0) return;
  reference::with_floating(c.in[0].dtype, [&](auto type) {
    for (int64_t b = 0; b < s.count; ++b) fn(type, b, s.rows);
  });
}

template <class T>
reference::Scratch<T> copy_of(const View& v, int64_t b,
                              bool transposed = false) {
  const MatrixBatch s = batch_of(v);
  const T* x = v.as<T>() + b * s.size();
  reference::Scratch<T> m(x, x + s.size());
  if (!transposed) return m;
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; ++j) {
      m[static_cast<size_t>(j * s.rows + i)] = x[i * s.columns + j];
    }
  }
  return m;
}

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_LAPACK_H_
