// The Fourier transform by its definition.

#include <cmath>
#include <complex>
#include <numbers>

#include "backends/reference/scratch.h"
#include "conformance/oracle/oracle.h"

namespace berth::conformance {

using namespace reference;  // NOLINT: loops and scratch memory

namespace {

void fourier(const KernelCall& c) {
  using Complex = std::complex<double>;
  const int64_t n = c.in[0].dim(c.in[0].shape->rank() - 1);
  const double sign = c.attr<bool>("inverse") ? 1 : -1;
  const double scale =
      c.attr<bool>("normalize") ? 1 / static_cast<double>(n) : 1;
  Scratch<Complex> roots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    roots[static_cast<size_t>(k)] =
        std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) /
                            static_cast<double>(n));
  }
  const Complex* x = c.in[0].as<Complex>();
  Complex* y = c.out[0].as<Complex>();
  for (int64_t row = 0; row < c.in[0].size(); row += n) {
    for (int64_t k = 0; k < n; ++k) {
      Complex sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        sum += x[row + i] * roots[static_cast<size_t>(i * k % n)];
      }
      y[row + k] = sum * scale;
    }
  }
}

}  // namespace

void add_fourier(KernelTable& t) {
  t.direct("FFT", dtype_bit(complex128), &fourier, "oracle");
}

}  // namespace berth::conformance
