// Elementwise functions of one and two operands, one row each. Floating ones
// are computed in double and rounded once.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/special_functions.h"

namespace berth::reference {

namespace {

template <class T>
using Through = std::conditional_t<std::is_floating_point_v<T>, double, T>;

template <class T, auto kFn>
void unary(const KernelCall& c) {
  const T* x = c.in[0].as<T>();
  T* y = c.out[0].as<T>();
  const int64_t n = c.out[0].size();
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>(kFn(static_cast<Through<T>>(x[i])));
  }
}

template <class T, auto kFn>
void binary(const KernelCall& c) {
  const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
  T* out = c.out[0].as<T>();
  for_each_broadcast(*c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
                     [&](int64_t i, int64_t x, int64_t y) {
                       out[i] =
                           static_cast<T>(kFn(static_cast<Through<T>>(a[x]),
                                              static_cast<Through<T>>(b[y])));
                     });
}

template <auto kFn>
void predicate(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    bool* y = c.out[0].as<bool>();
    const int64_t n = c.out[0].size();
    for (int64_t i = 0; i < n; ++i) y[i] = kFn(x[i]);
  });
}

// A kernel per type.
template <auto kFn, class... T>
void unary_of(KernelTable& t, const char* op) {
  (t.direct(op, dtype_bit(dtype_of<T>), &unary<T, kFn>, "reference", true),
   ...);
}
template <auto kFn, class... T>
void binary_of(KernelTable& t, const char* op) {
  (t.direct(op, dtype_bit(dtype_of<T>), &binary<T, kFn>, "reference", true),
   ...);
}
template <auto kFn>
void floating(KernelTable& t, const char* op) {
  unary_of<kFn, float, double>(t, op);
}
// Complex numbers are taken, too; complex64 comes as complex128 (widened.h).
using Complex = std::complex<double>;
template <auto kFn>
void inexact(KernelTable& t, const char* op) {
  unary_of<kFn, float, double, Complex>(t, op);
}
template <auto kFn>
void integers(KernelTable& t, const char* op) {
  unary_of<kFn, int32_t, int64_t, uint8_t, uint64_t>(t, op);
}
template <auto kFn>
void floating2(KernelTable& t, const char* op) {
  binary_of<kFn, float, double>(t, op);
}
template <auto kFn>
void integers2(KernelTable& t, const char* op) {
  binary_of<kFn, int32_t, int64_t, uint8_t, uint64_t>(t, op);
}

// Exact near 0.
Complex complex_expm1(Complex z) {
  const double half = std::sin(z.imag() / 2), size = std::exp(z.real());
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half,
          size * std::sin(z.imag())};
}

double softplus(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

// Divides integers; INT_MIN / -1 wraps around. Rounds down if `down`, else
// towards 0.
template <class T>
struct Division {
  T quotient, rest;
  Division(T a, T b, bool down) {
    if (b == 0) {
      throw errors::InvalidArgument(
          "integer division by zero; expected divisors that are not 0");
    }
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) {
        using U = std::make_unsigned_t<T>;
        quotient = static_cast<T>(U{0} - static_cast<U>(a));
        rest = 0;
        return;
      }
    }
    quotient = static_cast<T>(a / b);
    rest = static_cast<T>(a % b);
    if (down && rest != 0 && (rest < 0) != (b < 0)) {
      quotient = static_cast<T>(quotient - 1);
      rest = static_cast<T>(rest + b);
    }
  }
};

double floor_mod(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// The width of the type matters: not widened.
template <bool kLeft>
void shift(const KernelCall& c) {
  with_exact_number(c.in[0].dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      constexpr T kMost = 8 * sizeof(T) - 1;
      const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
      T* out = c.out[0].as<T>();
      for_each_broadcast(*c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
                         [&](int64_t i, int64_t x, int64_t y) {
                           const T by = std::clamp<T>(b[y], 0, kMost);
                           using U = std::make_unsigned_t<T>;
                           out[i] = static_cast<T>(
                               kLeft ? static_cast<U>(a[x]) << by : a[x] >> by);
                         });
    }
  });
}

void add_floating(KernelTable& t) {
  floating<[](double x) { return std::ceil(x); }>(t, "Ceil");
  floating<[](double x) { return std::nearbyint(x); }>(t, "Round");
  floating<[](double x) { return std::nearbyint(x); }>(t, "Rint");
  inexact<[](auto x) { return 1.0 / x; }>(t, "Reciprocal");
  floating<[](double x) { return std::expm1(x); }>(t, "Expm1");
  unary_of<&complex_expm1, Complex>(t, "Expm1");
  inexact<[](auto x) { return std::sin(x); }>(t, "Sin");
  inexact<[](auto x) { return std::cos(x); }>(t, "Cos");
  inexact<[](auto x) { return std::tan(x); }>(t, "Tan");
  inexact<[](auto x) { return std::asin(x); }>(t, "Asin");
  inexact<[](auto x) { return std::acos(x); }>(t, "Acos");
  inexact<[](auto x) { return std::atan(x); }>(t, "Atan");
  inexact<[](auto x) { return std::sinh(x); }>(t, "Sinh");
  inexact<[](auto x) { return std::cosh(x); }>(t, "Cosh");
  inexact<[](auto x) { return std::asinh(x); }>(t, "Asinh");
  inexact<[](auto x) { return std::acosh(x); }>(t, "Acosh");
  inexact<[](auto x) { return std::atanh(x); }>(t, "Atanh");
  floating<[](double x) { return std::erf(x); }>(t, "Erf");
  floating<[](double x) { return std::erfc(x); }>(t, "Erfc");
  floating<&inverse_erf>(t, "Erfinv");
  floating<&normal_quantile>(t, "Ndtri");
  floating<&log_gamma>(t, "Lgamma");
  floating<&digamma>(t, "Digamma");
  floating<&softplus>(t, "Softplus");
  floating<[](double x) { return x / (1 + std::fabs(x)); }>(t, "Softsign");
  floating<[](double x) { return x < 0 ? std::expm1(x) : x; }>(t, "Elu");
  floating<[](double x) {
    return kSeluScale * (x < 0 ? kSeluAlpha * std::expm1(x) : x);
  }>(t, "Selu");
  floating<[](double x) { return x < 0 ? 0 : (x > 6) ? 6 : x; }>(t, "Relu6");
}

void add_host_floating(KernelTable& t) {
  floating<[](double x) { return scaled_bessel(0, x); }>(t, "BesselI0e");
  floating<[](double x) { return scaled_bessel(1, x); }>(t, "BesselI1e");
}

void add_floating2(KernelTable& t) {
  floating2<[](double y, double x) { return std::atan2(y, x); }>(t, "Atan2");
  floating2<&polygamma>(t, "Polygamma");
  floating2<&hurwitz_zeta>(t, "Zeta");
  floating2<[](double a, double b) { return std::floor(a / b); }>(t,
                                                                  "FloorDiv");
  floating2<&floor_mod>(t, "FloorMod");
  floating2<[](double a, double b) { return std::fmod(a, b); }>(t,
                                                                "TruncateMod");
  floating2<[](double a, double b) { return b == 0 ? 0 : a / b; }>(t,
                                                                   "DivNoNan");
  floating2<[](double a, double b) { return b == 0 ? 0 : a * b; }>(t,
                                                                   "MulNoNan");
  floating2<[](double x, double y) { return x == 0 ? 0 : x * std::log(y); }>(
      t, "Xlogy");
  floating2<[](double x, double y) { return x == 0 ? 0 : x * std::log1p(y); }>(
      t, "Xlog1py");
  floating2<[](double x, double y) { return x == 0 ? 0 : x / y; }>(t, "Xdivy");
}

void add_integers(KernelTable& t) {
  integers<[](auto x) { return x; }>(t, "Round");
  integers<[](auto x) { return ~x; }>(t, "Invert");
  integers2<[](auto a, auto b) {
    return Division<decltype(a)>(a, b, true).quotient;
  }>(t, "FloorDiv");
  integers2<[](auto a, auto b) {
    return Division<decltype(a)>(a, b, true).rest;
  }>(t, "FloorMod");
  integers2<[](auto a, auto b) {
    return Division<decltype(a)>(a, b, false).quotient;
  }>(t, "TruncateDiv");
  integers2<[](auto a, auto b) {
    return Division<decltype(a)>(a, b, false).rest;
  }>(t, "TruncateMod");
  integers2<[](auto a, auto b) { return a & b; }>(t, "BitwiseAnd");
  integers2<[](auto a, auto b) { return a | b; }>(t, "BitwiseOr");
  integers2<[](auto a, auto b) { return a ^ b; }>(t, "BitwiseXor");
  t.direct("LeftShift", kEveryInteger, &shift<true>, "reference", true);
  t.direct("RightShift", kEveryInteger, &shift<false>, "reference", true);
}

template <class T>
void next_after(const KernelCall& c) {
  const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
  T* out = c.out[0].as<T>();
  for_each_broadcast(*c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
                     [&](int64_t i, int64_t x, int64_t y) {
                       out[i] = std::nextafter(a[x], b[y]);
                     });
}

void leaky_relu(const KernelCall& c) {
  const double alpha = c.attr<double>("alpha");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    const int64_t n = c.out[0].size();
    for (int64_t i = 0; i < n; ++i) {
      y[i] = x[i] > 0 ? x[i] : static_cast<T>(alpha * x[i]);
    }
  });
}

void add_n(const KernelCall& c) {
  with_ring(c.in[0].dtype, [&]<class T>(T) {
    T* y = c.out[0].as<T>();
    const int64_t n = c.out[0].size();
    Wide<T> sums[256];
    for (int64_t i = 0; i < n; i += std::ssize(sums)) {
      const int64_t count = std::min<int64_t>(std::ssize(sums), n - i);
      std::fill_n(sums, count, Wide<T>{0});
      for (int k = 0; k < c.num_in; ++k) {
        const T* x = c.in[k].as<T>() + i;
        for (int64_t j = 0; j < count; ++j) {
          sums[j] += static_cast<Wide<T>>(x[j]);
        }
      }
      for (int64_t j = 0; j < count; ++j) y[i + j] = static_cast<T>(sums[j]);
    }
  });
}

}  // namespace

void add_host_functions(KernelTable& t) { add_host_floating(t); }

void add_functions(KernelTable& t) {
  add_floating(t);
  add_floating2(t);
  add_integers(t);
  t.direct("IsNan", kFloatingTypes,
           &predicate<[](auto x) { return std::isnan(x); }>, "reference");
  t.direct("IsInf", kFloatingTypes,
           &predicate<[](auto x) { return std::isinf(x); }>, "reference");
  t.direct("IsFinite", kFloatingTypes,
           &predicate<[](auto x) { return std::isfinite(x); }>, "reference");
  t.direct("NextAfter", dtype_bit(float32), &next_after<float>, "reference",
           true);
  t.direct("NextAfter", dtype_bit(float64), &next_after<double>, "reference",
           true);
  t.direct("LeakyRelu", kFloatingTypes, &leaky_relu, "reference", true);
  t.direct("AddN", kRingTypes, &add_n, "reference", true);
}

}  // namespace berth::reference
