// The signs and the order of results that a matrix does not determine: the same
// for every kernel of an op.

#ifndef BERTH_BACKENDS_CPU_VECTORS_H_
#define BERTH_BACKENDS_CPU_VECTORS_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>

namespace berth::cpu {

// What to multiply a vector by (elements `stride` apart) so that the first of
// its elements of at least 90 per cent of the largest modulus is positive.
template <class T>
T phase_of(const T* v, int64_t n, int64_t stride) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    largest = std::max<double>(largest, std::abs(v[i * stride]));
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto modulus = std::abs(v[i * stride]);
    if (modulus == 0 || modulus < 0.9 * largest) continue;
    if constexpr (std::is_floating_point_v<T>) {
      return v[i * stride] < 0 ? T{-1} : T{1};
    } else {
      return std::conj(v[i * stride]) / modulus;
    }
  }
  return T{1};
}

// The order of eigenvalues. Rounding must not part conjugates.
inline bool eigenvalue_before(std::complex<double> a, std::complex<double> b) {
  const auto x = static_cast<float>(a.real()), y = static_cast<float>(b.real());
  return x != y ? x < y : a.imag() < b.imag();
}

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_VECTORS_H_
