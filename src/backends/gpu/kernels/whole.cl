// Whole numbers: powers, division, bits. What a divisor of 0 or an exponent
// below 0 asks for is reported; see integer_ops.cc for the texts.

#define WHOLE_BITS(t, ut, width)                                              \
  FN t t##_BITWISE_AND(t a, t b) { return (t)(a & b); }                       \
  FN t t##_BITWISE_OR(t a, t b) { return (t)(a | b); }                        \
  FN t t##_BITWISE_XOR(t a, t b) { return (t)(a ^ b); }                       \
  FN t t##_INVERT(t x) { return (t)~x; }                                      \
  FN i32 t##_SHIFT(t n) {                                                     \
    return n > (t)(width - 1) ? width - 1 : n > (t)0 ? (i32)n : 0;            \
  }                                                                           \
  FN t t##_LEFT_SHIFT(t a, t n) { return (t)((ut)a << t##_SHIFT(n)); }        \
  FN t t##_RIGHT_SHIFT(t a, t n) { return (t)(a >> t##_SHIFT(n)); }
WHOLE_BITS(i32, u32, 32)
WHOLE_BITS(i64, u64, 64)
WHOLE_BITS(u8, u8, 8)
WHOLE_BITS(u64, u64, 64)
WHOLE_BITS(i8, u8, 8)
WHOLE_BITS(i16, u16, 16)
WHOLE_BITS(u16, u16, 16)
WHOLE_BITS(u32, u32, 32)

// Division towards 0; the lowest number by -1 wraps around.
#define WHOLE_SIGNED(t)                                                       \
  FN t t##_TRUNCATE_DIV(t a, t b, GLOBAL i64 *fault) {                        \
    if (b == (t)0) report(fault, 1, 0, 0, 0);                                 \
    return b == (t)0 ? (t)0 : b == (t)-1 ? t##_NEG(a) : (t)(a / b);           \
  }                                                                           \
  FN t t##_TRUNCATE_MOD(t a, t b, GLOBAL i64 *fault) {                        \
    if (b == (t)0) report(fault, 1, 0, 0, 0);                                 \
    return b == (t)0 || b == (t)-1 ? (t)0 : (t)(a % b);                       \
  }                                                                           \
  FN t t##_FLOOR_MOD(t a, t b, GLOBAL i64 *fault) {                           \
    const t rest = t##_TRUNCATE_MOD(a, b, fault);                             \
    return rest != (t)0 && (rest < 0) != (b < 0) ? (t)(rest + b) : rest;      \
  }                                                                           \
  FN t t##_FLOOR_DIV(t a, t b, GLOBAL i64 *fault) {                           \
    const t quotient = t##_TRUNCATE_DIV(a, b, fault);                         \
    const t rest = t##_SUB(a, t##_MUL(quotient, b));                          \
    return b != (t)0 && rest != (t)0 && (rest < 0) != (b < 0)                 \
               ? (t)(quotient - 1)                                            \
               : quotient;                                                    \
  }                                                                           \
  FN t t##_POW(t a, t b, GLOBAL i64 *fault) {                                 \
    if (b < 0) report(fault, 1, (i64)b, 0, 0);                                \
    t power = t##_ONE;                                                        \
    for (t n = b; n > 0; n = (t)(n >> 1)) {                                   \
      if (n & 1) power = t##_MUL(power, a);                                   \
      a = t##_MUL(a, a);                                                      \
    }                                                                         \
    return power;                                                             \
  }
WHOLE_SIGNED(i32)
WHOLE_SIGNED(i64)

#define WHOLE_UNSIGNED(t)                                                     \
  FN t t##_TRUNCATE_DIV(t a, t b, GLOBAL i64 *fault) {                        \
    if (b == 0) report(fault, 1, 0, 0, 0);                                    \
    return b == 0 ? (t)0 : (t)(a / b);                                        \
  }                                                                           \
  FN t t##_TRUNCATE_MOD(t a, t b, GLOBAL i64 *fault) {                        \
    if (b == 0) report(fault, 1, 0, 0, 0);                                    \
    return b == 0 ? (t)0 : (t)(a % b);                                        \
  }                                                                           \
  FN t t##_POW(t a, t b) {                                                    \
    t power = 1;                                                              \
    for (t n = b; n > 0; n = (t)(n >> 1)) {                                   \
      if (n & 1) power = t##_MUL(power, a);                                   \
      a = t##_MUL(a, a);                                                      \
    }                                                                         \
    return power;                                                             \
  }
WHOLE_UNSIGNED(u8)
WHOLE_UNSIGNED(u64)
#define u8_FLOOR_DIV u8_TRUNCATE_DIV
#define u8_FLOOR_MOD u8_TRUNCATE_MOD
#define u64_FLOOR_DIV u64_TRUNCATE_DIV
#define u64_FLOOR_MOD u64_TRUNCATE_MOD
