// exp, log and the like of real types by the program's T.

#if WIDE
#define T_EXP(x) exp((f64)(x))
#define T_LOG(x) log((f64)(x))
#define T_LOG1P(x) log1p((f64)(x))
#define T_SQRT(x) F64_SQRT(x)
#else
// log(u) x / (u - 1) undoes the rounding of u = 1 + x.
FN f32 poly_log1p_f32(f32 x) {
  const f32 u = 1.0f + x;
  const f32 y = poly_log_f32(u) * (x / (u - 1.0f));
  return u == 1.0f ? x : y;
}
#define T_EXP(x) poly_exp_f32(x)
#define T_LOG(x) poly_log_f32(x)
#define T_LOG1P(x) poly_log1p_f32(x)
#define T_SQRT(x) F32_SQRT(x)
#endif
