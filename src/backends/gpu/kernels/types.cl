// Element types. A program says `#define T f32` and the like (gpu/source.h),
// which also defines these words for T, by the tables below:
//   T           what memory holds
//   T_C         what it is computed in; narrow floats are widened to f32
//   T_LOAD(p,i), T_STORE(p,i,v)
//   T_ADD, T_SUB, T_MUL, T_DIV, T_ZERO, T_ONE, T_OF(real) of values in T_C
//   T_LOWEST, T_HIGHEST   of real types
//   T_FLOAT, T_COMPLEX, T_HALF, T_INTEGER   1 or 0
// Those of whole numbers stand in gpu/source.cc.

typedef u8 b8;     // bool: 0 or 1
typedef u16 bf16;  // bits
typedef u16 f16;
typedef struct {
  f32 re, im;
} c64;

FN f32 f32_of_bf16(u16 h) { return AS_F32((u32)h << 16); }
// To the nearest, ties to even; a NaN stays one.
FN u16 bf16_of_f32(f32 x) {
  const u32 b = AS_U32(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) return (u16)((b >> 16) | 0x40u);
  return (u16)((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
}

FN f32 f32_of_f16(u16 h) {
  const u32 sign = ((u32)h & 0x8000u) << 16, rest = (u32)h & 0x7fffu;
  if (rest >= 0x7c00u) return AS_F32(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x400u) return AS_F32(sign | ((rest << 13) + 0x38000000u));
  // Subnormal: a whole number of 2^-24.
  const f32 v = (f32)(i32)rest * 0x1p-24f;
  return AS_F32(sign | AS_U32(v));
}
FN u16 f16_of_f32(f32 x) {
  const u32 b = AS_U32(x), sign = (b >> 16) & 0x8000u, rest = b & 0x7fffffffu;
  if (rest > 0x7f800000u) {
    return (u16)(sign | 0x7e00u | ((rest >> 13) & 0x1ffu));
  }
  if (rest >= 0x477ff000u) return (u16)(sign | 0x7c00u);
  if (rest < 0x38800000u) {
    // Below the smallest normal: adding 0.5 rounds to a multiple of 2^-24.
    const u32 sum = AS_U32(AS_F32(rest) + 0.5f);
    return (u16)(sign | (sum - 0x3f000000u));
  }
  const u32 odd = (rest >> 13) & 1u;
  return (u16)(sign | ((rest - 0x38000000u + 0xfffu + odd) >> 13));
}

#define TYPE_PLAIN_LOAD(p, i) ((p)[i])
#define TYPE_PLAIN_STORE(p, i, v) ((p)[i] = (v))
#define TYPE_ADD(a, b) ((a) + (b))
#define TYPE_SUB(a, b) ((a) - (b))
#define TYPE_MUL(a, b) ((a) * (b))
#define TYPE_DIV(a, b) ((a) / (b))

#define f32_C f32
#define f32_LOAD TYPE_PLAIN_LOAD
#define f32_STORE TYPE_PLAIN_STORE
#define f32_ADD TYPE_ADD
#define f32_SUB TYPE_SUB
#define f32_MUL TYPE_MUL
#define f32_DIV TYPE_DIV
#define f32_ZERO 0.0f
#define f32_ONE 1.0f
#define f32_OF(x) ((f32)(x))
#define f32_LOWEST (-AS_F32(0x7f800000))
#define f32_HIGHEST AS_F32(0x7f800000)
#define f32_FLOAT 1
#define f32_COMPLEX 0
#define f32_HALF 0
#define f32_INTEGER 0

#define bf16_C f32
#define bf16_LOAD(p, i) f32_of_bf16((p)[i])
#define bf16_STORE(p, i, v) ((p)[i] = bf16_of_f32(v))
#define bf16_ADD TYPE_ADD
#define bf16_SUB TYPE_SUB
#define bf16_MUL TYPE_MUL
#define bf16_DIV TYPE_DIV
#define bf16_ZERO 0.0f
#define bf16_ONE 1.0f
#define bf16_OF(x) ((f32)(x))
#define bf16_LOWEST f32_LOWEST
#define bf16_HIGHEST f32_HIGHEST
#define bf16_FLOAT 1
#define bf16_COMPLEX 0
#define bf16_HALF 1
#define bf16_INTEGER 0

#define f16_C f32
#define f16_LOAD(p, i) f32_of_f16((p)[i])
#define f16_STORE(p, i, v) ((p)[i] = f16_of_f32(v))
#define f16_ADD TYPE_ADD
#define f16_SUB TYPE_SUB
#define f16_MUL TYPE_MUL
#define f16_DIV TYPE_DIV
#define f16_ZERO 0.0f
#define f16_ONE 1.0f
#define f16_OF(x) ((f32)(x))
#define f16_LOWEST f32_LOWEST
#define f16_HIGHEST f32_HIGHEST
#define f16_FLOAT 1
#define f16_COMPLEX 0
#define f16_HALF 1
#define f16_INTEGER 0

#if HAS_F64
#define f64_C f64
#define f64_LOAD TYPE_PLAIN_LOAD
#define f64_STORE TYPE_PLAIN_STORE
#define f64_ADD TYPE_ADD
#define f64_SUB TYPE_SUB
#define f64_MUL TYPE_MUL
#define f64_DIV TYPE_DIV
#define f64_ZERO 0.0
#define f64_ONE 1.0
#define f64_OF(x) ((f64)(x))
#define f64_LOWEST (-AS_F64(0x7ff0000000000000L))
#define f64_HIGHEST AS_F64(0x7ff0000000000000L)
#define f64_FLOAT 1
#define f64_COMPLEX 0
#define f64_HALF 0
#define f64_INTEGER 0
#endif

#define b8_C u8
#define b8_LOAD TYPE_PLAIN_LOAD
#define b8_STORE(p, i, v) ((p)[i] = (u8)((v) ? 1 : 0))
#define b8_ADD(a, b) ((u8)((a) | (b)))
#define b8_SUB(a, b) ((u8)((a) ^ (b)))
#define b8_MUL(a, b) ((u8)((a) & (b)))
#define b8_ZERO ((u8)0)
#define b8_ONE ((u8)1)
#define b8_OF(x) ((u8)((x) != 0))
#define b8_LOWEST ((u8)0)
#define b8_HIGHEST ((u8)1)
#define b8_FLOAT 0
#define b8_COMPLEX 0
#define b8_HALF 0
#define b8_INTEGER 0

// Complex numbers.
FN c64 c64_make(f32 re, f32 im) {
  c64 z;
  z.re = re;
  z.im = im;
  return z;
}
FN c64 c64_add(c64 a, c64 b) { return c64_make(a.re + b.re, a.im + b.im); }
FN c64 c64_sub(c64 a, c64 b) { return c64_make(a.re - b.re, a.im - b.im); }
FN c64 c64_mul(c64 a, c64 b) {
  return c64_make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
// Smith's algorithm: no overflow where the quotient has none.
FN c64 c64_div(c64 a, c64 b) {
  const f32 p = b.re < 0 ? -b.re : b.re, q = b.im < 0 ? -b.im : b.im;
  if (p >= q) {
    const f32 r = b.im / b.re, d = b.re + b.im * r;
    return c64_make((a.re + a.im * r) / d, (a.im - a.re * r) / d);
  }
  const f32 r = b.re / b.im, d = b.re * r + b.im;
  return c64_make((a.re * r + a.im) / d, (a.im * r - a.re) / d);
}
#define c64_C c64
#define c64_LOAD TYPE_PLAIN_LOAD
#define c64_STORE TYPE_PLAIN_STORE
#define c64_ADD c64_add
#define c64_SUB c64_sub
#define c64_MUL c64_mul
#define c64_DIV c64_div
#define c64_ZERO c64_make(0, 0)
#define c64_ONE c64_make(1, 0)
#define c64_OF(x) c64_make((f32)(x), 0)
#define c64_FLOAT 0
#define c64_COMPLEX 1
#define c64_HALF 0
#define c64_INTEGER 0

#if HAS_F64
typedef struct {
  f64 re, im;
} c128;
FN c128 c128_make(f64 re, f64 im) {
  c128 z;
  z.re = re;
  z.im = im;
  return z;
}
FN c128 c128_add(c128 a, c128 b) { return c128_make(a.re + b.re, a.im + b.im); }
FN c128 c128_sub(c128 a, c128 b) { return c128_make(a.re - b.re, a.im - b.im); }
FN c128 c128_mul(c128 a, c128 b) {
  return c128_make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
FN c128 c128_div(c128 a, c128 b) {
  const f64 p = b.re < 0 ? -b.re : b.re, q = b.im < 0 ? -b.im : b.im;
  if (p >= q) {
    const f64 r = b.im / b.re, d = b.re + b.im * r;
    return c128_make((a.re + a.im * r) / d, (a.im - a.re * r) / d);
  }
  const f64 r = b.re / b.im, d = b.re * r + b.im;
  return c128_make((a.re * r + a.im) / d, (a.im * r - a.re) / d);
}
#define c128_C c128
#define c128_LOAD TYPE_PLAIN_LOAD
#define c128_STORE TYPE_PLAIN_STORE
#define c128_ADD c128_add
#define c128_SUB c128_sub
#define c128_MUL c128_mul
#define c128_DIV c128_div
#define c128_ZERO c128_make(0, 0)
#define c128_ONE c128_make(1, 0)
#define c128_OF(x) c128_make((f64)(x), 0)
#define c128_FLOAT 0
#define c128_COMPLEX 1
#define c128_HALF 0
#define c128_INTEGER 0
#endif
