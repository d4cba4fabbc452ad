// Arithmetic by element.

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"

namespace berth::reference {

std::array<int64_t, kMaxRank> dense_strides(const Shape& shape) {
  std::array<int64_t, kMaxRank> strides{};
  int64_t s = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = s;
    s *= shape[i];
  }
  return strides;
}

std::array<int64_t, kMaxRank> broadcast_strides(const Shape& shape,
                                                const Shape& out) {
  std::array<int64_t, kMaxRank> strides{};
  const auto own = dense_strides(shape);
  const int shift = out.rank() - shape.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    strides[i + shift] = shape[i] == 1 ? 0 : own[i];
  }
  return strides;
}

namespace {

template <class T, auto kFn>
void binary_kernel(const KernelCall& c) {
  const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
  T* out = c.out[0].as<T>();
  for_each_broadcast(
      *c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
      [&](int64_t i, int64_t x, int64_t y) { out[i] = kFn(a[x], b[y]); });
}

template <class T, auto kFn>
void unary_kernel(const KernelCall& c) {
  const T* x = c.in[0].as<T>();
  T* y = c.out[0].as<T>();
  const int64_t n = c.out[0].size();
  for (int64_t i = 0; i < n; ++i) y[i] = kFn(x[i]);
}

// Integers wrap as in TensorFlow; unsigned arithmetic keeps that defined.
template <class T>
using Wrap = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

constexpr auto kAdd = []<class T>(T a, T b) {
  return static_cast<T>(Wrap<T>(a) + Wrap<T>(b));
};
constexpr auto kSub = []<class T>(T a, T b) {
  return static_cast<T>(Wrap<T>(a) - Wrap<T>(b));
};
constexpr auto kMul = []<class T>(T a, T b) {
  return static_cast<T>(Wrap<T>(a) * Wrap<T>(b));
};
constexpr auto kDiv = []<class T>(T a, T b) -> T { return a / b; };
constexpr auto kMax = []<class T>(T a, T b) {
  return a != a ? a : (b != b ? b : (a > b ? a : b));
};
constexpr auto kMin = []<class T>(T a, T b) {
  return a != a ? a : (b != b ? b : (a < b ? a : b));
};

// Wraps around.
template <class T>
T whole_power(T a, T b) {
  if (std::is_signed_v<T> && b < 0) {
    throw errors::InvalidArgument(fmt::format(
        "Pow: the exponent of a whole number is {}; expected 0 or more, or "
        "both cast to floats",
        b));
  }
  T power = 1;
  for (auto n = static_cast<uint64_t>(b); n > 0; n >>= 1) {
    if (n & 1) power = kMul(power, a);
    a = kMul(a, a);
  }
  return power;
}
constexpr auto kPow = []<class T>(T a, T b) -> T {
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(a, b);
  } else if constexpr (is_complex_type<T>) {
    return b == T{0} ? T{1} : std::pow(a, b);
  } else {
    return whole_power(a, b);
  }
};
constexpr auto kSquaredDifference = []<class T>(T a, T b) -> T {
  const T d = kSub(a, b);
  if constexpr (is_complex_type<T>) {
    return std::norm(d);
  } else {
    return kMul(d, d);
  }
};
constexpr auto kNeg = []<class T>(T x) -> T {
  if constexpr (std::is_integral_v<T>) {
    return kSub(T{0}, x);
  } else {
    return -x;
  }
};
constexpr auto kAbs = []<class T>(T x) -> T {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fabs(x);
  } else {
    return std::is_signed_v<T> && x < 0 ? kNeg(x) : x;
  }
};
constexpr auto kSign = []<class T>(T x) {
  return x != x ? x : static_cast<T>((x > 0) - (x < 0));
};
constexpr auto kLog1p = []<class T>(T x) -> T {
  if constexpr (is_complex_type<T>) {
    return std::log(T{1} + x);
  } else {
    return std::log1p(x);
  }
};
constexpr auto kSquare = [](auto x) { return kMul(x, x); };
constexpr auto kSqrt = [](auto x) { return std::sqrt(x); };
constexpr auto kRsqrt = []<class T>(T x) -> T { return T{1} / std::sqrt(x); };
constexpr auto kExp = [](auto x) { return std::exp(x); };
constexpr auto kLog = [](auto x) { return std::log(x); };
constexpr auto kFloor = [](auto x) { return std::floor(x); };
constexpr auto kSigmoid = []<class T>(T x) -> T {
  return T{1} / (T{1} + std::exp(-x));
};
constexpr auto kTanh = [](auto x) { return std::tanh(x); };

// A kernel per type.
template <auto kFn, class... T>
void add_binary(KernelTable& t, const char* op) {
  (t.direct(op, dtype_bit(dtype_of<T>), &binary_kernel<T, kFn>, "reference",
            true),
   ...);
}
template <auto kFn, class... T>
void add_unary(KernelTable& t, const char* op) {
  (t.direct(op, dtype_bit(dtype_of<T>), &unary_kernel<T, kFn>, "reference",
            true),
   ...);
}
template <auto kFn, class... More>
void binary_of_numbers(KernelTable& t, const char* op) {
  add_binary<kFn, float, double, int32_t, int64_t, uint8_t, uint64_t, More...>(
      t, op);
}
template <auto kFn, class... More>
void unary_of_numbers(KernelTable& t, const char* op) {
  add_unary<kFn, float, double, int32_t, int64_t, uint8_t, uint64_t, More...>(
      t, op);
}

// Complex64 goes through complex128 (widened.h).
using Complex = std::complex<double>;

}  // namespace

void add_elementwise(KernelTable& t) {
  binary_of_numbers<kAdd, Complex>(t, "AddV2");
  binary_of_numbers<kSub, Complex>(t, "Sub");
  binary_of_numbers<kMul, Complex>(t, "Mul");
  add_binary<kDiv, float, double, Complex>(t, "RealDiv");
  binary_of_numbers<kMax>(t, "Maximum");
  binary_of_numbers<kMin>(t, "Minimum");
  binary_of_numbers<kPow, Complex>(t, "Pow");
  binary_of_numbers<kSquaredDifference, Complex>(t, "SquaredDifference");
  unary_of_numbers<kNeg, Complex>(t, "Neg");
  unary_of_numbers<kAbs>(t, "Abs");
  unary_of_numbers<kSign>(t, "Sign");
  unary_of_numbers<kSquare, Complex>(t, "Square");
  add_unary<kSqrt, float, double, Complex>(t, "Sqrt");
  add_unary<kRsqrt, float, double, Complex>(t, "Rsqrt");
  add_unary<kExp, float, double, Complex>(t, "Exp");
  add_unary<kLog, float, double, Complex>(t, "Log");
  add_unary<kLog1p, float, double, Complex>(t, "Log1p");
  add_unary<kFloor, float, double>(t, "Floor");
  add_unary<kSigmoid, float, double, Complex>(t, "Sigmoid");
  add_unary<kTanh, float, double, Complex>(t, "Tanh");
}

}  // namespace berth::reference
