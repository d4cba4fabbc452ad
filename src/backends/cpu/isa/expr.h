// The loops of expressions; included once per instruction set.

#ifndef BERTH_BACKENDS_CPU_ISA_EXPR_H_
#define BERTH_BACKENDS_CPU_ISA_EXPR_H_

#include "backends/cpu/isa/elementwise.h"
#include "backends/cpu/isa/plain.h"
#include "backends/cpu/isa/power.h"
#include "expr/block_ops.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

using expr::OpCode;

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
  constexpr void set(OpCode code, int type, expr::BlockFn fn) {
    ops.fn[static_cast<int>(code)][type] = fn;
  }

  template <class T>
  constexpr void common(int t) {
    set(OpCode::kRelu, t, plain1<T, PlainRelu>);
    set(OpCode::kNeg, t, plain1<T, PlainNeg>);
    set(OpCode::kAbs, t, plain1<T, PlainAbs>);
    set(OpCode::kSign, t, plain1<T, PlainSign>);
    set(OpCode::kSquare, t, plain1<T, PlainSquare>);
    set(OpCode::kAdd, t, plain2<T, PlainAdd>);
    set(OpCode::kSub, t, plain2<T, PlainSub>);
    set(OpCode::kMul, t, plain2<T, PlainMul>);
    set(OpCode::kMax, t, plain2<T, PlainMax>);
    set(OpCode::kMin, t, plain2<T, PlainMin>);
    set(OpCode::kReluGrad, t, plain2<T, PlainReluGrad>);
    set(OpCode::kLess, t, compare<T, Less>);
    set(OpCode::kLessEqual, t, compare<T, LessEqual>);
    set(OpCode::kGreater, t, compare<T, Greater>);
    set(OpCode::kGreaterEqual, t, compare<T, GreaterEqual>);
    set(OpCode::kKeep, t, keep<T>);
    any<T>(t);
  }
  template <class T>
  constexpr void any(int t) {
    set(OpCode::kEqual, t, compare<T, Equal>);
    set(OpCode::kNotEqual, t, compare<T, NotEqual>);
    set(OpCode::kSelect, t, select<T>);
  }
  template <class T>
  constexpr void integers(int t) {
    common<T>(t);
  }
  template <class T, class Math>
  constexpr void floats(int t) {
    common<T>(t);
    set(OpCode::kSigmoid, t, plain1<T, typename Math::Sigmoid>);
    set(OpCode::kTanh, t, plain1<T, typename Math::Tanh>);
    set(OpCode::kExp, t, plain1<T, typename Math::Exp>);
    set(OpCode::kLog, t, plain1<T, typename Math::Log>);
    set(OpCode::kLog1p, t, plain1<T, typename Math::Log1p>);
    set(OpCode::kSqrt, t, plain1<T, typename Math::Sqrt>);
    set(OpCode::kRsqrt, t, plain1<T, typename Math::Rsqrt>);
    set(OpCode::kErf, t, plain1<T, typename Math::Erf>);
    set(OpCode::kFloor, t, plain1<T, typename Math::Floor>);
    set(OpCode::kPow, t, plain2<T, typename Math::Pow>);
    set(OpCode::kReciprocal, t, plain1<T, PlainReciprocal>);
    set(OpCode::kDiv, t, plain2<T, PlainDiv>);
  }
  // Ops with a vector form of their own.
  constexpr void singles() {
    set(OpCode::kRelu, 0, block1<Relu>);
    set(OpCode::kSigmoid, 0, block1<Sigmoid>);
    set(OpCode::kTanh, 0, block1<Tanh>);
    set(OpCode::kGeluTanh, 0, block1<GeluTanh>);
    set(OpCode::kGeluErf, 0, block1<GeluErf>);
    set(OpCode::kExp, 0, block1<Exp>);
    set(OpCode::kLog, 0, block1<Log>);
    set(OpCode::kLog1p, 0, block1<Log1p>);
    set(OpCode::kSqrt, 0, block1<Sqrt>);
    set(OpCode::kRsqrt, 0, block1<Rsqrt>);
    set(OpCode::kErf, 0, block1<Erf>);
    set(OpCode::kPow, 0, powers);
    set(OpCode::kNeg, 0, block1<Neg>);
    set(OpCode::kAbs, 0, block1<Abs>);
    set(OpCode::kSign, 0, block1<Sign>);
    set(OpCode::kSquare, 0, block1<Square>);
    set(OpCode::kReciprocal, 0, block1<Reciprocal>);
    set(OpCode::kAdd, 0, block2<Plus>);
    set(OpCode::kSub, 0, block2<Sub>);
    set(OpCode::kMul, 0, block2<Mul>);
    set(OpCode::kDiv, 0, block2<Div>);
    set(OpCode::kMax, 0, block2<Max>);
    set(OpCode::kMin, 0, block2<Min>);
    set(OpCode::kReluGrad, 0, block2<ReluGrad>);
    set(OpCode::kGeluTanhGrad, 0, block2<GeluTanhGrad>);
    set(OpCode::kGeluErfGrad, 0, block2<GeluErfGrad>);
  }
  constexpr void bools() {
    any<uint8_t>(5);
    set(OpCode::kNot, 5, plain1<uint8_t, Not>);
    set(OpCode::kAnd, 5, plain2<uint8_t, And>);
    set(OpCode::kOr, 5, plain2<uint8_t, Or>);
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

  constexpr void pair(OpCode first, OpCode second, bool right,
                      expr::BlockFn fn) {
    ops.pairs[num_pairs_++] = {first, second, right, fn};
  }
  template <class Inner>
  constexpr void outers(OpCode inner) {
    pair(inner, OpCode::kAdd, false, chain2<Inner, Plus, false>);
    pair(inner, OpCode::kAdd, true, chain2<Inner, Plus, true>);
    pair(inner, OpCode::kSub, false, chain2<Inner, Sub, false>);
    pair(inner, OpCode::kSub, true, chain2<Inner, Sub, true>);
    pair(inner, OpCode::kMul, false, chain2<Inner, Mul, false>);
    pair(inner, OpCode::kMul, true, chain2<Inner, Mul, true>);
  }
  constexpr void pairs() {
    outers<Plus>(OpCode::kAdd);
    outers<Mul>(OpCode::kMul);
    outers<Sub>(OpCode::kSub);
    pair(OpCode::kAdd, OpCode::kRelu, false, chain1<Plus, Relu>);
    pair(OpCode::kAdd, OpCode::kGeluTanh, false, chain1<Plus, GeluTanh>);
    pair(OpCode::kAdd, OpCode::kGeluErf, false, chain1<Plus, GeluErf>);
    pair(OpCode::kAdd, OpCode::kSigmoid, false, chain1<Plus, Sigmoid>);
    pair(OpCode::kAdd, OpCode::kTanh, false, chain1<Plus, Tanh>);
  }
  int num_pairs_ = 0;
};

inline constexpr ExprTable kExprTable;

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_EXPR_H_
