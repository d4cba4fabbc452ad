// Complex numbers, computed in double precision where the card has it. Z is
// their type, RE that of their parts. Behind math.cl.

#if HAS_F64
#define Z c128
#define RE f64
#else
#define Z c64
#define RE f32
#endif
#define Z_(name) MATH(Z, name)
#define RE_(name) MATH(RE, name)

FN Z Z_(OF_PARTS)(RE re, RE im) {
  Z z;
  z.re = re;
  z.im = im;
  return z;
}
FN i32 z_is_nan(RE x) { return x != x; }
FN i32 z_is_inf(RE x) { return RE_(FABS)(x) == RE_(INF); }
FN i32 z_is_finite(RE x) { return RE_(FABS)(x) < RE_(INF); }

FN u8 Z_(EQ)(Z a, Z b) { return (u8)(a.re == b.re && a.im == b.im); }
FN u8 Z_(NE)(Z a, Z b) { return (u8)(a.re != b.re || a.im != b.im); }
FN Z Z_(NEG)(Z a) { return Z_(OF_PARTS)(-a.re, -a.im); }
FN Z Z_(CONJ)(Z a) { return Z_(OF_PARTS)(a.re, -a.im); }
FN RE Z_(REAL)(Z a) { return a.re; }
FN RE Z_(IMAG)(Z a) { return a.im; }
FN RE Z_(ANGLE)(Z a) { return RE_(ATAN2)(a.im, a.re); }
FN RE Z_(MODULUS)(Z a) { return RE_(HYPOT)(a.re, a.im); }
FN Z Z_(SQUARE)(Z a) { return Z_(MUL)(a, a); }
FN Z Z_(SQUARED_DIFFERENCE)(Z a, Z b) {
  const RE re = a.re - b.re, im = a.im - b.im;
  return Z_(OF_PARTS)(re * re + im * im, 0);
}

FN Z Z_(SQRT)(Z a) {
  const RE x = a.re, y = a.im, zero = 0;
  if (z_is_inf(y)) return Z_(OF_PARTS)(RE_(INF), y);
  if (x == -RE_(INF)) {
    return Z_(OF_PARTS)(z_is_nan(y) ? y : zero, RE_(COPYSIGN)(RE_(INF), y));
  }
  if (x == RE_(INF)) {
    return Z_(OF_PARTS)(x, z_is_nan(y) ? y : RE_(COPYSIGN)(zero, y));
  }
  if (x == 0 && y == 0) return Z_(OF_PARTS)(zero, y);
  const RE half_sum = (RE_(FABS)(x) + RE_(HYPOT)(x, y)) / 2;
  const RE t = RE_(SQRT)(half_sum);
  if (x >= 0) return Z_(OF_PARTS)(t, y / (2 * t));
  return Z_(OF_PARTS)(RE_(FABS)(y) / (2 * t), RE_(COPYSIGN)(t, y));
}
FN Z Z_(RSQRT)(Z a) { return Z_(DIV)(Z_(ONE), Z_(SQRT)(a)); }

FN Z Z_(EXP)(Z a) {
  const RE size = RE_(EXP)(a.re);
  if (a.im == 0) return Z_(OF_PARTS)(size, a.im);
  if (size == 0 && !z_is_finite(a.im)) return Z_(OF_PARTS)(0, 0);
  if (a.re == RE_(INF) && !z_is_finite(a.im)) {
    return Z_(OF_PARTS)(size, RE_(QNAN));
  }
  return Z_(OF_PARTS)(size * RE_(COS)(a.im), size * RE_(SIN)(a.im));
}

FN Z Z_(LOG)(Z a) {
  const RE angle = RE_(ATAN2)(a.im, a.re), size = RE_(HYPOT)(a.re, a.im);
  if (!(size > 0.5f && size < 2.0f)) {
    return Z_(OF_PARTS)(RE_(LIBM_LOG)(size), angle);
  }
  // Near the unit circle the size's distance from 1 counts.
  const RE p = RE_(FABS)(a.re), q = RE_(FABS)(a.im);
  const RE high = p > q ? p : q, low = p > q ? q : p;
  const RE above = (high - 1) * (high + 1) + low * low;
  return Z_(OF_PARTS)(RE_(LOG1P)(above) / 2, angle);
}
// Adding makes 0 of an imaginary part of -0.
FN Z Z_(LOG1P)(Z a) { return Z_(LOG)(Z_(ADD)(Z_(ONE), a)); }
FN Z Z_(SIGMOID)(Z a) {
  const Z e = Z_(EXP)(Z_(NEG)(a));
  return Z_(DIV)(Z_(ONE), Z_(ADD)(Z_(ONE), e));
}

// Kahan's formula.
FN Z Z_(TANH)(Z a) {
  const RE x = RE_(FABS)(a.re), one = 1;
  if (x == RE_(INF)) {
    const RE im = z_is_finite(a.im) ? RE_(SIN)(2 * a.im) : 0;
    return Z_(OF_PARTS)(RE_(COPYSIGN)(one, a.re), RE_(COPYSIGN)((RE)0, im));
  }
  if (x > 22) {
    const RE fall = RE_(EXP)(-x);
    return Z_(OF_PARTS)(RE_(COPYSIGN)(one, a.re),
                        4 * RE_(SIN)(a.im) * RE_(COS)(a.im) * fall * fall);
  }
  if (a.im == 0) return Z_(OF_PARTS)(RE_(TANH)(a.re), a.im);
  const RE t = RE_(TAN)(a.im), beta = 1 + t * t;
  const RE s = RE_(SINH)(a.re), rho = RE_(SQRT)(1 + s * s);
  const RE below = 1 + beta * s * s;
  return Z_(OF_PARTS)(beta * rho * s / below, t / below);
}

FN Z Z_(POW)(Z a, Z b) {
  if (b.re == 0 && b.im == 0) return Z_(ONE);
  if (a.re == 0 && a.im == 0) {
    return b.re > 0 ? Z_(OF_PARTS)(0, 0) : Z_(OF_PARTS)(RE_(QNAN), RE_(QNAN));
  }
  return Z_(EXP)(Z_(MUL)(b, Z_(LOG)(a)));
}
