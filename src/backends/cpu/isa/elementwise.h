// Unary and binary elementwise loops; included once per instruction set.

#ifndef BERTH_BACKENDS_CPU_ISA_ELEMENTWISE_H_
#define BERTH_BACKENDS_CPU_ISA_ELEMENTWISE_H_

#include "backends/cpu/isa/arch.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

inline constexpr float kSqrtHalf = 0.70710678f;
inline constexpr float kSqrt2OverPi = 0.79788456f;
inline constexpr float kInvSqrt2Pi = 0.39894228f;
inline constexpr float kGeluCube = 0.044715f;

// The argument of gelu's tanh: sqrt(2/pi) (x + 0.044715 x^3).
BERTH_INLINE F gelu_inner(F x) {
  return kSqrt2OverPi * A::madd(kGeluCube * x * x, x, x);
}

struct Relu {
  BERTH_INLINE F apply(F x) { return A::select(x <= 0.0f, F{}, x); }
};
struct Sigmoid {
  BERTH_INLINE F apply(F x) { return poly::sigmoid<A>(x); }
};
struct Tanh {
  BERTH_INLINE F apply(F x) { return poly::tanh<A>(x); }
};
struct GeluTanh {
  BERTH_INLINE F apply(F x) {
    // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), which does not cancel.
    return x / (1.0f + poly::exp<A>(-2.0f * gelu_inner(x)));
  }
};
struct GeluErf {
  BERTH_INLINE F apply(F x) {
    return 0.5f * x * (1.0f + poly::erf<A>(x * kSqrtHalf));
  }
};
struct Exp {
  BERTH_INLINE F apply(F x) { return poly::exp<A>(x); }
};
struct Log {
  BERTH_INLINE F apply(F x) { return poly::log<A>(x); }
};
struct Sqrt {
  BERTH_INLINE F apply(F x) { return A::sqrt(x); }
};
struct Rsqrt {
  BERTH_INLINE F apply(F x) { return 1.0f / A::sqrt(x); }
};
struct Neg {
  BERTH_INLINE F apply(F x) { return -x; }
};
struct Abs {
  BERTH_INLINE F apply(F x) { return A::as_float(A::as_int(x) & 0x7fffffff); }
};
struct Square {
  BERTH_INLINE F apply(F x) { return x * x; }
};
struct Reciprocal {
  BERTH_INLINE F apply(F x) { return 1.0f / x; }
};
struct Erf {
  BERTH_INLINE F apply(F x) { return poly::erf<A>(x); }
};

struct Plus {
  BERTH_INLINE F apply(F a, F b) { return a + b; }
};
struct Sub {
  BERTH_INLINE F apply(F a, F b) { return a - b; }
};
struct Mul {
  BERTH_INLINE F apply(F a, F b) { return a * b; }
};
struct Div {
  BERTH_INLINE F apply(F a, F b) { return a / b; }
};
struct Max {
  BERTH_INLINE F apply(F a, F b) { return max_nan(a, b); }
};
struct Min {
  BERTH_INLINE F apply(F a, F b) { return min_nan(a, b); }
};
struct ReluGrad {
  BERTH_INLINE F apply(F dy, F x) { return A::select(x > 0.0f, dy, F{}); }
};
struct SigmoidGrad {
  BERTH_INLINE F apply(F y, F dy) { return dy * y * (1.0f - y); }
};
struct TanhGrad {
  BERTH_INLINE F apply(F y, F dy) { return dy * (1.0f - y * y); }
};
struct GeluTanhGrad {
  BERTH_INLINE F apply(F x, F dy) {
    const F s = poly::sigmoid<A>(2.0f * gelu_inner(x));
    const F inner = kSqrt2OverPi * A::madd(3 * kGeluCube * x, x, A::set(1));
    return dy * s * A::madd(2.0f * x * inner, 1.0f - s, A::set(1));
  }
};
struct GeluErfGrad {
  BERTH_INLINE F apply(F x, F dy) {
    const F density = kInvSqrt2Pi * poly::exp<A>(-0.5f * x * x);
    const F phi = 0.5f * (1.0f + poly::erf<A>(x * kSqrtHalf));
    return dy * A::madd(x, density, phi);
  }
};

template <class Op>
void unary(const float* x, float* y, int64_t n) {
  for_vectors(n, [=](int64_t i, auto part) {
    part.store(y + i, Op::apply(part.load(x + i)));
  });
}

template <class Op>
struct Binary {
  static void same(const float* a, const float* b, float* y, int64_t n) {
    for_vectors(n, [=](int64_t i, auto part) {
      part.store(y + i, Op::apply(part.load(a + i), part.load(b + i)));
    });
  }
  static void scalar_right(const float* a, float b, float* y, int64_t n) {
    const F wide = A::set(b);
    for_vectors(n, [=](int64_t i, auto part) {
      part.store(y + i, Op::apply(part.load(a + i), wide));
    });
  }
  static void scalar_left(float a, const float* b, float* y, int64_t n) {
    const F wide = A::set(a);
    for_vectors(n, [=](int64_t i, auto part) {
      part.store(y + i, Op::apply(wide, part.load(b + i)));
    });
  }
  static void row_right(const float* a, const float* b, float* y, int64_t rows,
                        int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
      same(a + r * cols, b, y + r * cols, cols);
    }
  }
  static void row_left(const float* a, const float* b, float* y, int64_t rows,
                       int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
      same(a, b + r * cols, y + r * cols, cols);
    }
  }
  static constexpr BinaryLoops loops() {
    return {same, scalar_right, scalar_left, row_right, row_left};
  }
};

inline void fill(float value, float* y, int64_t n) {
  const F wide = A::set(value);
  for_vectors(n, [=](int64_t i, auto part) { part.store(y + i, wide); });
}

inline void bias_relu(float* x, const float* bias, int64_t rows, int64_t cols,
                      int64_t ld) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = x + r * ld;
    for_vectors(cols, [=](int64_t i, auto part) {
      part.store(row + i,
                 Relu::apply(part.load(row + i) + part.load(bias + i)));
    });
  }
}

// Transposes four by four blocks in 128-bit registers, which every level has.
inline void transpose(const float* x, int64_t rows, int64_t cols, int64_t ldx,
                      float* y, int64_t ldy) {
  typedef float Four __attribute__((vector_size(16)));
  typedef float LooseFour
      __attribute__((vector_size(16), aligned(4), may_alias));
  auto in = [](const float* p) -> Four {
    return *reinterpret_cast<const LooseFour*>(p);
  };
  auto out = [](float* p, Four v) { *reinterpret_cast<LooseFour*>(p) = v; };
  const int64_t whole_rows = rows / 4 * 4, whole_cols = cols / 4 * 4;
  // Strips of 16 columns keep the written rows in the first-level cache.
  for (int64_t strip = 0; strip < whole_cols; strip += 16) {
    const int64_t end = strip + 16 < whole_cols ? strip + 16 : whole_cols;
    for (int64_t r = 0; r < whole_rows; r += 4) {
      for (int64_t c = strip; c < end; c += 4) {
        const float* p = x + r * ldx + c;
        float* q = y + c * ldy + r;
        const Four a = in(p), b = in(p + ldx), d = in(p + 2 * ldx),
                   e = in(p + 3 * ldx);
        const Four ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
        const Four ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        const Four de0 = __builtin_shufflevector(d, e, 0, 4, 1, 5);
        const Four de1 = __builtin_shufflevector(d, e, 2, 6, 3, 7);
        out(q, __builtin_shufflevector(ab0, de0, 0, 1, 4, 5));
        out(q + ldy, __builtin_shufflevector(ab0, de0, 2, 3, 6, 7));
        out(q + 2 * ldy, __builtin_shufflevector(ab1, de1, 0, 1, 4, 5));
        out(q + 3 * ldy, __builtin_shufflevector(ab1, de1, 2, 3, 6, 7));
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < whole_rows ? whole_cols : 0; c < cols; ++c) {
      y[c * ldy + r] = x[r * ldx + c];
    }
  }
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_ELEMENTWISE_H_
