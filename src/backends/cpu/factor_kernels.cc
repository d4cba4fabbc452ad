// Factorisations of matrices by LAPACK. Numbers that are not finite give NaN.

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "backends/cpu/kernels.h"
#include "backends/cpu/lapack.h"
#include "backends/cpu/vectors.h"
#include "backends/reference/indices.h"

namespace berth::cpu {

namespace {

using reference::Scratch;

// Matrix `b` of an output [..., rows, columns].
template <class T>
T* matrix_at(const View& v, int64_t b) {
  return v.as<T>() + b * batch_of(v).size();
}
// Row `b` of an output [..., n].
template <class T>
T* row_at(const View& v, int64_t b) {
  return v.as<T>() + b * v.dim(v.shape->rank() - 1);
}

template <class T>
void set_identity(T* y, int64_t rows, int64_t columns) {
  std::fill_n(y, rows * columns, T{});
  for (int64_t i = 0; i < std::min(rows, columns); ++i)
    y[i * (columns + 1)] = 1;
}

// Fills the outputs, values of type Value and vectors, with NaN where matrix
// `b` is not finite: LAPACK would stop or search for ever.
template <class T, class Value, class Vector>
bool not_finite(const KernelCall& c, int64_t b, bool vectors) {
  const int64_t size = batch_of(c.in[0]).size();
  const T* x = c.in[0].as<T>() + b * size;
  if (std::all_of(x, x + size, [](T v) {
        return std::isfinite(std::real(v)) && std::isfinite(std::imag(v));
      })) {
    return false;
  }
  const auto nan = std::numeric_limits<Real<T>>::quiet_NaN();
  std::fill_n(row_at<Value>(c.out[0], b),
              c.out[0].dim(c.out[0].shape->rank() - 1), Value{nan});
  for (int i = 1; vectors && i < c.num_out; ++i) {
    std::fill_n(matrix_at<Vector>(c.out[i], b), batch_of(c.out[i]).size(),
                Vector{nan});
  }
  return true;
}

// y[i, j] = x[j, i] * signs[j], for y of n rows.
template <class T>
void store_columns(T* y, int64_t n, int64_t columns, const T* x,
                   const Scratch<T>& signs) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      y[i * columns + j] = x[j * n + i] * signs[static_cast<size_t>(j)];
    }
  }
}

// A row-major matrix is its transpose in LAPACK's order, whose right vectors
// are the left ones, and whose left ones are the right ones' conjugates.
template <class T>
void svd_of(const KernelCall& c, int64_t b, lapack_int m, lapack_int n) {
  const bool vectors = c.attr<bool>("compute_uv");
  if (not_finite<T, Real<T>, T>(c, b, vectors)) return;
  auto a = copy_of<T>(c.in[0], b);
  auto* s = row_at<Real<T>>(c.out[0], b);
  if (!vectors) {
    T none{};
    check_lapack(c, b,
                 Lapack<T>::gesdd(LAPACK_COL_MAJOR, 'N', n, m, a.data(), n, s,
                                  &none, 1, &none, 1),
                 "without convergence");
    return;
  }
  const bool full = c.attr<bool>("full_matrices");
  const lapack_int p = std::min(m, n), left = full ? m : p,
                   right = full ? n : p;
  Scratch<T> vt(static_cast<size_t>(n) * right);
  T* u = matrix_at<T>(c.out[1], b);
  check_lapack(c, b,
               Lapack<T>::gesdd(LAPACK_COL_MAJOR, full ? 'A' : 'S', n, m,
                                a.data(), n, s, vt.data(), n, u, left),
               "without convergence");
  conjugate(vt.data(), int64_t{n} * right);
  Scratch<T> signs(static_cast<size_t>(right), T{1});
  for (lapack_int j = 0; j < std::max(left, right); ++j) {
    T* own = j < left ? u + j : nullptr;
    const T sign =
        own ? phase_of(own, m, left) : phase_of(vt.data() + j * n, n, 1);
    for (lapack_int i = 0; own && i < m; ++i) own[i * left] *= sign;
    if (j < p || !own) signs[static_cast<size_t>(j)] = sign;
    if (j >= p && own && j < right) {
      signs[static_cast<size_t>(j)] = phase_of(vt.data() + j * n, n, 1);
    }
  }
  store_columns(matrix_at<T>(c.out[2], b), n, right, vt.data(), signs);
}

void svd(const KernelCall& c) {
  set_up_lapack();
  const MatrixBatch s = batch_of(c.in[0]);
  with_lapack(c.in[0].dtype, [&]<class T>(T) {
    for (int64_t b = 0; b < s.count; ++b) {
      if (s.size() > 0) {
        svd_of<T>(c, b, s.rows, s.columns);
      } else if (c.attr<bool>("full_matrices") && c.attr<bool>("compute_uv")) {
        set_identity(matrix_at<T>(c.out[1], b), s.rows, s.rows);
        set_identity(matrix_at<T>(c.out[2], b), s.columns, s.columns);
      }
    }
  });
}

template <class T>
void qr_of(const KernelCall& c, int64_t b, lapack_int m, lapack_int n) {
  const auto columns = static_cast<lapack_int>(batch_of(c.out[0]).columns);
  const lapack_int p = std::min(m, n);
  auto a = copy_of<T>(c.in[0], b, true);
  a.resize(static_cast<size_t>(m) * std::max(n, columns));
  Scratch<T> tau(static_cast<size_t>(p));
  check_lapack(
      c, b, Lapack<T>::geqrf(LAPACK_COL_MAJOR, m, n, a.data(), m, tau.data()),
      "");
  T* r = matrix_at<T>(c.out[1], b);
  for (int64_t i = 0; i < columns; ++i) {
    for (int64_t j = 0; j < n; ++j) r[i * n + j] = i > j ? T{} : a[j * m + i];
  }
  check_lapack(c, b,
               Lapack<T>::orgqr(LAPACK_COL_MAJOR, m, columns, p, a.data(), m,
                                tau.data()),
               "");
  T* q = matrix_at<T>(c.out[0], b);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < columns; ++j) q[i * columns + j] = a[j * m + i];
  }
}

void qr(const KernelCall& c) {
  set_up_lapack();
  const MatrixBatch s = batch_of(c.in[0]);
  with_lapack(c.in[0].dtype, [&]<class T>(T) {
    for (int64_t b = 0; b < s.count; ++b) {
      if (s.size() > 0) {
        qr_of<T>(c, b, s.rows, s.columns);
      } else {
        set_identity(matrix_at<T>(c.out[0], b), s.rows,
                     batch_of(c.out[0]).columns);
      }
    }
  });
}

void eigh(const KernelCall& c) {
  const bool vectors = c.attr<bool>("compute_v");
  for_each_matrix(c, [&]<class T>(T, int64_t b, lapack_int n) {
    if (not_finite<T, T, T>(c, b, vectors)) return;
    auto a = copy_of<T>(c.in[0], b);
    Scratch<Real<T>> values(static_cast<size_t>(n));
    // The lower part is the upper one of the conjugate in LAPACK's order.
    check_lapack(c, b,
                 Lapack<T>::syevd(LAPACK_COL_MAJOR, vectors ? 'V' : 'N', 'U', n,
                                  a.data(), n, values.data()),
                 "without convergence");
    std::copy(values.begin(), values.end(), row_at<T>(c.out[0], b));
    if (!vectors) return;
    conjugate(a.data(), int64_t{n} * n);
    Scratch<T> signs(static_cast<size_t>(n));
    for (lapack_int j = 0; j < n; ++j) {
      signs[static_cast<size_t>(j)] = phase_of(a.data() + int64_t{j} * n, n, 1);
    }
    store_columns(matrix_at<T>(c.out[1], b), n, n, a.data(), signs);
  });
}

// The values and the vectors, one after the other, of a column-major `a`.
template <class T>
lapack_int eigen_of(lapack_int n, Scratch<T>& a, std::complex<T>* values,
                    std::complex<T>* vectors) {
  const auto size = static_cast<size_t>(n);
  Scratch<T> re(size), im(size), right(size * size);
  T none{};
  const lapack_int info =
      Lapack<T>::geev(LAPACK_COL_MAJOR, 'N', 'V', n, a.data(), n, re.data(),
                      im.data(), &none, 1, right.data(), n);
  for (lapack_int j = 0; j < n; ++j) {
    values[j] = {re[j], im[j]};
    // Conjugates stand side by side, as one real and one imaginary part.
    const T* real = right.data() + int64_t{im[j] < 0 ? j - 1 : j} * n;
    for (lapack_int i = 0; i < n; ++i) {
      vectors[int64_t{j} * n + i] = {real[i], im[j] == 0  ? 0
                                              : im[j] < 0 ? -real[n + i]
                                                          : real[n + i]};
    }
  }
  return info;
}
template <class T>
lapack_int eigen_of(lapack_int n, Scratch<std::complex<T>>& a,
                    std::complex<T>* values, std::complex<T>* vectors) {
  std::complex<T> none{};
  return Lapack<std::complex<T>>::geev(LAPACK_COL_MAJOR, 'N', 'V', n, a.data(),
                                       n, values, &none, 1, vectors, n);
}

template <class T>
void eig_of(const KernelCall& c, int64_t b, lapack_int n) {
  using Z = std::complex<Real<T>>;
  if (not_finite<T, Z, Z>(c, b, true)) return;
  auto a = copy_of<T>(c.in[0], b, true);
  const auto size = static_cast<size_t>(n);
  Scratch<Z> values(size), vectors(size * size);
  check_lapack(c, b, eigen_of(n, a, values.data(), vectors.data()),
               "without convergence");
  Scratch<lapack_int> order(size);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](lapack_int i, lapack_int j) {
    return eigenvalue_before(values[i], values[j]);
  });
  Z *e = row_at<Z>(c.out[0], b), *v = matrix_at<Z>(c.out[1], b);
  for (lapack_int k = 0; k < n; ++k) {
    const Z* one = vectors.data() + int64_t{order[k]} * n;
    e[k] = values[order[k]];
    const Z phase = phase_of(one, n, 1);
    for (lapack_int i = 0; i < n; ++i) v[int64_t{i} * n + k] = one[i] * phase;
  }
}

void eig(const KernelCall& c) {
  for_each_matrix(c, [&](auto type, int64_t b, lapack_int n) {
    eig_of<decltype(type)>(c, b, n);
  });
}

void lu(const KernelCall& c) {
  for_each_matrix(c, [&]<class T>(T, int64_t b, lapack_int n) {
    T* y = matrix_at<T>(c.out[0], b);
    const int64_t size = int64_t{n} * n;
    std::copy_n(c.in[0].as<T>() + b * size, size, y);
    Scratch<lapack_int> pivots(static_cast<size_t>(n)), rows(pivots.size());
    const lapack_int info =
        Lapack<T>::getrf(LAPACK_ROW_MAJOR, n, n, y, n, pivots.data());
    if (info < 0) check_lapack(c, b, info, "");
    std::iota(rows.begin(), rows.end(), 0);
    for (lapack_int i = 0; i < n; ++i) std::swap(rows[i], rows[pivots[i] - 1]);
    for (lapack_int i = 0; i < n; ++i) {
      reference::set_index(c.out[1], b * n + i, rows[i]);
    }
  });
}

template <class T>
T sign_of(T x) {
  if constexpr (is_complex_type<T>) {
    return x == T{} ? x : x / std::abs(x);
  } else {
    return x < 0 ? T{-1} : x > 0 ? T{1} : x;
  }
}

void log_determinant(const KernelCall& c) {
  for_each_elimination(c, [&]<class T>(T, int64_t b, auto& pivots) {
    T sign = 1;
    Real<T> sum = 0;
    for (const T pivot : pivots) {
      sign *= sign_of(pivot);
      sum += std::log(std::abs(pivot));
    }
    c.out[0].as<T>()[b] = sign;
    c.out[1].as<T>()[b] = sum;
  });
}

}  // namespace

void add_factor(KernelTable& t) {
  t.direct("Svd", kLapackTypes, &svd, "lapack");
  t.direct("Qr", kLapackTypes, &qr, "lapack");
  t.direct("SelfAdjointEigV2", kLapackTypes, &eigh, "lapack");
  t.direct("Eig", kLapackTypes, &eig, "lapack");
  t.direct("Lu", kLapackTypes, &lu, "lapack");
  t.direct("LogMatrixDeterminant", kLapackTypes, &log_determinant, "lapack");
}

}  // namespace berth::cpu
