// Random numbers: those of base/rng.h, on every device the same bits.

// What the numbers of one op depend on, but for the step.
typedef struct {
  u32 key0, key1;
} Key;

FN u64 step_of(const GLOBAL u64 *step) { return step ? step[0] : 0; }

// One round of Philox4x32.
#define PHILOX_ROUND(c0, c1, c2, c3, k0, k1)                              \
  {                                                                       \
    const u32 high0 = MUL_HI_U32(0xD2511F53u, c0);                      \
    const u32 high1 = MUL_HI_U32(0xCD9E8D57u, c2);                      \
    const u32 low0 = 0xD2511F53u * c0, low1 = 0xCD9E8D57u * c2;           \
    c0 = high1 ^ c1 ^ k0;                                                 \
    c1 = low1;                                                            \
    c2 = high0 ^ c3 ^ k1;                                                 \
    c3 = low0;                                                            \
  }

// The four words of block `block`.
FN void random_words(Key key, u64 step, u64 block, u32 *words) {
  u32 c0 = (u32)block, c1 = (u32)(block >> 32);
  u32 c2 = (u32)step, c3 = (u32)(step >> 32);
  u32 k0 = key.key0, k1 = key.key1;
  for (i32 round = 0; round < 10; ++round) {
    PHILOX_ROUND(c0, c1, c2, c3, k0, k1)
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

// One word, and the pair that it belongs to.
typedef struct {
  u32 w, first, second;
} Word;
FN Word random_word(Key key, u64 step, u64 index) {
  u32 words[4];
  random_words(key, step, index / 4, words);
  const i32 later = (i32)(index % 4) >= 2;
  Word word;
  word.first = later ? words[2] : words[0];
  word.second = later ? words[3] : words[1];
  word.w = index % 2 ? word.second : word.first;
  return word;
}

FN f32 unit_float(u32 word) { return (f32)(i32)(word >> 8) * 0x1p-24f; }

// The CPU's loops of normal numbers round once (`fused`), its other numbers
// twice.
FN f32 madd(i32 fused, f32 a, f32 b, f32 c) {
  return fused ? F32_MADD(a, b, c) : a * b + c;
}

// The logarithm of u in (0, 1].
FN f32 log_of_unit(f32 u, i32 fused) {
  const i32 bits = AS_I32(u) - 0x3f3504f3;
  const f32 exponent = (f32)(bits >> 23);
  const f32 t = AS_F32((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  f32 p = 0.0703758612f;
  p = madd(fused, p, t, -0.115145598f);
  p = madd(fused, p, t, 0.116770117f);
  p = madd(fused, p, t, -0.12420149f);
  p = madd(fused, p, t, 0.142493223f);
  p = madd(fused, p, t, -0.166680573f);
  p = madd(fused, p, t, 0.200007148f);
  p = madd(fused, p, t, -0.24999994f);
  p = madd(fused, p, t, 0.333333312f);
  const f32 square = t * t;
  f32 tail = madd(fused, exponent, -2.12194440e-4f, p * square * t);
  tail = madd(fused, square, -0.5f, tail);
  return madd(fused, exponent, 0.693359375f, t + tail);
}

// Two standard normals (Box-Muller) of two words.
FN void normal_pair(u32 a, u32 b, i32 fused, f32 *even, f32 *odd) {
  const f32 u = unit_float(a) + 0x1p-24f;
  const f32 radius = F32_SQRT(-2.0f * log_of_unit(u, fused));
  const f32 turns = unit_float(b);
  // t in [-1/8, 1/8] of a turn plus `quarter` quarter turns; exact.
  const f32 shifted = madd(fused, turns, 4.0f, 12582912.0f);
  const f32 t = madd(fused, shifted - 12582912.0f, -0.25f, turns);
  const i32 quarter = AS_I32(shifted);
  const f32 z = t * t;
  f32 s = -75.3935623f;
  s = madd(fused, s, z, 81.5923535f);
  s = madd(fused, s, z, -41.3416615f);
  s = madd(fused, s, z, 6.28318529f) * t;
  f32 c = 59.2027958f;
  c = madd(fused, c, z, -85.442298f);
  c = madd(fused, c, z, 64.9393107f);
  c = madd(fused, c, z, -19.7392086f);
  c = madd(fused, c, z, 1.0f);
  const i32 swap = quarter & 1;
  const f32 sine = swap ? c : s, cosine = swap ? s : c;
  *even = radius * (((quarter + 1) & 2) != 0 ? -cosine : cosine);
  *odd = radius * ((quarter & 2) != 0 ? -sine : sine);
}

FN void random_normals(const u32 *words, i32 fused, f32 *numbers) {
  for (i32 p = 0; p < 2; ++p) {
    f32 even, odd;
    normal_pair(words[2 * p], words[2 * p + 1], fused, &even, &odd);
    numbers[2 * p] = even;
    numbers[2 * p + 1] = odd;
  }
}

// Element `i` of the call is element origin + i of the whole tensor. An item
// has those of one block: `words`, of which element i has word j.
#define BATCH(origin, n)                                         \
  const u64 batch = (u64)(origin) / 4 + (u64)ITEM;               \
  const i64 batch_at = (i64)(batch * 4 - (u64)(origin));         \
  if (batch_at >= n) return;                                     \
  u32 words[4];                                                  \
  random_words(key, step_of(step), batch, words);
#define EACH_OF_BATCH(i, j, n)         \
  for (i32 j = 0; j < 4; ++j)          \
    for (i64 i = batch_at + j, once_##i = i >= 0 && i < n; once_##i; once_##i = 0)

#if T_FLOAT || T_HALF
#if T_HALF
#define T_FROM(x) (x)
#else
#define T_FROM(x) ((T)(x))
#endif

KERNEL(FLAT_SIZE, uniform)
(BUF(T, y), BUF(const u64, step), const Key key, const f32 from,
 const f32 span, const f32 top, const i64 origin, const i64 n) {
  AT(T, y);
  AT(const u64, step);
  BATCH(origin, n)
  EACH_OF_BATCH(i, j, n) {
    const f32 u = from + unit_float(words[j]) * span;
    T_STORE(y, i, T_FROM(top < u ? top : u));
  }
}

KERNEL(FLAT_SIZE, normal)
(BUF(T, y), BUF(const u64, step), const Key key, const f32 mean,
 const f32 stddev, const i64 origin, const i64 n) {
  AT(T, y);
  AT(const u64, step);
  BATCH(origin, n)
  f32 numbers[4];
  random_normals(words, !T_HALF, numbers);
  EACH_OF_BATCH(i, j, n) {
    T_STORE(y, i, T_FROM(mean + stddev * numbers[j]));
  }
}

// A number beyond two is drawn again, attempt k from the numbers that lie
// k * 2^58 elements further on.
KERNEL(FLAT_SIZE, truncated)
(BUF(T, y), BUF(const u64, step), const Key key, const f32 mean,
 const f32 stddev, const i64 origin, const i64 n) {
  AT(T, y);
  AT(const u64, step);
  BATCH(origin, n)
  f32 numbers[4];
  random_normals(words, 0, numbers);
  EACH_OF_BATCH(i, j, n) {
    f32 x = numbers[j];
    u64 attempt = 1;
    while (!(x >= -2.0f && x <= 2.0f)) {
      if (attempt == 16) {
        x = 0.0f;
        break;
      }
      const Word again = random_word(key, step_of(step),
                                     (u64)(origin + i) + (attempt << 58));
      f32 even, odd;
      normal_pair(again.first, again.second, 0, &even, &odd);
      x = j % 2 ? odd : even;
      ++attempt;
    }
    T_STORE(y, i, T_FROM(mean + stddev * x));
  }
}
#endif

#if T_FLOAT
// scale is 1 / (1 - rate) or, of f64, 1 - rate.
FN T_C dropped(T_C x, T_C scale) {
#if T_SINGLE || T_HALF
  return x * scale;
#else
  return x / scale;
#endif
}

KERNEL(FLAT_SIZE, dropout)
(BUF(T, y), BUF(u8, mask), BUF(const T, x), BUF(const u64, step),
 const Key key, const f32 rate, const T_C scale, const i64 origin,
 const i64 n) {
  AT(T, y);
  AT(u8, mask);
  AT(const T, x);
  AT(const u64, step);
  BATCH(origin, n)
  EACH_OF_BATCH(i, j, n) {
    const i32 keep = unit_float(words[j]) >= rate;
    mask[i] = (u8)(keep ? 1 : 0);
    T_STORE(y, i, keep ? dropped(T_LOAD(x, i), scale) : T_ZERO);
  }
}

KERNEL(FLAT_SIZE, dropout_grad)
(BUF(T, dx), BUF(const T, dy), BUF(const u8, mask), const T_C scale,
 const i64 n) {
  AT(T, dx);
  AT(const T, dy);
  AT(const u8, mask);
  if (ITEM >= n) return;
  T_STORE(dx, ITEM, mask[ITEM] ? dropped(T_LOAD(dy, ITEM), scale) : T_ZERO);
}

KERNEL(FLAT_SIZE, dropout_grad_walk)
(BUF(T, dx), BUF(const T, dy), BUF(const u8, mask), const Strided dy_walk,
 const Strided mask_walk, const T_C scale, const i64 n) {
  AT(T, dx);
  AT(const T, dy);
  AT(const u8, mask);
  if (ITEM >= n) return;
  const i32 keep = mask[offset_of(&mask_walk, ITEM)];
  const i64 from = offset_of(&dy_walk, ITEM);
  T_STORE(dx, ITEM, keep ? dropped(T_LOAD(dy, from), scale) : T_ZERO);
}
#endif

#if T_INTEGER
// low + a number below range, which is at most 2^32.
KERNEL(FLAT_SIZE, uniform_int)
(BUF(T, y), BUF(const u64, step), const Key key, const u64 low,
 const u64 range, const i64 origin, const i64 n) {
  AT(T, y);
  AT(const u64, step);
  BATCH(origin, n)
  EACH_OF_BATCH(i, j, n) {
    const u64 x = ((u64)words[j] * range) >> 32;
    T_STORE(y, i, (i64)(low + x));
  }
}

// Uniform integers of two words each.
KERNEL(FLAT_SIZE, uniform_wide)
(BUF(T, y), BUF(const u64, step), const Key key, const u64 low,
 const u64 range, const i64 origin, const i64 n) {
  AT(T, y);
  AT(const u64, step);
  if (ITEM >= n) return;
  // Both are of one pair.
  const Word pair = random_word(key, step_of(step),
                                2 * ((u64)origin + (u64)ITEM));
  const u64 word = (u64)pair.first << 32 | pair.second;
  T_STORE(y, ITEM, (i64)(low + MUL_HI_U64(word, range)));
}
#endif
