// Special functions. The first part is of both float types; the second is
// computed in double precision where the card has it. Behind math.cl.

// As expr/lower.cc takes it apart, whose bits fused ops have.
FN f32 f32_EXPM1(f32 x) {
  const f32 t = f32_TANH(f32_MUL(x, 0.5f));
  const f32 near = f32_DIV(f32_ADD(t, t), f32_SUB(1.0f, t));
  return x > 1.0f ? f32_SUB(f32_EXP(x), 1.0f) : near;
}

#define FUNCTIONS_OF(t)                                                       \
  FN t t##_SOFTPLUS(t x) {                                                    \
    return t##_ADD(t##_RELU(x), t##_LOG1P(t##_EXP(-t##_FABS(x))));            \
  }                                                                           \
  FN t t##_SOFTSIGN(t x) { return x / (t##_FABS(x) + 1); }                    \
  FN t t##_ELU(t x) { return x > 0 ? x : t##_EXPM1(x); }                      \
  FN t t##_SELU(t x) {                                                        \
    const t scale = (t)LIT(1.0507009873554804934193349852946);                \
    const t below = (t)LIT(1.7580993408473768599402175208123);                \
    return x > 0 ? t##_MUL(x, scale) : t##_MUL(t##_EXPM1(x), below);          \
  }                                                                           \
  FN t t##_RELU6(t x) { return x > 6 ? (t)6 : t##_RELU(x); }                  \
  FN t t##_LEAKY_RELU(t x, t alpha) { return x > 0 ? x : alpha * x; }         \
  FN t t##_DIV_NO_NAN(t a, t b) { return b == 0 ? (t)0 : a / b; }             \
  FN t t##_MUL_NO_NAN(t a, t b) { return b == 0 ? (t)0 : a * b; }             \
  FN t t##_XLOGY(t x, t y) { return x == 0 ? (t)0 : x * t##_LOG(y); }         \
  FN t t##_XLOG1PY(t x, t y) { return x == 0 ? (t)0 : x * t##_LOG1P(y); }     \
  FN t t##_XDIVY(t x, t y) { return x == 0 ? (t)0 : x / y; }                  \
  FN u8 t##_IS_NAN(t x) { return (u8)(x != x); }                              \
  FN u8 t##_IS_INF(t x) { return (u8)(t##_FABS(x) == t##_INF); }              \
  FN u8 t##_IS_FINITE(t x) { return (u8)(t##_FABS(x) < t##_INF); }
#define NEXT_AFTER_OF(t, bits, AS_BITS, AS_FLOAT)                             \
  FN t t##_NEXT_AFTER(t a, t b) {                                             \
    if (a != a) return a;                                                     \
    if (b != b || a == b) return b;                                           \
    if (a == 0) return t##_COPYSIGN(AS_FLOAT((bits)1), b);                    \
    const bits step = (a < b) == (a > 0) ? 1 : -1;                            \
    return AS_FLOAT(AS_BITS(a) + step);                                       \
  }

#if HAS_F64
#define REAL f64
#define LIT(x) x
#else
#define REAL f32
#define LIT(x) x##f
#endif
#define REAL_(name) MATH(REAL, name)

FUNCTIONS_OF(f32)
NEXT_AFTER_OF(f32, i32, AS_I32, AS_F32)
#if HAS_F64
FUNCTIONS_OF(f64)
NEXT_AFTER_OF(f64, i64, AS_I64, AS_F64)
#endif

FN REAL REAL_(FLOOR_DIV)(REAL a, REAL b) { return REAL_(FLOOR)(a / b); }
FN REAL REAL_(FLOOR_MOD)(REAL a, REAL b) {
  const REAL rest = REAL_(FMOD)(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
FN REAL REAL_(TRUNCATE_MOD)(REAL a, REAL b) { return REAL_(FMOD)(a, b); }

#define FUNCTIONS_PI LIT(3.14159265358979323846)

// B(2), B(4), ...
CONSTANT REAL kBernoulli[8] = {
    LIT(0.16666666666666666667),  LIT(-0.033333333333333333333),
    LIT(0.023809523809523809524), LIT(-0.033333333333333333333),
    LIT(0.075757575757575757576), LIT(-0.25311355311355311355),
    LIT(1.1666666666666666667),   LIT(-7.0921568627450980392)};

// Winitzki's estimate of the y >= 0 with 1 - erf(y)^2 = exp(log_rest).
FN REAL erf_first_guess(REAL log_rest) {
  const REAL a = LIT(0.147);
  const REAL t = 2 / (FUNCTIONS_PI * a) + log_rest / 2;
  const REAL inner = REAL_(SQRT)(t * t - log_rest / a) - t;
  return REAL_(SQRT)(inner > 0 ? inner : (REAL)0);
}
// Halley's steps from there to the y with erf(y) = x, or erfc(y) = x.
FN REAL erf_polish(REAL y, REAL x, i32 complement) {
  for (i32 i = 0; i < 4; ++i) {
    const REAL slope = LIT(1.12837916709551257390) * REAL_(EXP)(-y * y);
    if (slope == 0) break;
    const REAL error =
        complement ? x - REAL_(ERFC)(y) : REAL_(LIBM_ERF)(y) - x;
    const REAL by = error / slope;
    y -= by / (1 + y * by);
  }
  return y;
}
// For q in [0, 1].
FN REAL erfc_inverse(REAL q) {
  if (q == 0) return REAL_(INF);
  return erf_polish(erf_first_guess(REAL_(LIBM_LOG)(q * (2 - q))), q, 1);
}
FN REAL REAL_(ERFINV)(REAL x) {
  const REAL a = REAL_(FABS)(x);
  if (!(a <= 1)) return REAL_(QNAN);
  const REAL y = a > LIT(0.5)
                     ? erfc_inverse(1 - a)
                     : erf_polish(erf_first_guess(REAL_(LOG1P)(-a * a)), a, 0);
  return REAL_(COPYSIGN)(y, x);
}
FN REAL REAL_(NDTRI)(REAL p) {
  const REAL root = LIT(1.41421356237309504880);
  if (!(p >= 0 && p <= 1)) return REAL_(QNAN);
  if (p < LIT(0.25)) return -root * erfc_inverse(2 * p);
  if (p > LIT(0.75)) return root * erfc_inverse(2 * (1 - p));
  return root * REAL_(ERFINV)(2 * p - 1);
}

// For x > 0.
FN REAL digamma_positive(REAL x) {
  REAL shift = 0;
  for (; x < 12; x += 1) shift -= 1 / x;
  REAL series = 0, power = 1;
  for (i32 k = 0; k < 8; ++k) {
    power /= x * x;
    series += kBernoulli[k] / (2 * (k + 1)) * power;
  }
  return shift + REAL_(LIBM_LOG)(x) - LIT(0.5) / x - series;
}
FN REAL REAL_(DIGAMMA)(REAL x) {
  if (x == 0) return -REAL_(COPYSIGN)(REAL_(INF), x);
  if (x < 0) {
    const REAL fraction = x - REAL_(FLOOR)(x);
    // Of -inf it is NaN.
    if (!(fraction > 0)) return REAL_(QNAN);
    return digamma_positive(1 - x) -
           FUNCTIONS_PI / REAL_(TAN)(FUNCTIONS_PI * fraction);
  }
  return digamma_positive(x);
}

// For q > 0 and s > 1: a sum of the first terms, Euler and Maclaurin's
// formula for the rest, which begins where its series converges.
FN REAL zeta_positive(REAL s, REAL q) {
  REAL sum = 0;
  const REAL begin = s + 12 < 2000 ? s + 12 : (REAL)2000;
  for (; q < begin; q += 1) {
    const REAL term = REAL_(LIBM_POW)(q, -s);
    sum += term;
    if (term < LIT(1e-18) * sum) return sum;
  }
  const REAL power = REAL_(LIBM_POW)(q, -s);
#if !HAS_F64
  if (power == 0) return sum;  // s * s may be too large
#endif
  sum += power * q / (s - 1) + power / 2;
  REAL factor = power * s / q;  // s (s+1) ... / (2j)! q^-(s+2j-1)
  REAL factorial = 2;
  for (i32 j = 0; j < 8; ++j) {
    const REAL m = 2 * (REAL)(j + 1);
    sum += kBernoulli[j] * factor / factorial;
    factor *= (s + m - 1) * (s + m) / (q * q);
    factorial *= (m + 1) * (m + 2);
  }
  return sum;
}
FN REAL REAL_(ZETA)(REAL s, REAL q) {
  if (s == 1) return REAL_(INF);
  if (!(s > 1) || q != q) return REAL_(QNAN);
  if (q > 0) {
    if (q == REAL_(INF)) return 0;
    if (s == REAL_(INF)) return q > 1 ? (REAL)0 : q < 1 ? REAL_(INF) : (REAL)1;
    return zeta_positive(s, q);
  }
  const REAL whole = REAL_(FLOOR)(q);
  if (q == whole) return REAL_(INF);
  if (s != REAL_(FLOOR)(s) || s == REAL_(INF)) return REAL_(QNAN);
  // The terms below 0 are those of -q, with the sign of (-1)^s.
  const REAL above = q - whole, terms = -whole;
  const REAL below =
      zeta_positive(s, 1 - above) - zeta_positive(s, terms + 1 - above);
  return zeta_positive(s, above) +
         (REAL_(FMOD)(s, 2) == 0 ? below : -below);
}
FN REAL REAL_(POLYGAMMA)(REAL n, REAL x) {
  if (!(n >= 0) || n != REAL_(FLOOR)(n)) return REAL_(QNAN);
  if (n == 0) return REAL_(DIGAMMA)(x);
  const REAL value = REAL_(EXP)(REAL_(LGAMMA)(n + 1)) * REAL_(ZETA)(n + 1, x);
  return REAL_(FMOD)(n, 2) == 0 ? -value : value;
}
