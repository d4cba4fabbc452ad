// Loops over any number type, left to the compiler to vectorise; included
// once per instruction set. The results are those of the reference kernels.

#ifndef BERTH_BACKENDS_CPU_ISA_PLAIN_H_
#define BERTH_BACKENDS_CPU_ISA_PLAIN_H_

#include "backends/cpu/isa/arch.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

// Integers wrap around, so they are summed unsigned.
template <class T>
struct Wrapped {
  using Type = T;
};
template <>
struct Wrapped<int32_t> {
  using Type = uint32_t;
};
template <>
struct Wrapped<int64_t> {
  using Type = uint64_t;
};
template <class T>
using Wrap = typename Wrapped<T>::Type;

struct PlainRelu {
  template <class T>
  BERTH_INLINE T apply(T x) {
    return x <= T{0} ? T{0} : x;
  }
};
struct PlainNeg {
  template <class T>
  BERTH_INLINE T apply(T x) {
    if constexpr (T(0.5) == T(0)) return T(Wrap<T>(0) - Wrap<T>(x));
    return -x;
  }
};
struct PlainAbs {
  template <class T>
  BERTH_INLINE T apply(T x) {
    if constexpr (sizeof(T) == 8 && T(0.5) != T(0)) return __builtin_fabs(x);
    return x < T{0} ? PlainNeg::apply(x) : x;
  }
};
struct PlainSign {
  template <class T>
  BERTH_INLINE T apply(T x) {
    const T sign = T(T(x > T{0}) - T(x < T{0}));
    return x != x ? x : sign;
  }
};
struct PlainAdd {
  template <class T>
  BERTH_INLINE T apply(T a, T b) {
    return T(Wrap<T>(a) + Wrap<T>(b));
  }
};
struct PlainSub {
  template <class T>
  BERTH_INLINE T apply(T a, T b) {
    return T(Wrap<T>(a) - Wrap<T>(b));
  }
};
struct PlainMul {
  template <class T>
  BERTH_INLINE T apply(T a, T b) {
    return T(Wrap<T>(a) * Wrap<T>(b));
  }
};
struct PlainSquare {
  template <class T>
  BERTH_INLINE T apply(T x) {
    return PlainMul::apply(x, x);
  }
};
struct PlainDiv {
  template <class T>
  BERTH_INLINE T apply(T a, T b) {
    return a / b;
  }
};
struct PlainReciprocal {
  template <class T>
  BERTH_INLINE T apply(T x) {
    return T{1} / x;
  }
};
struct PlainMax {
  template <class T>
  BERTH_INLINE T apply(T a, T b) {
    return a != a ? a : (b != b ? b : (a > b ? a : b));
  }
};
struct PlainMin {
  template <class T>
  BERTH_INLINE T apply(T a, T b) {
    return a != a ? a : (b != b ? b : (a < b ? a : b));
  }
};
struct PlainReluGrad {
  template <class T>
  BERTH_INLINE T apply(T dy, T x) {
    return x > T{0} ? dy : T{0};
  }
};
struct Not {
  BERTH_INLINE uint8_t apply(uint8_t x) { return x == 0; }
};
struct And {
  BERTH_INLINE uint8_t apply(uint8_t a, uint8_t b) { return a & b; }
};
struct Or {
  BERTH_INLINE uint8_t apply(uint8_t a, uint8_t b) { return a | b; }
};
struct Equal {
  template <class T>
  BERTH_INLINE bool apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  BERTH_INLINE bool apply(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  BERTH_INLINE bool apply(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  BERTH_INLINE bool apply(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  BERTH_INLINE bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  BERTH_INLINE bool apply(T a, T b) {
    return a >= b;
  }
};

// Functions of the C library, for types without a polynomial of ours.
struct DoubleMath {
  struct Exp {
    BERTH_INLINE double apply(double x) { return __builtin_exp(x); }
  };
  struct Log {
    BERTH_INLINE double apply(double x) { return __builtin_log(x); }
  };
  struct Log1p {
    BERTH_INLINE double apply(double x) { return __builtin_log1p(x); }
  };
  struct Sqrt {
    BERTH_INLINE double apply(double x) { return __builtin_sqrt(x); }
  };
  struct Rsqrt {
    BERTH_INLINE double apply(double x) { return 1 / __builtin_sqrt(x); }
  };
  struct Erf {
    BERTH_INLINE double apply(double x) { return __builtin_erf(x); }
  };
  struct Floor {
    BERTH_INLINE double apply(double x) { return __builtin_floor(x); }
  };
  struct Sigmoid {
    BERTH_INLINE double apply(double x) { return 1 / (1 + __builtin_exp(-x)); }
  };
  struct Tanh {
    BERTH_INLINE double apply(double x) { return __builtin_tanh(x); }
  };
  struct Pow {
    BERTH_INLINE double apply(double a, double b) {
      return __builtin_pow(a, b);
    }
  };
};
struct FloatMath : DoubleMath {
  struct Floor {
    BERTH_INLINE float apply(float x) { return __builtin_floorf(x); }
  };
};

template <class T, class Op>
void plain1(const void* a, const void*, const void*, void* y, int64_t n) {
  const auto* x = static_cast<const T*>(a);
  auto* out = static_cast<T*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = T(Op::apply(x[i]));
}
template <class T, class Op>
void plain2(const void* a, const void* b, const void*, void* y, int64_t n) {
  const auto *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
  auto* out = static_cast<T*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = T(Op::apply(p[i], q[i]));
}
template <class T, class Op>
void compare(const void* a, const void* b, const void*, void* y, int64_t n) {
  const auto *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
  auto* out = static_cast<uint8_t*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = Op::apply(p[i], q[i]);
}
template <class T>
void select(const void* mask, const void* a, const void* b, void* y,
            int64_t n) {
  const auto* m = static_cast<const uint8_t*>(mask);
  const auto *p = static_cast<const T*>(a), *q = static_cast<const T*>(b);
  auto* out = static_cast<T*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = m[i] != 0 ? p[i] : q[i];
}
template <class T>
void keep(const void* a, const void* mask, const void*, void* y, int64_t n) {
  const auto* x = static_cast<const T*>(a);
  const auto* m = static_cast<const uint8_t*>(mask);
  auto* out = static_cast<T*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = m[i] != 0 ? x[i] : T{0};
}
template <class T>
void fill_with(const void* x, void* y, int64_t n) {
  const T value = *static_cast<const T*>(x);
  auto* out = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) out[i] = value;
}

template <class T>
inline constexpr T kLowest = T(T(1) << (8 * sizeof(T) - 1));
template <>
inline constexpr uint8_t kLowest<uint8_t> = 0;
template <class T>
inline constexpr T kHighest = T(~kLowest<T>);

// A float that an integer cannot hold saturates; NaN becomes 0.
template <class From, class To>
BERTH_INLINE To converted(From x) {
  if constexpr (From(0.5) != From(0) && To(0.5) == To(0)) {
    // Powers of two, exact in From; values in between are truncated into To.
    constexpr From lo = From(kLowest<To>);
    constexpr From hi = From(2) * From(kHighest<To> / 2 + 1);
    const bool above = x >= hi;
    const From inside = ((x >= lo) & (x < hi)) != 0 ? x : From(0);
    const To y = To(inside);
    return x < lo ? kLowest<To> : above ? kHighest<To> : y;
  } else {
    return To(x);
  }
}
template <class From, class To>
void convert(const void* a, const void*, const void*, void* y, int64_t n) {
  const auto* x = static_cast<const From*>(a);
  auto* out = static_cast<To*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = converted<From, To>(x[i]);
}
template <class From>
void to_bool(const void* a, const void*, const void*, void* y, int64_t n) {
  const auto* x = static_cast<const From*>(a);
  auto* out = static_cast<uint8_t*>(y);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] != From{0};
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_PLAIN_H_
