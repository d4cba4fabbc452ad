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

template <class T, class F>
void binary(const KernelCall& c) {
  const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
  T* out = c.out[0].as<T>();
  for_each_broadcast(
      *c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
      [&](int64_t i, int64_t x, int64_t y) { out[i] = F()(a[x], b[y]); });
}

template <class T, class F>
void unary(const KernelCall& c) {
  const T* x = c.in[0].as<T>();
  T* y = c.out[0].as<T>();
  const int64_t n = c.out[0].size();
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}

// Integers wrap as in TensorFlow; unsigned arithmetic keeps that defined.
template <class T>
using Wrap = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

struct Add {
  template <class T>
  T operator()(T a, T b) {
    return static_cast<T>(Wrap<T>(a) + Wrap<T>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) {
    return static_cast<T>(Wrap<T>(a) - Wrap<T>(b));
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) {
    return static_cast<T>(Wrap<T>(a) * Wrap<T>(b));
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) {
    return a / b;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) {
    return a != a ? a : (b != b ? b : (a > b ? a : b));
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) {
    return a != a ? a : (b != b ? b : (a < b ? a : b));
  }
};
struct Pow {
  template <class T>
  T operator()(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else if constexpr (is_complex_type<T>) {
      return b == T{0} ? T{1} : std::pow(a, b);
    } else {
      return whole(a, b);
    }
  }

 private:
  // Wraps around.
  template <class T>
  static T whole(T a, T b) {
    if (std::is_signed_v<T> && b < 0) {
      throw errors::InvalidArgument(fmt::format(
          "Pow: the exponent of a whole number is {}; expected 0 or more, or "
          "both cast to floats",
          b));
    }
    T power = 1;
    for (auto n = static_cast<uint64_t>(b); n > 0; n >>= 1) {
      if (n & 1) power = Mul()(power, a);
      a = Mul()(a, a);
    }
    return power;
  }
};
struct SquaredDifference {
  template <class T>
  T operator()(T a, T b) {
    const T d = Sub()(a, b);
    if constexpr (is_complex_type<T>) {
      return std::norm(d);
    } else {
      return Mul()(d, d);
    }
  }
};
struct Neg {
  template <class T>
  T operator()(T x) {
    if constexpr (std::is_integral_v<T>) {
      return Sub()(T{0}, x);
    } else {
      return -x;
    }
  }
};
struct Abs {
  template <class T>
  T operator()(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else {
      return x < 0 ? Neg()(x) : x;
    }
  }
};
struct Sign {
  template <class T>
  T operator()(T x) {
    if (x != x) return x;
    return static_cast<T>((x > 0) - (x < 0));
  }
};
struct Square {
  template <class T>
  T operator()(T x) {
    return Mul()(x, x);
  }
};
struct Sqrt {
  template <class T>
  T operator()(T x) {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  T operator()(T x) {
    return T{1} / std::sqrt(x);
  }
};
struct Exp {
  template <class T>
  T operator()(T x) {
    return std::exp(x);
  }
};
struct Log {
  template <class T>
  T operator()(T x) {
    return std::log(x);
  }
};
struct Log1p {
  template <class T>
  T operator()(T x) {
    if constexpr (is_complex_type<T>) {
      return std::log(T{1} + x);
    } else {
      return std::log1p(x);
    }
  }
};
struct Floor {
  template <class T>
  T operator()(T x) {
    return std::floor(x);
  }
};
struct Sigmoid {
  template <class T>
  T operator()(T x) {
    return T{1} / (T{1} + std::exp(-x));
  }
};
struct Tanh {
  template <class T>
  T operator()(T x) {
    return std::tanh(x);
  }
};

template <class F>
void add_floating_binary(KernelTable& t, const char* op) {
  t.direct(op, dtype_bit(float32), &binary<float, F>, "reference", true);
  t.direct(op, dtype_bit(float64), &binary<double, F>, "reference", true);
}
template <class F>
void add_binary(KernelTable& t, const char* op) {
  add_floating_binary<F>(t, op);
  t.direct(op, dtype_bit(int32), &binary<int32_t, F>, "reference", true);
  t.direct(op, dtype_bit(int64), &binary<int64_t, F>, "reference", true);
  t.direct(op, dtype_bit(uint8), &binary<uint8_t, F>, "reference", true);
}
template <class F>
void add_floating_unary(KernelTable& t, const char* op) {
  t.direct(op, dtype_bit(float32), &unary<float, F>, "reference", true);
  t.direct(op, dtype_bit(float64), &unary<double, F>, "reference", true);
}
template <class F>
void add_unary(KernelTable& t, const char* op) {
  add_floating_unary<F>(t, op);
  t.direct(op, dtype_bit(int32), &unary<int32_t, F>, "reference", true);
  t.direct(op, dtype_bit(int64), &unary<int64_t, F>, "reference", true);
  t.direct(op, dtype_bit(uint8), &unary<uint8_t, F>, "reference", true);
}

// Complex64 goes through complex128 (widened.h).
template <class F>
void add_complex_binary(KernelTable& t, const char* op) {
  t.direct(op, dtype_bit(complex128), &binary<std::complex<double>, F>,
           "reference", true);
}
template <class F>
void add_complex_unary(KernelTable& t, const char* op) {
  t.direct(op, dtype_bit(complex128), &unary<std::complex<double>, F>,
           "reference", true);
}

void add_complex_kernels(KernelTable& t) {
  add_complex_binary<Add>(t, "AddV2");
  add_complex_binary<Sub>(t, "Sub");
  add_complex_binary<Mul>(t, "Mul");
  add_complex_binary<Div>(t, "RealDiv");
  add_complex_binary<Pow>(t, "Pow");
  add_complex_binary<SquaredDifference>(t, "SquaredDifference");
  add_complex_unary<Neg>(t, "Neg");
  add_complex_unary<Square>(t, "Square");
  add_complex_unary<Sqrt>(t, "Sqrt");
  add_complex_unary<Rsqrt>(t, "Rsqrt");
  add_complex_unary<Exp>(t, "Exp");
  add_complex_unary<Log>(t, "Log");
  add_complex_unary<Log1p>(t, "Log1p");
  add_complex_unary<Sigmoid>(t, "Sigmoid");
  add_complex_unary<Tanh>(t, "Tanh");
}

}  // namespace

void add_elementwise(KernelTable& t) {
  add_binary<Add>(t, "AddV2");
  add_binary<Sub>(t, "Sub");
  add_binary<Mul>(t, "Mul");
  add_floating_binary<Div>(t, "RealDiv");
  add_binary<Max>(t, "Maximum");
  add_binary<Min>(t, "Minimum");
  add_binary<Pow>(t, "Pow");
  add_binary<SquaredDifference>(t, "SquaredDifference");
  add_unary<Neg>(t, "Neg");
  add_unary<Abs>(t, "Abs");
  add_unary<Sign>(t, "Sign");
  add_unary<Square>(t, "Square");
  add_floating_unary<Sqrt>(t, "Sqrt");
  add_floating_unary<Rsqrt>(t, "Rsqrt");
  add_floating_unary<Exp>(t, "Exp");
  add_floating_unary<Log>(t, "Log");
  add_floating_unary<Log1p>(t, "Log1p");
  add_floating_unary<Floor>(t, "Floor");
  add_floating_unary<Sigmoid>(t, "Sigmoid");
  add_floating_unary<Tanh>(t, "Tanh");
  add_complex_kernels(t);
}

}  // namespace berth::reference
