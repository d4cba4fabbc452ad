// Factorisations and solvers by LAPACK, one matrix of the batch at a time; the
// executor splits the batch.

#include <dlfcn.h>
#include <fmt/format.h>
#include <lapacke.h>

#include "backends/cpu/kernels.h"
#include "backends/reference/loops.h"
#include "backends/reference/scratch.h"
#include "berth/errors.h"

namespace berth::cpu {

namespace {

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
};
template <>
struct Lapack<double> {
  static constexpr auto potrf = &LAPACKE_dpotrf;
  static constexpr auto gesv = &LAPACKE_dgesv;
  static constexpr auto trtrs = &LAPACKE_dtrtrs;
  static constexpr auto getrf = &LAPACKE_dgetrf;
  static constexpr auto getri = &LAPACKE_dgetri;
};

// Another BLAS may be loaded instead of the reference one; its threads would
// compete with our workers. NaN passes through, as everywhere.
void set_up() {
  static const bool once = [] {
    using Set = void (*)(int);
    for (const char* name :
         {"openblas_set_num_threads", "bli_thread_set_num_threads"}) {
      if (void* set = dlsym(RTLD_DEFAULT, name)) {
        reinterpret_cast<Set>(set)(1);
      }
    }
    LAPACKE_set_nancheck(0);
    return true;
  }();
  (void)once;
}

[[noreturn]] void fail(const KernelCall& c, int64_t b,
                       const std::string& what) {
  throw errors::InvalidArgument(
      fmt::format("{}: matrix {} of the batch is {}", c.op->name(), b, what));
}

struct Batch {
  int64_t count;
  lapack_int rows, columns;
  int64_t size() const { return int64_t{rows} * columns; }
};
Batch batch_of(const View& v) {
  const int rank = v.shape->rank();
  return {reference::product_of(*v.shape, 0, rank - 2),
          static_cast<lapack_int>(v.dim(rank - 2)),
          static_cast<lapack_int>(v.dim(rank - 1))};
}

// A negative result means that LAPACK could not work.
void check(const KernelCall& c, int64_t b, lapack_int info,
           const char* defect) {
  if (info == 0) return;
  if (info < 0) {
    throw errors::ResourceExhausted(fmt::format(
        "{}: LAPACK found no memory (info {})", c.op->name(), info));
  }
  fail(c, b, fmt::format("{} (row {})", defect, info - 1));
}

// Calls fn(T{}, b, n) for each matrix [n, n] of the batch that is not empty.
template <class Fn>
void for_each_matrix(const KernelCall& c, Fn&& fn) {
  set_up();
  const Batch s = batch_of(c.in[0]);
  if (s.rows == 0) return;
  reference::with_floating(c.in[0].dtype, [&](auto type) {
    for (int64_t b = 0; b < s.count; ++b) fn(type, b, s.rows);
  });
}

template <class T>
reference::Scratch<T> copy_of(const View& v, int64_t b,
                              bool transposed = false) {
  const Batch s = batch_of(v);
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

void cholesky(const KernelCall& c) {
  for_each_matrix(c, [&](auto type, int64_t b, lapack_int n) {
    using T = decltype(type);
    const int64_t size = int64_t{n} * n;
    T* y = c.out[0].as<T>() + b * size;
    std::copy_n(c.in[0].as<T>() + b * size, size, y);
    for (int64_t i = 0; i < n; ++i) {
      std::fill(y + i * n + i + 1, y + (i + 1) * n, T{});
    }
    check(c, b, Lapack<T>::potrf(LAPACK_ROW_MAJOR, 'L', n, y, n),
          "not positive definite");
  });
}

void solve(const KernelCall& c) {
  const Batch right = batch_of(c.in[1]);
  for_each_matrix(c, [&](auto type, int64_t b, lapack_int n) {
    using T = decltype(type);
    T* y = c.out[0].as<T>() + b * right.size();
    std::copy_n(c.in[1].as<T>() + b * right.size(), right.size(), y);
    if (right.columns == 0) return;
    auto a = copy_of<T>(c.in[0], b, c.attr<bool>("adjoint"));
    reference::Scratch<lapack_int> pivots(static_cast<size_t>(n));
    check(c, b,
          Lapack<T>::gesv(LAPACK_ROW_MAJOR, n, right.columns, a.data(), n,
                          pivots.data(), y, right.columns),
          "singular");
  });
}

void triangular_solve(const KernelCall& c) {
  const Batch right = batch_of(c.in[1]);
  const char triangle = c.attr<bool>("lower") ? 'L' : 'U';
  const char form = c.attr<bool>("adjoint") ? 'T' : 'N';
  for_each_matrix(c, [&](auto type, int64_t b, lapack_int n) {
    using T = decltype(type);
    T* y = c.out[0].as<T>() + b * right.size();
    std::copy_n(c.in[1].as<T>() + b * right.size(), right.size(), y);
    if (right.columns == 0) return;
    check(c, b,
          Lapack<T>::trtrs(LAPACK_ROW_MAJOR, triangle, form, 'N', n,
                           right.columns, c.in[0].as<T>() + b * int64_t{n} * n,
                           n, y, right.columns),
          "singular");
  });
}

void inverse(const KernelCall& c) {
  for_each_matrix(c, [&](auto type, int64_t b, lapack_int n) {
    using T = decltype(type);
    auto a = copy_of<T>(c.in[0], b, c.attr<bool>("adjoint"));
    reference::Scratch<lapack_int> pivots(static_cast<size_t>(n));
    check(c, b,
          Lapack<T>::getrf(LAPACK_ROW_MAJOR, n, n, a.data(), n, pivots.data()),
          "singular");
    check(c, b,
          Lapack<T>::getri(LAPACK_ROW_MAJOR, n, a.data(), n, pivots.data()),
          "singular");
    std::copy(a.begin(), a.end(), c.out[0].as<T>() + b * int64_t{n} * n);
  });
}

void determinant(const KernelCall& c) {
  const Batch s = batch_of(c.in[0]);
  if (s.rows == 0) {  // the determinant of an empty matrix is 1
    reference::with_floating(c.in[0].dtype, [&](auto type) {
      using T = decltype(type);
      std::fill_n(c.out[0].as<T>(), s.count, T{1});
    });
  }
  for_each_matrix(c, [&](auto type, int64_t b, lapack_int n) {
    using T = decltype(type);
    auto a = copy_of<T>(c.in[0], b);
    reference::Scratch<lapack_int> pivots(static_cast<size_t>(n));
    const lapack_int info =
        Lapack<T>::getrf(LAPACK_ROW_MAJOR, n, n, a.data(), n, pivots.data());
    if (info < 0) check(c, b, info, "");
    T det = 1;
    for (int64_t i = 0; i < n; ++i) {
      const T on_diagonal = a[static_cast<size_t>(i * n + i)];
      det *=
          pivots[static_cast<size_t>(i)] == i + 1 ? on_diagonal : -on_diagonal;
    }
    c.out[0].as<T>()[b] = det;
  });
}

}  // namespace

void add_linalg(KernelTable& t) {
  t.direct("Cholesky", kFloatingTypes, &cholesky, "lapack");
  t.direct("MatrixSolve", kFloatingTypes, &solve, "lapack");
  t.direct("MatrixTriangularSolve", kFloatingTypes, &triangular_solve,
           "lapack");
  t.direct("MatrixInverse", kFloatingTypes, &inverse, "lapack");
  t.direct("MatrixDeterminant", kFloatingTypes, &determinant, "lapack");
}

}  // namespace berth::cpu
