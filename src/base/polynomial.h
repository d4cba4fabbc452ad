// exp, log, tanh, erf and sine polynomials for every width.
//
// One text serves scalars and vectors: `A` supplies the types and the few
// operations that differ (see ScalarArch). All routes therefore agree bit for
// bit, except that an A with hardware fused multiply-add rounds once where the
// others round twice. Largest error, in units in the last place, over the
// ranges where the result is a normal number: exp 2, log 1, tanh 6, erf 6,
// sigmoid 3. Infinities and NaN behave as in the C library. Pure functions.

#ifndef BERTH_BASE_POLYNOMIAL_H_
#define BERTH_BASE_POLYNOMIAL_H_

#include <cstdint>

namespace berth {

#define BERTH_INLINE [[gnu::always_inline]] static inline

// Width one. `I` holds 32-bit integers; masks are whatever comparison yields.
struct ScalarArch {
  using F = float;
  using I = int32_t;
  BERTH_INLINE F set(float x) { return x; }
  BERTH_INLINE F madd(F a, F b, F c) { return a * b + c; }
  BERTH_INLINE F select(bool mask, F a, F b) { return mask ? a : b; }
  BERTH_INLINE I as_int(F x) { return __builtin_bit_cast(I, x); }
  BERTH_INLINE F as_float(I x) { return __builtin_bit_cast(F, x); }
  BERTH_INLINE F to_float(I x) { return static_cast<F>(x); }
  BERTH_INLINE F sqrt(F x) { return __builtin_sqrtf(x); }
};

namespace poly {

// Adding 1.5 * 2^23 rounds to an integer that stands in the low bits.
inline constexpr float kRound = 12582912.0f;
inline constexpr int32_t kRoundBits = 0x4b400000;
inline constexpr float kLog2E = 1.44269504f;
// ln 2 in two pieces, the first with few enough bits for exact products.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;

template <class A>
BERTH_INLINE typename A::F exp(typename A::F x) {
  using F = typename A::F;
  using I = typename A::I;
  x = A::select(x < -105.0f, A::set(-105.0f), x);
  x = A::select(x > 89.0f, A::set(89.0f), x);
  const F shifted = A::madd(x, A::set(kLog2E), A::set(kRound));
  const F n = shifted - kRound;
  F r = A::madd(n, A::set(-kLn2High), x);
  r = A::madd(n, A::set(-kLn2Low), r);
  F p = A::set(0.00139012934f);
  p = A::madd(p, r, A::set(0.00836317021f));
  p = A::madd(p, r, A::set(0.0416668538f));
  p = A::madd(p, r, A::set(0.166665771f));
  p = A::madd(p, r, A::set(0.499999996f));
  p = A::madd(p, r * r, r) + 1.0f;
  // Two factors, so that results may be denormal or overflow to infinity.
  const I power = A::as_int(shifted) - kRoundBits;
  const I half = power >> 1;
  return p * A::as_float((half + 127) << 23) *
         A::as_float((power - half + 127) << 23);
}

template <class A>
BERTH_INLINE typename A::F log(typename A::F x) {
  using F = typename A::F;
  using I = typename A::I;
  const auto tiny = x < 1.17549435e-38f;
  const F scaled = A::select(tiny, x * 8388608.0f, x);
  // m in [sqrt(1/2), sqrt(2)): count the exponent from sqrt(1/2) on.
  // The sign goes: what is below zero becomes NaN at the end.
  const I bits = (A::as_int(scaled) & 0x7fffffff) - 0x3f3504f3;
  const F exponent =
      A::to_float(bits >> 23) + A::select(tiny, A::set(-23.0f), A::set(0.0f));
  const F t = A::as_float((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  F p = A::set(0.0703758612f);
  p = A::madd(p, t, A::set(-0.115145598f));
  p = A::madd(p, t, A::set(0.116770117f));
  p = A::madd(p, t, A::set(-0.12420149f));
  p = A::madd(p, t, A::set(0.142493223f));
  p = A::madd(p, t, A::set(-0.166680573f));
  p = A::madd(p, t, A::set(0.200007148f));
  p = A::madd(p, t, A::set(-0.24999994f));
  p = A::madd(p, t, A::set(0.333333312f));
  const F square = t * t;
  F tail = A::madd(exponent, A::set(kLn2Low), p * square * t);
  tail = A::madd(square, A::set(-0.5f), tail);
  F y = A::madd(exponent, A::set(kLn2High), t + tail);
  const F infinity = A::set(__builtin_inff());
  y = A::select(x == infinity, infinity, y);
  y = A::select(x == 0.0f, -infinity, y);
  y = A::select(x < 0.0f, A::set(__builtin_nanf("")), y);
  return A::select(x != x, x, y);
}

// Odd rational form x P(x^2) / Q(x^2): accurate near zero too.
template <class A>
BERTH_INLINE typename A::F tanh(typename A::F x) {
  using F = typename A::F;
  F c = A::select(x > 9.02f, A::set(9.02f), x);
  c = A::select(c < -9.02f, A::set(-9.02f), c);
  const F z = c * c;
  F p = A::set(1.33190158e-08f);
  p = A::madd(p, z, A::set(2.05834379e-05f));
  p = A::madd(p, z, A::set(0.0034940318f));
  p = A::madd(p, z, A::set(0.133797156f));
  p = A::madd(p, z, A::set(0.999999979f));
  F q = A::set(7.76199562e-07f);
  q = A::madd(q, z, A::set(0.000328308841f));
  q = A::madd(q, z, A::set(0.0258710626f));
  q = A::madd(q, z, A::set(0.467130308f));
  q = A::madd(q, z, A::set(1.0f));
  F y = c * p / q;
  y = A::select(y > 1.0f, A::set(1.0f), y);
  return A::select(y < -1.0f, A::set(-1.0f), y);
}

template <class A>
BERTH_INLINE typename A::F erf(typename A::F x) {
  using F = typename A::F;
  F c = A::select(x > 3.92f, A::set(3.92f), x);
  c = A::select(c < -3.92f, A::set(-3.92f), c);
  const F z = c * c;
  F p = A::set(2.05008676e-06f);
  p = A::madd(p, z, A::set(0.000284883634f));
  p = A::madd(p, z, A::set(0.0037656435f));
  p = A::madd(p, z, A::set(0.052748805f));
  p = A::madd(p, z, A::set(0.190407043f));
  p = A::madd(p, z, A::set(1.12837915f));
  F q = A::set(3.80917575e-05f);
  q = A::madd(q, z, A::set(0.00116254255f));
  q = A::madd(q, z, A::set(0.0149692691f));
  q = A::madd(q, z, A::set(0.114109355f));
  q = A::madd(q, z, A::set(0.502076589f));
  q = A::madd(q, z, A::set(1.0f));
  F y = c * p / q;
  y = A::select(y > 1.0f, A::set(1.0f), y);
  return A::select(y < -1.0f, A::set(-1.0f), y);
}

template <class A>
BERTH_INLINE typename A::F sigmoid(typename A::F x) {
  return 1.0f / (1.0f + exp<A>(-x));
}

// Sine and cosine of `turns` full turns, for turns in [0, 1).
template <class A>
BERTH_INLINE void sincos_turns(typename A::F turns, typename A::F* sine,
                               typename A::F* cosine) {
  using F = typename A::F;
  using I = typename A::I;
  // t in [-1/8, 1/8] of a turn plus `quarter` quarter turns; exact.
  const F shifted = A::madd(turns, A::set(4.0f), A::set(kRound));
  const F t = A::madd(shifted - kRound, A::set(-0.25f), turns);
  const I quarter = A::as_int(shifted);
  const F z = t * t;
  F s = A::set(-75.3935623f);
  s = A::madd(s, z, A::set(81.5923535f));
  s = A::madd(s, z, A::set(-41.3416615f));
  s = A::madd(s, z, A::set(6.28318529f)) * t;
  F c = A::set(59.2027958f);
  c = A::madd(c, z, A::set(-85.442298f));
  c = A::madd(c, z, A::set(64.9393107f));
  c = A::madd(c, z, A::set(-19.7392086f));
  c = A::madd(c, z, A::set(1.0f));
  const auto swap = (quarter & 1) != 0;
  const F sine_part = A::select(swap, c, s);
  const F cosine_part = A::select(swap, s, c);
  *sine = A::select((quarter & 2) != 0, -sine_part, sine_part);
  *cosine = A::select(((quarter + 1) & 2) != 0, -cosine_part, cosine_part);
}

}  // namespace poly
}  // namespace berth

#endif  // BERTH_BASE_POLYNOMIAL_H_
