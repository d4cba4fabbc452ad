// The loops of expressions; included once per instruction set.

#ifndef BERTH_BACKENDS_CPU_ISA_EXPR_H_
#define BERTH_BACKENDS_CPU_ISA_EXPR_H_

#include "backends/cpu/isa/elementwise.h"
#include "backends/cpu/isa/plain.h"
#include "backends/cpu/isa/power.h"
#include "expr/block_ops.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

using expr::Code;

struct Log1p {
  BERTH_INLINE F apply(F x) {
    // log(u) x / (u - 1) undoes the rounding of u = 1 + x.
    const F u = 1.0f + x;
    const F y = poly::log<A>(u) * (x / (u - 1.0f));
    return A::select((u == 1.0f) | (u == kInfinity), x, y);
  }
};
struct Sign {
  BERTH_INLINE F apply(F x) {
    const F one = A::set(1.0f);
    const F y = A::select(x > 0.0f, one, F{}) - A::select(x < 0.0f, one, F{});
    return A::select(x != x, x, y);
  }
};

template <class Op>
void block1(const void* a, const void*, const void*, void* y, int64_t n) {
  unary<Op>(static_cast<const float*>(a), static_cast<float*>(y), n);
}
template <class Op>
void block2(const void* a, const void* b, const void*, void* y, int64_t n) {
  Binary<Op>::same(static_cast<const float*>(a), static_cast<const float*>(b),
                   static_cast<float*>(y), n);
}

// Outer(Inner(a, b)), and both orders of Outer(Inner(a, b), c).
template <class Inner, class Outer>
void chain1(const void* a, const void* b, const void*, void* y, int64_t n) {
  const auto *p = static_cast<const float*>(a),
             *q = static_cast<const float*>(b);
  auto* out = static_cast<float*>(y);
  for_vectors(n, [=](int64_t i, auto part) {
    part.store(out + i,
               Outer::apply(Inner::apply(part.load(p + i), part.load(q + i))));
  });
}
template <class Inner, class Outer, bool kRight>
void chain2(const void* a, const void* b, const void* c, void* y, int64_t n) {
  const auto *p = static_cast<const float*>(a),
             *q = static_cast<const float*>(b);
  const auto* r = static_cast<const float*>(c);
  auto* out = static_cast<float*>(y);
  for_vectors(n, [=](int64_t i, auto part) {
    const F inner = Inner::apply(part.load(p + i), part.load(q + i));
    const F other = part.load(r + i);
    part.store(out + i, kRight ? Outer::apply(other, inner)
                               : Outer::apply(inner, other));
  });
}

inline void stream(const void* x, void* y, int64_t bytes) {
#if defined(__x86_64__)
  auto* to = static_cast<char*>(y);
  auto* from = static_cast<const char*>(x);
  constexpr int64_t kWide = 4 * kLanes;
  const auto past = reinterpret_cast<uintptr_t>(to) % kWide;
  int64_t head = past == 0 ? 0 : kWide - static_cast<int64_t>(past);
  if (head > bytes) head = bytes;
  __builtin_memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + kWide <= bytes; i += kWide) {
    F v;
    __builtin_memcpy(&v, from + i, sizeof v);
    auto* p = reinterpret_cast<float*>(to + i);
#if defined(__AVX512F__)
    _mm512_stream_ps(p, v);
#elif defined(__AVX2__)
    _mm256_stream_ps(p, v);
#else
    _mm_stream_ps(p, v);
#endif
  }
  __builtin_memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
#else
  __builtin_memcpy(y, x, static_cast<size_t>(bytes));
#endif
}

inline void fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

inline void fill_any(const void* x, void* y, size_t size, int64_t n) {
  if (size == 4) return fill_with<int32_t>(x, y, n);
  if (size == 8) return fill_with<int64_t>(x, y, n);
  __builtin_memset(y, *static_cast<const unsigned char*>(x),
                   static_cast<size_t>(n));
}

class ExprTable {
 public:
  constexpr ExprTable() {
    integers<int32_t>(2);
    integers<int64_t>(3);
    integers<uint8_t>(4);
    floats<double, DoubleMath>(1);
    floats<float, FloatMath>(0);
    singles();
    bools();
    casts();
    pairs();
    ops.fill = fill_any;
    ops.stream = stream;
    ops.fence = fence;
  }
  expr::BlockOps ops{};

 private:
  constexpr void set(Code code, int type, expr::BlockFn fn) {
    ops.fn[static_cast<int>(code)][type] = fn;
  }

  template <class T>
  constexpr void common(int t) {
    set(Code::kRelu, t, plain1<T, PlainRelu>);
    set(Code::kNeg, t, plain1<T, PlainNeg>);
    set(Code::kAbs, t, plain1<T, PlainAbs>);
    set(Code::kSign, t, plain1<T, PlainSign>);
    set(Code::kSquare, t, plain1<T, PlainSquare>);
    set(Code::kAdd, t, plain2<T, PlainAdd>);
    set(Code::kSub, t, plain2<T, PlainSub>);
    set(Code::kMul, t, plain2<T, PlainMul>);
    set(Code::kMax, t, plain2<T, PlainMax>);
    set(Code::kMin, t, plain2<T, PlainMin>);
    set(Code::kReluGrad, t, plain2<T, PlainReluGrad>);
    set(Code::kLess, t, compare<T, Less>);
    set(Code::kLessEqual, t, compare<T, LessEqual>);
    set(Code::kGreater, t, compare<T, Greater>);
    set(Code::kGreaterEqual, t, compare<T, GreaterEqual>);
    set(Code::kKeep, t, keep<T>);
    any<T>(t);
  }
  template <class T>
  constexpr void any(int t) {
    set(Code::kEqual, t, compare<T, Equal>);
    set(Code::kNotEqual, t, compare<T, NotEqual>);
    set(Code::kSelect, t, select<T>);
  }
  template <class T>
  constexpr void integers(int t) {
    common<T>(t);
  }
  template <class T, class Math>
  constexpr void floats(int t) {
    common<T>(t);
    set(Code::kSigmoid, t, plain1<T, typename Math::Sigmoid>);
    set(Code::kTanh, t, plain1<T, typename Math::Tanh>);
    set(Code::kExp, t, plain1<T, typename Math::Exp>);
    set(Code::kLog, t, plain1<T, typename Math::Log>);
    set(Code::kLog1p, t, plain1<T, typename Math::Log1p>);
    set(Code::kSqrt, t, plain1<T, typename Math::Sqrt>);
    set(Code::kRsqrt, t, plain1<T, typename Math::Rsqrt>);
    set(Code::kErf, t, plain1<T, typename Math::Erf>);
    set(Code::kFloor, t, plain1<T, typename Math::Floor>);
    set(Code::kPow, t, plain2<T, typename Math::Pow>);
    set(Code::kReciprocal, t, plain1<T, PlainReciprocal>);
    set(Code::kDiv, t, plain2<T, PlainDiv>);
  }
  // Ops with a vector form of their own.
  constexpr void singles() {
    set(Code::kRelu, 0, block1<Relu>);
    set(Code::kSigmoid, 0, block1<Sigmoid>);
    set(Code::kTanh, 0, block1<Tanh>);
    set(Code::kGeluTanh, 0, block1<GeluTanh>);
    set(Code::kGeluErf, 0, block1<GeluErf>);
    set(Code::kExp, 0, block1<Exp>);
    set(Code::kLog, 0, block1<Log>);
    set(Code::kLog1p, 0, block1<Log1p>);
    set(Code::kSqrt, 0, block1<Sqrt>);
    set(Code::kRsqrt, 0, block1<Rsqrt>);
    set(Code::kErf, 0, block1<Erf>);
    set(Code::kPow, 0, powers);
    set(Code::kNeg, 0, block1<Neg>);
    set(Code::kAbs, 0, block1<Abs>);
    set(Code::kSign, 0, block1<Sign>);
    set(Code::kSquare, 0, block1<Square>);
    set(Code::kReciprocal, 0, block1<Reciprocal>);
    set(Code::kAdd, 0, block2<Add>);
    set(Code::kSub, 0, block2<Sub>);
    set(Code::kMul, 0, block2<Mul>);
    set(Code::kDiv, 0, block2<Div>);
    set(Code::kMax, 0, block2<Max>);
    set(Code::kMin, 0, block2<Min>);
    set(Code::kReluGrad, 0, block2<ReluGrad>);
    set(Code::kGeluTanhGrad, 0, block2<GeluTanhGrad>);
    set(Code::kGeluErfGrad, 0, block2<GeluErfGrad>);
  }
  constexpr void bools() {
    any<uint8_t>(5);
    set(Code::kNot, 5, plain1<uint8_t, Not>);
    set(Code::kAnd, 5, plain2<uint8_t, And>);
    set(Code::kOr, 5, plain2<uint8_t, Or>);
  }
  template <class From>
  constexpr void casts_from(int t) {
    ops.cast[t][0] = convert<From, float>;
    ops.cast[t][1] = convert<From, double>;
    ops.cast[t][2] = convert<From, int32_t>;
    ops.cast[t][3] = convert<From, int64_t>;
    ops.cast[t][4] = convert<From, uint8_t>;
    ops.cast[t][5] = to_bool<From>;
  }
  constexpr void casts() {
    casts_from<float>(0);
    casts_from<double>(1);
    casts_from<int32_t>(2);
    casts_from<int64_t>(3);
    casts_from<uint8_t>(4);
    casts_from<uint8_t>(5);  // a bool is 0 or 1
  }

  constexpr void pair(Code first, Code second, bool right, expr::BlockFn fn) {
    ops.pairs[num_pairs_++] = {first, second, right, fn};
  }
  template <class Inner>
  constexpr void outers(Code inner) {
    pair(inner, Code::kAdd, false, chain2<Inner, Add, false>);
    pair(inner, Code::kAdd, true, chain2<Inner, Add, true>);
    pair(inner, Code::kSub, false, chain2<Inner, Sub, false>);
    pair(inner, Code::kSub, true, chain2<Inner, Sub, true>);
    pair(inner, Code::kMul, false, chain2<Inner, Mul, false>);
    pair(inner, Code::kMul, true, chain2<Inner, Mul, true>);
  }
  constexpr void pairs() {
    outers<Add>(Code::kAdd);
    outers<Mul>(Code::kMul);
    outers<Sub>(Code::kSub);
    pair(Code::kAdd, Code::kRelu, false, chain1<Add, Relu>);
    pair(Code::kAdd, Code::kGeluTanh, false, chain1<Add, GeluTanh>);
    pair(Code::kAdd, Code::kGeluErf, false, chain1<Add, GeluErf>);
    pair(Code::kAdd, Code::kSigmoid, false, chain1<Add, Sigmoid>);
    pair(Code::kAdd, Code::kTanh, false, chain1<Add, Tanh>);
  }
  int num_pairs_ = 0;
};

inline constexpr ExprTable kExprTable;

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_EXPR_H_
