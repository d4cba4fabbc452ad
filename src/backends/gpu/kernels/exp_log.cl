// exp and log of float32: base/polynomial.h.

FN f32 poly_exp_f32(f32 x) {
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

FN f32 poly_log_f32(f32 x) {
  const i32 tiny = x < 1.17549435e-38f;
  const f32 scaled = tiny ? x * 8388608.0f : x;
  // m in [sqrt(1/2), sqrt(2)): count the exponent from sqrt(1/2) on.
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
  const f32 infinity = AS_F32(0x7f800000);
  y = x == infinity ? infinity : y;
  y = x == 0.0f ? -infinity : y;
  y = x < 0.0f ? AS_F32(0x7fc00000) : y;
  return x != x ? x : y;
}
