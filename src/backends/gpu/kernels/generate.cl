// Elements from nothing, and sums of many arrays. T is the element type; WIDE
// is what sums are kept in.

#if HAS_F64
#define REAL f64
#define REAL_FLOOR F64_FLOOR
#else
#define REAL f32
#define REAL_FLOOR F32_FLOOR
#endif

KERNEL(FLAT_SIZE, range)
(BUF(T, y), const i64 n, const i64 start, const i64 delta, const i64 origin) {
  AT(T, y);
  const i64 i = ITEM;
  if (i >= n) return;
  // Unsigned: a product may wrap although the sum fits.
  const i64 v = (i64)((u64)start + (u64)(origin + i) * (u64)delta);
  T_STORE(y, i, (T_C)v);
}

FN T_C number_of(REAL v) {
#if T_INTEGER
  return (T_C)(i64)REAL_FLOOR(v);
#else
  return (T_C)v;
#endif
}

KERNEL(FLAT_SIZE, linspace)
(BUF(T, y), const i64 n, const REAL start, const REAL stop, const i64 last,
 const i64 origin) {
  AT(T, y);
  const i64 i = ITEM;
  if (i >= n) return;
  const i64 at = origin + i;
  const REAL part = last > 0 ? (REAL)at / (REAL)last : (REAL)0;
  const REAL v =
      at == last && last > 0 ? stop : start * (1 - part) + stop * part;
  T_STORE(y, i, number_of(v));
}

KERNEL(FLAT_SIZE, float_range)
(BUF(T, y), const i64 n, const REAL start, const REAL delta, const i64 origin) {
  AT(T, y);
  const i64 i = ITEM;
  if (i >= n) return;
  T_STORE(y, i, number_of(start + (REAL)(origin + i) * delta));
}

// The sum of `count` arrays, and of `sums` unless these are the first; what is
// not the last goes there.
KERNEL(FLAT_SIZE, add_n)
(BUF(const T, x0), BUF(const T, x1), BUF(const T, x2), BUF(const T, x3),
 BUF(const T, x4), BUF(const T, x5), BUF(const T, x6), BUF(const T, x7),
 BUF(WIDE, sums), BUF(T, y), const i64 n, const i32 count, const i32 first,
 const i32 last) {
  AT(const T, x0);
  AT(const T, x1);
  AT(const T, x2);
  AT(const T, x3);
  AT(const T, x4);
  AT(const T, x5);
  AT(const T, x6);
  AT(const T, x7);
  AT(WIDE, sums);
  AT(T, y);
  const i64 i = ITEM;
  if (i >= n) return;
  WIDE sum = first ? (WIDE)0 : sums[i];
  sum += (WIDE)T_LOAD(x0, i);
  if (count > 1) sum += (WIDE)T_LOAD(x1, i);
  if (count > 2) sum += (WIDE)T_LOAD(x2, i);
  if (count > 3) sum += (WIDE)T_LOAD(x3, i);
  if (count > 4) sum += (WIDE)T_LOAD(x4, i);
  if (count > 5) sum += (WIDE)T_LOAD(x5, i);
  if (count > 6) sum += (WIDE)T_LOAD(x6, i);
  if (count > 7) sum += (WIDE)T_LOAD(x7, i);
  if (last) {
    T_STORE(y, i, (T_C)sum);
  } else {
    sums[i] = sum;
  }
}
