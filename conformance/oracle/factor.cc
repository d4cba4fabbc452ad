// Factorisations of matrices: the oracle of LAPACK's results on the host.

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "backends/cpu/vectors.h"
#include "backends/reference/indices.h"
#include "backends/reference/matrix.h"
#include "conformance/oracle/oracle.h"

namespace berth::conformance {

using namespace reference;  // NOLINT: loops and scratch memory

namespace {

constexpr double kEpsilonF64 = std::numeric_limits<double>::epsilon();
constexpr int kSweeps = 60;

size_t place(int64_t i) { return static_cast<size_t>(i); }

Matrix identity_matrix(int64_t n) {
  Matrix m(place(n * n), 0.0);
  for (int64_t i = 0; i < n; ++i) m[place(i * (n + 1))] = 1;
  return m;
}

// Turns two columns of m by the angle whose cosine and sine these are.
void turn_columns(Matrix* m, int64_t columns, int64_t p, int64_t q, double c,
                  double s) {
  for (size_t row = 0; row < m->size(); row += place(columns)) {
    double &x = (*m)[row + place(p)], &y = (*m)[row + place(q)];
    const double a = x, b = y;
    x = c * a - s * b;
    y = s * a + c * b;
  }
}

struct Turn {
  double c, s;
};
// Makes [[a, off], [off, b]] diagonal.
Turn jacobi_turn(double a, double b, double off) {
  const double theta = (b - a) / (2 * off);
  const double t =
      (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(theta, 1));
  const double c = 1 / std::hypot(t, 1);
  return {c, t * c};
}

double dot_columns(const Matrix& m, int64_t columns, int64_t p, int64_t q) {
  double sum = 0;
  for (size_t row = 0; row < m.size(); row += place(columns)) {
    sum += m[row + place(p)] * m[row + place(q)];
  }
  return sum;
}

// The numbers from 0 on in the order of `before`.
template <class Before>
Scratch<int64_t> ordered(int64_t n, Before&& before) {
  Scratch<int64_t> order(place(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

// The columns of m [n, k] in this order, with their signs.
Matrix picked_columns(const Matrix& m, const Scratch<int64_t>& order) {
  const auto k = static_cast<int64_t>(order.size());
  Matrix out(m.size());
  for (int64_t j = 0; j < k; ++j) {
    const int64_t n = static_cast<int64_t>(m.size()) / k;
    const double sign = cpu::phase_of(m.data() + order[place(j)], n, k);
    for (int64_t i = 0; i < n; ++i) {
      out[place(i * k + j)] = sign * m[place(i * k + order[place(j)])];
    }
  }
  return out;
}

// Jacobi's rotations of both sides.
template <class T>
void eigh_of(const KernelCall& c, int64_t b) {
  const int64_t n = batch_of(c.in[0]).rows;
  Matrix a = load<T>(c.in[0], b), v = identity_matrix(n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) a[place(i * n + j)] = a[place(j * n + i)];
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const double off = a[place(p * n + q)];
        if (off == 0) continue;
        const Turn t =
            jacobi_turn(a[place(p * n + p)], a[place(q * n + q)], off);
        turn_columns(&a, n, p, q, t.c, t.s);
        for (int64_t j = 0; j < n; ++j) {  // the rows
          double &x = a[place(p * n + j)], &y = a[place(q * n + j)];
          const double before = x;
          x = t.c * x - t.s * y;
          y = t.s * before + t.c * y;
        }
        turn_columns(&v, n, p, q, t.c, t.s);
      }
    }
  }
  const auto order = ordered(n, [&](int64_t i, int64_t j) {
    return a[place(i * (n + 1))] < a[place(j * (n + 1))];
  });
  for (int64_t i = 0; i < n; ++i) {
    c.out[0].as<T>()[b * n + i] =
        static_cast<T>(a[place(order[place(i)] * (n + 1))]);
  }
  if (c.attr<bool>("compute_v"))
    store<T>(c.out[1], b, picked_columns(v, order));
}

// Completes the first k of the n columns of q [m, n] to orthonormal ones.
void complete_columns(Matrix* q, int64_t m, int64_t n, int64_t k) {
  for (int64_t unit = 0; k < n && unit < m; ++unit) {
    for (int64_t i = 0; i < m; ++i) (*q)[place(i * n + k)] = i == unit;
    for (int twice = 0; twice < 2; ++twice) {
      for (int64_t j = 0; j < k; ++j) {
        const double along = dot_columns(*q, n, j, k);
        for (int64_t i = 0; i < m; ++i) {
          (*q)[place(i * n + k)] -= along * (*q)[place(i * n + j)];
        }
      }
    }
    const double length = std::sqrt(dot_columns(*q, n, k, k));
    if (length < 1e-3) continue;
    for (int64_t i = 0; i < m; ++i) (*q)[place(i * n + k)] /= length;
    ++k;
  }
}

// Jacobi's rotations of the columns of x [m, n], m >= n: x v has orthogonal
// ones, whose lengths are the singular values.
template <class T>
void svd_of(const KernelCall& c, int64_t b) {
  const Matrices s = batch_of(c.in[0]);
  const bool wide = s.rows < s.columns;
  const int64_t m = std::max(s.rows, s.columns),
                n = std::min(s.rows, s.columns);
  Matrix x = load<T>(c.in[0], b, wide), v = identity_matrix(n);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const double off = dot_columns(x, n, p, q);
        const double pp = dot_columns(x, n, p, p), qq = dot_columns(x, n, q, q);
        if (std::abs(off) <= kEpsilonF64 * std::sqrt(pp * qq)) continue;
        const Turn t = jacobi_turn(pp, qq, off);
        turn_columns(&x, n, p, q, t.c, t.s);
        turn_columns(&v, n, p, q, t.c, t.s);
      }
    }
  }
  Matrix lengths(place(n));
  for (int64_t j = 0; j < n; ++j) {
    lengths[place(j)] = std::sqrt(dot_columns(x, n, j, j));
  }
  const auto order = ordered(n, [&](int64_t i, int64_t j) {
    return lengths[place(i)] > lengths[place(j)];
  });
  T* values = c.out[0].as<T>() + b * n;
  for (int64_t j = 0; j < n; ++j) {
    values[j] = static_cast<T>(lengths[place(order[place(j)])]);
  }
  if (!c.attr<bool>("compute_uv")) return;
  const int64_t columns = c.attr<bool>("full_matrices") ? m : n;
  Matrix u(place(m * columns), 0.0), right(place(n * n));
  int64_t regular = 0;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[place(j)];
    const double length = lengths[place(from)];
    regular += length > 0;
    for (int64_t i = 0; i < m && length > 0; ++i) {
      u[place(i * columns + j)] = x[place(i * n + from)] / length;
    }
    for (int64_t i = 0; i < n; ++i) {
      right[place(i * n + j)] = v[place(i * n + from)];
    }
  }
  complete_columns(&u, m, columns, regular);
  // The left vector of a pair tells its sign.
  for (int64_t j = 0; j < columns; ++j) {
    const bool pair = j < n;
    const double sign = pair && wide ? cpu::phase_of(right.data() + j, n, n)
                                     : cpu::phase_of(u.data() + j, m, columns);
    for (int64_t i = 0; i < m; ++i) u[place(i * columns + j)] *= sign;
    for (int64_t i = 0; pair && i < n; ++i) right[place(i * n + j)] *= sign;
  }
  store<T>(c.out[wide ? 2 : 1], b, u);
  store<T>(c.out[wide ? 1 : 2], b, right);
}

// Householder's reflections with LAPACK's signs.
template <class T>
void qr_of(const KernelCall& c, int64_t b) {
  const Matrices s = batch_of(c.in[0]);
  const int64_t m = s.rows, n = s.columns;
  const int64_t columns = batch_of(c.out[0]).columns;
  Matrix r = load<T>(c.in[0], b), q = identity_matrix(m), v(place(m));
  // x [m, width] = x - 2 w (w^T x), or of the columns of x [m, m].
  const auto reflect = [&](Matrix* x, int64_t width, bool right, double scale) {
    for (int64_t j = 0; j < (right ? m : width); ++j) {
      const auto at = [&](int64_t i) -> double& {
        return (*x)[place(right ? j * m + i : i * width + j)];
      };
      double along = 0;
      for (int64_t i = 0; i < m; ++i) along += v[place(i)] * at(i);
      for (int64_t i = 0; i < m; ++i) at(i) -= scale * along * v[place(i)];
    }
  };
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    double below = 0;
    for (int64_t i = k + 1; i < m; ++i) {
      below += r[place(i * n + k)] * r[place(i * n + k)];
    }
    if (below == 0) continue;
    const double head = r[place(k * n + k)];
    const double length = std::copysign(std::sqrt(head * head + below), head);
    for (int64_t i = 0; i < m; ++i) {
      v[place(i)] = i < k ? 0 : r[place(i * n + k)] + (i == k ? length : 0);
    }
    const double scale = 1 / (length * v[place(k)]);
    reflect(&r, n, false, scale);
    reflect(&q, m, true, scale);
  }
  Matrix left(place(m * columns)), upper(place(columns * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      left[place(i * columns + j)] = q[place(i * m + j)];
    }
  }
  for (int64_t i = 0; i < columns; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      upper[place(i * n + j)] = i > j ? 0 : r[place(i * n + j)];
    }
  }
  store<T>(c.out[0], b, left);
  store<T>(c.out[1], b, upper);
}

// Makes a [n, n] its L and U; the rows' old places; -1 if these are odd.
double factor_lu(Matrix* a, Scratch<int64_t>* rows, int64_t n) {
  double sign = 1;
  rows->resize(place(n));
  std::iota(rows->begin(), rows->end(), 0);
  for (int64_t p = 0; p < n; ++p) {
    int64_t best = p;
    for (int64_t i = p + 1; i < n; ++i) {
      if (std::abs((*a)[place(i * n + p)]) >
          std::abs((*a)[place(best * n + p)])) {
        best = i;
      }
    }
    if (best != p) {
      sign = -sign;
      std::swap((*rows)[place(p)], (*rows)[place(best)]);
      std::swap_ranges(a->begin() + p * n, a->begin() + (p + 1) * n,
                       a->begin() + best * n);
    }
    const double pivot = (*a)[place(p * n + p)];
    for (int64_t i = p + 1; i < n && pivot != 0; ++i) {
      const double factor = (*a)[place(i * n + p)] /= pivot;
      for (int64_t j = p + 1; j < n; ++j) {
        (*a)[place(i * n + j)] -= factor * (*a)[place(p * n + j)];
      }
    }
  }
  return sign;
}

template <class T>
void lu_of(const KernelCall& c, int64_t b) {
  const int64_t n = batch_of(c.in[0]).rows;
  Matrix a = load<T>(c.in[0], b);
  Scratch<int64_t> rows;
  factor_lu(&a, &rows, n);
  store<T>(c.out[0], b, a);
  for (int64_t i = 0; i < n; ++i) {
    set_index(c.out[1], b * n + i, rows[place(i)]);
  }
}

template <class T>
void log_determinant_of(const KernelCall& c, int64_t b) {
  const int64_t n = batch_of(c.in[0]).rows;
  Matrix a = load<T>(c.in[0], b);
  Scratch<int64_t> rows;
  double sign = factor_lu(&a, &rows, n), sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double pivot = a[place(i * (n + 1))];
    sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
    sum += std::log(std::abs(pivot));
  }
  c.out[0].as<T>()[b] = static_cast<T>(sign);
  c.out[1].as<T>()[b] = static_cast<T>(sum);
}

using Complex = std::complex<double>;
using ComplexMatrix = Scratch<Complex>;

// One step of the QR algorithm on the leading [k, k] of a [n, n], shifted by
// the eigenvalue of its last corner that is nearer to the last element.
void qr_step(ComplexMatrix* a, int64_t n, int64_t k) {
  const auto at = [&](int64_t i, int64_t j) -> Complex& {
    return (*a)[place(i * n + j)];
  };
  const Complex p = at(k - 2, k - 2), s = at(k - 1, k - 1),
                half = (p - s) / 2.0;
  const Complex root =
      std::sqrt(half * half + at(k - 2, k - 1) * at(k - 1, k - 2));
  const Complex shift =
      s + half + (std::real(std::conj(half) * root) > 0 ? -root : root);
  ComplexMatrix q(place(k * k)), r(place(k * k)), next(place(k * k));
  for (int64_t j = 0; j < k; ++j) {  // Gram and Schmidt
    for (int64_t i = 0; i < k; ++i) {
      q[place(i * k + j)] = at(i, j) - (i == j ? shift : 0.0);
    }
    for (int64_t l = 0; l <= j; ++l) {
      Complex along = 0;
      for (int64_t i = 0; i < k; ++i) {
        along += std::conj(q[place(i * k + l)]) * q[place(i * k + j)];
      }
      if (l == j) along = std::sqrt(along);
      r[place(l * k + j)] = along;
      for (int64_t i = 0; i < k; ++i) {
        if (l < j) q[place(i * k + j)] -= along * q[place(i * k + l)];
        if (l == j && along != 0.0) q[place(i * k + j)] /= along;
      }
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      Complex sum = i == j ? shift : 0.0;
      for (int64_t l = i; l < k; ++l)
        sum += r[place(i * k + l)] * q[place(l * k + j)];
      next[place(i * k + j)] = sum;
    }
  }
  for (int64_t i = 0; i < k * k; ++i) at(i / k, i % k) = next[place(i)];
}

// The vector of an eigenvalue, by two steps of inverse iteration.
ComplexMatrix vector_of(const Matrix& a, int64_t n, Complex value) {
  ComplexMatrix x(place(n), 1.0);
  for (int step = 0; step < 3; ++step) {
    ComplexMatrix m(a.begin(), a.end());
    for (int64_t i = 0; i < n; ++i)
      m[place(i * (n + 1))] -= value * (1 + 1e-10) + 1e-12;
    for (int64_t p = 0; p < n; ++p) {  // Gauss and Jordan
      int64_t best = p;
      for (int64_t i = p + 1; i < n; ++i) {
        if (std::abs(m[place(i * n + p)]) > std::abs(m[place(best * n + p)]))
          best = i;
      }
      std::swap_ranges(m.begin() + p * n, m.begin() + (p + 1) * n,
                       m.begin() + best * n);
      std::swap(x[place(p)], x[place(best)]);
      const Complex pivot =
          m[place(p * n + p)] == 0.0 ? kEpsilonF64 : m[place(p * n + p)];
      for (int64_t i = 0; i < n; ++i) {
        if (i == p) continue;
        const Complex factor = m[place(i * n + p)] / pivot;
        for (int64_t j = p; j < n; ++j)
          m[place(i * n + j)] -= factor * m[place(p * n + j)];
        x[place(i)] -= factor * x[place(p)];
      }
      m[place(p * n + p)] = pivot;
    }
    double square = 0;
    for (int64_t i = 0; i < n; ++i)
      square += std::norm(x[place(i)] /= m[place(i * (n + 1))]);
    for (Complex& v : x) v /= std::sqrt(square);
  }
  const Complex phase = cpu::phase_of(x.data(), n, 1);
  for (Complex& v : x) v *= phase;
  return x;
}

template <class T>
void eig_of(const KernelCall& c, int64_t b) {
  const int64_t n = batch_of(c.in[0]).rows;
  const Matrix a = load<T>(c.in[0], b);
  ComplexMatrix work(a.begin(), a.end()), values(place(n));
  double largest = 0;
  for (const double v : a) largest = std::max(largest, std::abs(v));
  for (int64_t k = n; k > 0; --k) {
    double beside = 1;
    for (int step = 0; k > 1 && step < 1000 && beside > kEpsilonF64 * largest;
         ++step) {
      qr_step(&work, n, k);
      beside = 0;
      for (int64_t j = 0; j + 1 < k; ++j)
        beside += std::abs(work[place((k - 1) * n + j)]);
    }
    values[place(k - 1)] = work[place((k - 1) * (n + 1))];
  }
  std::stable_sort(values.begin(), values.end(), &cpu::eigenvalue_before);
  using Z = std::complex<T>;
  for (int64_t j = 0; j < n; ++j) {
    c.out[0].as<Z>()[b * n + j] = Z(values[place(j)]);
    const ComplexMatrix v = vector_of(a, n, values[place(j)]);
    for (int64_t i = 0; i < n; ++i) {
      c.out[1].as<Z>()[(b * n + i) * n + j] = Z(v[place(i)]);
    }
  }
}

}  // namespace

void add_factor(KernelTable& t) {
  const auto add = [&](const char* op, DirectKernel kernel) {
    t.direct(op, kFloatingTypes, kernel, "oracle");
  };
  add("Svd", [](const KernelCall& c) {
    for_each_matrix(
        c, [&](auto type, int64_t b) { svd_of<decltype(type)>(c, b); });
  });
  add("Qr", [](const KernelCall& c) {
    for_each_matrix(c,
                    [&](auto type, int64_t b) { qr_of<decltype(type)>(c, b); });
  });
  add("SelfAdjointEigV2", [](const KernelCall& c) {
    for_each_matrix(
        c, [&](auto type, int64_t b) { eigh_of<decltype(type)>(c, b); });
  });
  add("Eig", [](const KernelCall& c) {
    for_each_matrix(
        c, [&](auto type, int64_t b) { eig_of<decltype(type)>(c, b); });
  });
  add("Lu", [](const KernelCall& c) {
    for_each_matrix(c,
                    [&](auto type, int64_t b) { lu_of<decltype(type)>(c, b); });
  });
  add("LogMatrixDeterminant", [](const KernelCall& c) {
    for_each_matrix(c, [&](auto type, int64_t b) {
      log_determinant_of<decltype(type)>(c, b);
    });
  });
}

}  // namespace berth::conformance
