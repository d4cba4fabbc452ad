// Functions of numbers, named after what they compute in: f32_EXP, i64_MAX.
// A narrow type goes by its T_C: MATH(T_C, EXP)(x). Those of f32 for which the
// CPU has a polynomial are that polynomial (base/polynomial.h, cpu/isa), fused
// multiply-adds and all; all others are the device's own, by the list below.

#define MATH_PASTE(t, name) t##_##name
#define MATH(t, name) MATH_PASTE(t, name)

// The device's functions: OpenCL has one name for all types.
#if defined(__OPENCL_VERSION__)
#define MATH_F32(name, wide, narrow) \
  FN f32 f32_##name(f32 x) { return wide(x); }
#define MATH2_F32(name, wide, narrow) \
  FN f32 f32_##name(f32 x, f32 y) { return wide(x, y); }
#else
#define MATH_F32(name, wide, narrow) \
  FN f32 f32_##name(f32 x) { return narrow(x); }
#define MATH2_F32(name, wide, narrow) \
  FN f32 f32_##name(f32 x, f32 y) { return narrow(x, y); }
#endif
#if HAS_F64
#define MATH_F64(name, wide) \
  FN f64 f64_##name(f64 x) { return wide(x); }
#define MATH2_F64(name, wide) \
  FN f64 f64_##name(f64 x, f64 y) { return wide(x, y); }
#else
#define MATH_F64(name, wide)
#define MATH2_F64(name, wide)
#endif
#define MATH_BOTH(name, wide, narrow) \
  MATH_F32(name, wide, narrow)        \
  MATH_F64(name, wide)
#define MATH2_BOTH(name, wide, narrow) \
  MATH2_F32(name, wide, narrow)        \
  MATH2_F64(name, wide)

MATH_BOTH(SIN, sin, sinf)
MATH_BOTH(COS, cos, cosf)
MATH_BOTH(TAN, tan, tanf)
MATH_BOTH(ASIN, asin, asinf)
MATH_BOTH(ACOS, acos, acosf)
MATH_BOTH(ATAN, atan, atanf)
MATH_BOTH(SINH, sinh, sinhf)
MATH_BOTH(COSH, cosh, coshf)
MATH_BOTH(ASINH, asinh, asinhf)
MATH_BOTH(ACOSH, acosh, acoshf)
MATH_BOTH(ATANH, atanh, atanhf)
MATH_F64(EXPM1, expm1)
MATH_BOTH(ERFC, erfc, erfcf)
MATH_BOTH(LGAMMA, lgamma, lgammaf)
MATH_BOTH(CEIL, ceil, ceilf)
MATH_BOTH(LIBM_ERF, erf, erff)
MATH_BOTH(LIBM_LOG, log, logf)
MATH_F64(EXP, exp)
MATH_F64(LOG, log)
MATH_F64(LIBM_LOG1P, log1p)
MATH_F64(TANH, tanh)
MATH_F64(ERF, erf)
MATH2_BOTH(ATAN2, atan2, atan2f)
MATH2_BOTH(FMOD, fmod, fmodf)
MATH2_BOTH(HYPOT, hypot, hypotf)
MATH2_BOTH(LIBM_POW, pow, powf)

#define f32_INF AS_F32(0x7f800000)
#define f32_QNAN AS_F32(0x7fc00000)
FN f32 f32_FABS(f32 x) { return AS_F32(AS_I32(x) & 0x7fffffff); }
FN f32 f32_COPYSIGN(f32 x, f32 sign) {
  return AS_F32((AS_I32(x) & 0x7fffffff) | (AS_I32(sign) & (-2147483647 - 1)));
}
FN f32 f32_SQRT(f32 x) { return F32_SQRT(x); }
FN f32 f32_FLOOR(f32 x) { return F32_FLOOR(x); }
FN f32 f32_RINT(f32 x) { return F32_RINT(x); }
#if HAS_F64
#define f64_INF AS_F64(0x7ff0000000000000L)
#define f64_QNAN AS_F64(0x7ff8000000000000L)
FN f64 f64_FABS(f64 x) { return AS_F64(AS_I64(x) & 0x7fffffffffffffffL); }
FN f64 f64_COPYSIGN(f64 x, f64 sign) {
  return AS_F64((AS_I64(x) & 0x7fffffffffffffffL) |
                (AS_I64(sign) & (-0x7fffffffffffffffL - 1)));
}
FN f64 f64_SQRT(f64 x) { return F64_SQRT(x); }
FN f64 f64_FLOOR(f64 x) { return F64_FLOOR(x); }
FN f64 f64_RINT(f64 x) { return F64_RINT(x); }
// Not every device knows that of the smallest numbers.
FN f64 f64_LOG1P(f64 x) {
  return f64_FABS(x) < 1e-17 ? x : f64_LIBM_LOG1P(x);
}
FN f64 f64_POW(f64 a, f64 b) { return f64_LIBM_POW(a, b); }
// Rounded once from double, as good C libraries do.
FN f32 f32_POW(f32 a, f32 b) { return (f32)f64_LIBM_POW((f64)a, (f64)b); }
#else
FN f32 f32_POW(f32 a, f32 b) { return f32_LIBM_POW(a, b); }
#endif

FN f32 f32_EXP(f32 x) {
  x = x < -105.0f ? -105.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const f32 shifted = F32_MADD(x, 1.44269504f, 12582912.0f);
  const f32 n = shifted - 12582912.0f;
  f32 r = F32_MADD(n, -0.693359375f, x);
  r = F32_MADD(n, 2.12194440e-4f, r);
  f32 p = 0.00139012934f;
  p = F32_MADD(p, r, 0.00836317021f);
  p = F32_MADD(p, r, 0.0416668538f);
  p = F32_MADD(p, r, 0.166665771f);
  p = F32_MADD(p, r, 0.499999996f);
  p = F32_MADD(p, r * r, r) + 1.0f;
  // Two factors, so that results may be denormal or overflow to infinity.
  const i32 power = (i32)(AS_U32(shifted) - 0x4b400000u);
  const i32 half_power = power >> 1;
  return p * AS_F32((u32)(half_power + 127) << 23) *
         AS_F32((u32)(power - half_power + 127) << 23);
}

FN f32 f32_LOG(f32 x) {
  const i32 tiny = x < 1.17549435e-38f;
  const f32 scaled = tiny ? x * 8388608.0f : x;
  // m in [sqrt(1/2), sqrt(2)): the exponent is counted from sqrt(1/2) on.
  const i32 bits = (AS_I32(scaled) & 0x7fffffff) - 0x3f3504f3;
  const f32 exponent = (f32)(bits >> 23) + (tiny ? -23.0f : 0.0f);
  const f32 t = AS_F32((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  f32 p = 0.0703758612f;
  p = F32_MADD(p, t, -0.115145598f);
  p = F32_MADD(p, t, 0.116770117f);
  p = F32_MADD(p, t, -0.12420149f);
  p = F32_MADD(p, t, 0.142493223f);
  p = F32_MADD(p, t, -0.166680573f);
  p = F32_MADD(p, t, 0.200007148f);
  p = F32_MADD(p, t, -0.24999994f);
  p = F32_MADD(p, t, 0.333333312f);
  const f32 square = t * t;
  f32 tail = F32_MADD(exponent, -2.12194440e-4f, p * square * t);
  tail = F32_MADD(square, -0.5f, tail);
  f32 y = F32_MADD(exponent, 0.693359375f, t + tail);
  y = x == f32_INF ? f32_INF : y;
  y = x == 0.0f ? -f32_INF : y;
  y = x < 0.0f ? f32_QNAN : y;
  return x != x ? x : y;
}

FN f32 f32_LOG1P(f32 x) {
  // log(u) x / (u - 1) undoes the rounding of u = 1 + x.
  const f32 u = 1.0f + x;
  const f32 y = f32_LOG(u) * (x / (u - 1.0f));
  return u == 1.0f || u == f32_INF ? x : y;
}

FN f32 f32_TANH(f32 x) {
  f32 c = x > 9.02f ? 9.02f : x;
  c = c < -9.02f ? -9.02f : c;
  const f32 z = c * c;
  f32 p = 1.33190158e-08f;
  p = F32_MADD(p, z, 2.05834379e-05f);
  p = F32_MADD(p, z, 0.0034940318f);
  p = F32_MADD(p, z, 0.133797156f);
  p = F32_MADD(p, z, 0.999999979f);
  f32 q = 7.76199562e-07f;
  q = F32_MADD(q, z, 0.000328308841f);
  q = F32_MADD(q, z, 0.0258710626f);
  q = F32_MADD(q, z, 0.467130308f);
  q = F32_MADD(q, z, 1.0f);
  f32 y = c * p / q;
  y = y > 1.0f ? 1.0f : y;
  return y < -1.0f ? -1.0f : y;
}

FN f32 f32_ERF(f32 x) {
  f32 c = x > 3.92f ? 3.92f : x;
  c = c < -3.92f ? -3.92f : c;
  const f32 z = c * c;
  f32 p = 2.05008676e-06f;
  p = F32_MADD(p, z, 0.000284883634f);
  p = F32_MADD(p, z, 0.0037656435f);
  p = F32_MADD(p, z, 0.052748805f);
  p = F32_MADD(p, z, 0.190407043f);
  p = F32_MADD(p, z, 1.12837915f);
  f32 q = 3.80917575e-05f;
  q = F32_MADD(q, z, 0.00116254255f);
  q = F32_MADD(q, z, 0.0149692691f);
  q = F32_MADD(q, z, 0.114109355f);
  q = F32_MADD(q, z, 0.502076589f);
  q = F32_MADD(q, z, 1.0f);
  f32 y = c * p / q;
  y = y > 1.0f ? 1.0f : y;
  return y < -1.0f ? -1.0f : y;
}

FN f32 f32_SIGMOID(f32 x) { return 1.0f / (1.0f + f32_EXP(-x)); }

// The argument of gelu's tanh: sqrt(2/pi) (x + 0.044715 x^3).
FN f32 f32_GELU_INNER(f32 x) {
  return 0.79788456f * F32_MADD(0.044715f * x * x, x, x);
}
FN f32 f32_GELU_TANH(f32 x) {
  // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), which does not cancel.
  return x / (1.0f + f32_EXP(-2.0f * f32_GELU_INNER(x)));
}
FN f32 f32_GELU_ERF(f32 x) {
  return 0.5f * x * (1.0f + f32_ERF(x * 0.70710678f));
}
FN f32 f32_GELU_TANH_GRAD(f32 x, f32 dy) {
  const f32 s = f32_SIGMOID(2.0f * f32_GELU_INNER(x));
  const f32 inner = 0.79788456f * F32_MADD(3.0f * 0.044715f * x, x, 1.0f);
  return dy * s * F32_MADD(2.0f * x * inner, 1.0f - s, 1.0f);
}
FN f32 f32_GELU_ERF_GRAD(f32 x, f32 dy) {
  const f32 density = 0.39894228f * f32_EXP(-0.5f * x * x);
  const f32 phi = 0.5f * (1.0f + f32_ERF(x * 0.70710678f));
  return dy * F32_MADD(x, density, phi);
}

#if HAS_F64
FN f64 f64_SIGMOID(f64 x) { return 1.0 / (1.0 + f64_EXP(-x)); }
FN f64 f64_GELU_INNER(f64 x) {
  return 0.79788456080286535588 * (x + 0.044715 * x * x * x);
}
FN f64 f64_GELU_TANH(f64 x) {
  return 0.5 * x * (1.0 + f64_TANH(f64_GELU_INNER(x)));
}
FN f64 f64_NORMAL_CDF(f64 x) {
  return 0.5 * f64_ERFC(-x * 0.70710678118654752440);
}
FN f64 f64_GELU_ERF(f64 x) { return x * f64_NORMAL_CDF(x); }
FN f64 f64_GELU_TANH_GRAD(f64 x, f64 dy) {
  const f64 t = f64_TANH(f64_GELU_INNER(x));
  const f64 slope = 0.79788456080286535588 * (1.0 + 3.0 * 0.044715 * x * x);
  return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope);
}
FN f64 f64_GELU_ERF_GRAD(f64 x, f64 dy) {
  const f64 density = f64_EXP(-0.5 * x * x) * 0.39894228040143267794;
  return dy * (f64_NORMAL_CDF(x) + x * density);
}
#endif

// What every type has.
#define MATH_ANY(t)                                                    \
  FN t t##_SQUARE(t x) { return t##_MUL(x, x); }                       \
  FN t t##_SQUARED_DIFFERENCE(t a, t b) {                              \
    return t##_SQUARE(t##_SUB(a, b));                                  \
  }                                                                    \
  FN t t##_RELU_GRAD(t dy, t x) { return x > t##_ZERO ? dy : t##_ZERO; } \
  FN t t##_KEEP(t x, u8 mask) { return mask != 0 ? x : t##_ZERO; }
#define MATH_WHOLE(t)                                                  \
  MATH_ANY(t)                                                          \
  FN t t##_RELU(t x) { return x > t##_ZERO ? x : t##_ZERO; }           \
  FN t t##_MAX(t a, t b) { return a > b ? a : b; }                     \
  FN t t##_MIN(t a, t b) { return a < b ? a : b; }                     \
  FN t t##_NEG(t x) { return t##_SUB(t##_ZERO, x); }                   \
  FN t t##_SAME(t x) { return x; }
// NaN wins.
#define MATH_FLOAT(t)                                                  \
  MATH_ANY(t)                                                          \
  FN t t##_RELU(t x) { return x <= t##_ZERO ? t##_ZERO : x; }          \
  FN t t##_MAX(t a, t b) {                                             \
    return a != a ? a : b != b ? b : a > b ? a : b;                    \
  }                                                                    \
  FN t t##_MIN(t a, t b) {                                             \
    return a != a ? a : b != b ? b : a < b ? a : b;                    \
  }                                                                    \
  FN t t##_NEG(t x) { return -x; }                                     \
  FN t t##_ABS(t x) { return t##_FABS(x); }                            \
  FN t t##_SIGN(t x) {                                                 \
    return x != x ? x : (t)((x > t##_ZERO) - (x < t##_ZERO));          \
  }                                                                    \
  FN t t##_RSQRT(t x) { return t##_ONE / t##_SQRT(x); }                \
  FN t t##_RECIPROCAL(t x) { return t##_ONE / x; }                     \
  FN t t##_GELU_TANH_SLOPE(t dy, t x) { return t##_GELU_TANH_GRAD(x, dy); } \
  FN t t##_GELU_ERF_SLOPE(t dy, t x) { return t##_GELU_ERF_GRAD(x, dy); }
MATH_FLOAT(f32)
#if HAS_F64
MATH_FLOAT(f64)
#endif
MATH_WHOLE(i32)
MATH_WHOLE(i64)
MATH_WHOLE(u8)
MATH_WHOLE(u64)
FN i32 i32_SIGN(i32 x) { return (x > 0) - (x < 0); }
FN i64 i64_SIGN(i64 x) { return (x > 0) - (x < 0); }
FN u8 u8_SIGN(u8 x) { return (u8)(x != 0); }
FN u64 u64_SIGN(u64 x) { return (u64)(x != 0); }
FN i32 i32_ABS(i32 x) { return x < 0 ? i32_NEG(x) : x; }
FN i64 i64_ABS(i64 x) { return x < 0 ? i64_NEG(x) : x; }
FN u8 u8_ABS(u8 x) { return x; }
FN u64 u64_ABS(u64 x) { return x; }
FN u8 b8_NOT(u8 x) { return (u8)(x == 0); }
FN u8 b8_AND(u8 a, u8 b) { return (u8)(a & b); }
FN u8 b8_OR(u8 a, u8 b) { return (u8)(a | b); }

// A float that a whole number cannot hold saturates; NaN becomes 0.
#define MATH_CONVERT(t, to, lowest, highest)                       \
  FN to t##_TO_##to(t x) {                                         \
    return x != x           ? (to)0                                \
           : x <= (t)lowest  ? to##_LOWEST                         \
           : x >= (t)highest ? to##_HIGHEST                        \
                             : (to)x;                              \
  }
#define MATH_CONVERTS(t)                                  \
  MATH_CONVERT(t, i32, -2147483648.0f, 2147483648.0f)     \
  MATH_CONVERT(t, i64, -9223372036854775808.0f, 9223372036854775808.0f) \
  MATH_CONVERT(t, u8, 0.0f, 255.0f)                       \
  MATH_CONVERT(t, i8, -128.0f, 127.0f)                    \
  MATH_CONVERT(t, i16, -32768.0f, 32767.0f)               \
  MATH_CONVERT(t, u16, 0.0f, 65535.0f)                    \
  MATH_CONVERT(t, u32, 0.0f, 4294967296.0f)               \
  MATH_CONVERT(t, u64, 0.0f, 18446744073709551616.0f)
MATH_CONVERTS(f32)
#if HAS_F64
MATH_CONVERTS(f64)
#endif
