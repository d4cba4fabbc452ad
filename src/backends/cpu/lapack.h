// LAPACK over the matrices of a batch, one at a time; the executor splits the
// batch. Thread-safe.

#ifndef BERTH_BACKENDS_CPU_LAPACK_H_
#define BERTH_BACKENDS_CPU_LAPACK_H_

#include <algorithm>
#include <complex>
// LAPACKE's own complex types are C's.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include "backends/reference/loops.h"
#include "backends/reference/scratch.h"
#include "op/kernel.h"

namespace berth::cpu {

// LAPACK's routines of one element type.
template <class T>
struct Lapack;
#define BERTH_LAPACK(type, p, orthogonal, symmetric)             \
  template <>                                                    \
  struct Lapack<type> {                                          \
    static constexpr auto potrf = &LAPACKE_##p##potrf;           \
    static constexpr auto gesv = &LAPACKE_##p##gesv;             \
    static constexpr auto trtrs = &LAPACKE_##p##trtrs;           \
    static constexpr auto getrf = &LAPACKE_##p##getrf;           \
    static constexpr auto getri = &LAPACKE_##p##getri;           \
    static constexpr auto gesdd = &LAPACKE_##p##gesdd;           \
    static constexpr auto geqrf = &LAPACKE_##p##geqrf;           \
    static constexpr auto orgqr = &LAPACKE_##p##orthogonal##gqr; \
    static constexpr auto syevd = &LAPACKE_##p##symmetric##evd;  \
    static constexpr auto geev = &LAPACKE_##p##geev;             \
  }
BERTH_LAPACK(float, s, or, sy);
BERTH_LAPACK(double, d, or, sy);
BERTH_LAPACK(std::complex<float>, c, un, he);
BERTH_LAPACK(std::complex<double>, z, un, he);
#undef BERTH_LAPACK

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

template <class T>
using Real = decltype(std::abs(T{}));

// The types of the ops here.
inline constexpr DTypeSet kLapackTypes = kFloatingTypes | kComplexTypes;

// Calls fn(T{}) with the C++ type of `dtype`, one of these.
template <class Fn>
void with_lapack(DType dtype, Fn&& fn) {
  if (dtype == complex64) return fn(std::complex<float>{});
  reference::with_inexact(dtype, fn);
}

// Conjugates n elements at x.
template <class T>
void conjugate(T* x, int64_t n) {
  if constexpr (is_complex_type<T>) {
    std::transform(x, x + n, x, [](T v) { return std::conj(v); });
  }
}

// Calls fn(T{}, b, n) for each matrix [n, n] of the batch that is not empty.
template <class Fn>
void for_each_matrix(const KernelCall& c, Fn&& fn) {
  set_up_lapack();
  const MatrixBatch s = batch_of(c.in[0]);
  if (s.rows == 0) return;
  with_lapack(c.in[0].dtype, [&](auto type) {
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

// Matrix `b` of input 0, transposed and conjugated where the op's "adjoint" is
// set.
template <class T>
reference::Scratch<T> operand_of(const KernelCall& c, int64_t b) {
  const bool adjoint = c.attr<bool>("adjoint");
  auto m = copy_of<T>(c.in[0], b, adjoint);
  if (adjoint) conjugate(m.data(), static_cast<int64_t>(m.size()));
  return m;
}

// Calls fn(T{}, b, pivots) for each matrix of the batch: numbers whose product
// is its determinant; none of an empty one.
template <class Fn>
void for_each_elimination(const KernelCall& c, Fn&& fn) {
  set_up_lapack();
  const MatrixBatch s = batch_of(c.in[0]);
  const lapack_int n = s.rows;
  with_lapack(c.in[0].dtype, [&]<class T>(T type) {
    for (int64_t b = 0; b < s.count; ++b) {
      auto a = copy_of<T>(c.in[0], b);
      reference::Scratch<lapack_int> rows(static_cast<size_t>(n));
      const lapack_int info = n == 0
                                  ? 0
                                  : Lapack<T>::getrf(LAPACK_ROW_MAJOR, n, n,
                                                     a.data(), n, rows.data());
      if (info < 0) check_lapack(c, b, info, "");
      reference::Scratch<T> pivots(rows.size());
      for (lapack_int i = 0; i < n; ++i) {
        const T pivot = a[static_cast<size_t>(i) * (n + 1)];
        pivots[i] = rows[i] == i + 1 ? pivot : -pivot;
      }
      fn(type, b, pivots);
    }
  });
}

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_LAPACK_H_
