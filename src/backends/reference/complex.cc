// Complex numbers and their parts.

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"

namespace berth::reference {

namespace {

template <class T>
void join_parts(const KernelCall& c) {
  const T *re = c.in[0].as<T>(), *im = c.in[1].as<T>();
  auto* out = c.out[0].as<std::complex<T>>();
  for_each_broadcast(*c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
                     [&](int64_t i, int64_t x, int64_t y) {
                       out[i] = {re[x], im[y]};
                     });
}

// Complex64 comes here as complex128 (widened.h).
template <class F>
void part(const KernelCall& c) {
  const auto* x = c.in[0].as<std::complex<double>>();
  double* y = c.out[0].as<double>();
  for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) y[i] = F()(x[i]);
}

struct RealPart {
  double operator()(std::complex<double> z) { return z.real(); }
};
struct ImaginaryPart {
  double operator()(std::complex<double> z) { return z.imag(); }
};
struct Argument {
  double operator()(std::complex<double> z) { return std::arg(z); }
};
struct Modulus {
  double operator()(std::complex<double> z) { return std::abs(z); }
};

void conj(const KernelCall& c) {
  const auto* x = c.in[0].as<std::complex<double>>();
  auto* y = c.out[0].as<std::complex<double>>();
  for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) y[i] = std::conj(x[i]);
}

}  // namespace

void add_complex(KernelTable& t) {
  constexpr DTypeSet kWide = dtype_bit(complex128);
  t.direct("Complex", dtype_bit(float32), &join_parts<float>, "reference");
  t.direct("Complex", dtype_bit(float64), &join_parts<double>, "reference");
  t.direct("Real", kWide, &part<RealPart>, "reference");
  t.direct("Imag", kWide, &part<ImaginaryPart>, "reference");
  t.direct("Angle", kWide, &part<Argument>, "reference");
  t.direct("ComplexAbs", kWide, &part<Modulus>, "reference");
  t.direct("Conj", kWide, &conj, "reference", true);
}

}  // namespace berth::reference
