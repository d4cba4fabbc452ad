// Rows of updates, combined with the rows that sorted keys name; those of one
// row in the order in which they came.

// Key: batch * dim + row; update `place`: batch * n + i; a batch has `outer`
// blocks of rows.
typedef struct {
  i64 count;  // of keys
  i64 dim;
  i64 n;
  i64 outer;
  i64 inner;  // elements of a row
  u64 end;  // a key that names nothing
  i32 narrow;
  i32 unused;
} Rows;

// Behind the last of the keys that equal key p.
FN i64 run_end(const GLOBAL u64 *keys, i64 p, i64 count) {
  const u64 key = keys[p];
  i64 step = 1;
  while (p + step < count && keys[p + step] == key) {
    p += step;
    step *= 2;
  }
  while (step > 1) {
    step /= 2;
    if (p + step < count && keys[p + step] == key) p += step;
  }
  return p + 1;
}

#define COMBINE(name, OF)                                                    \
  KERNEL(FLAT_SIZE, name)                                                    \
  (BUF(T, y), BUF(const T, u), BUF(const u64, keys), BUF(const i32, places), \
   const Rows r, const i64 items) {                                          \
    AT(T, y);                                                                \
    AT(const T, u);                                                          \
    AT(const u64, keys);                                                     \
    AT(const i32, places);                                                   \
    if (ITEM >= items) return;                                               \
    i64 k, o, row, i;                                                        \
    i64 p = quotient(ITEM, r.inner, r.narrow, &k);                           \
    p = quotient(p, r.outer, r.narrow, &o);                                  \
    const u64 key = keys[p];                                                 \
    if (key == r.end || (p > 0 && keys[p - 1] == key)) return;               \
    const i64 b = quotient((i64)key, r.dim, r.narrow, &row);                 \
    const i64 last = run_end(keys, p, r.count);                              \
    const i64 to = ((b * r.outer + o) * r.dim + row) * r.inner + k;          \
    T_C a = T_LOAD(y, to);                                                   \
    for (i64 q = p; q < last; ++q) {                                         \
      quotient(places[q], r.n, r.narrow, &i);                                \
      const i64 from = ((b * r.outer + o) * r.n + i) * r.inner + k;          \
      const T_C c = T_LOAD(u, from);                                         \
      a = OF(a, c);                                                          \
    }                                                                        \
    T_STORE(y, to, a);                                                       \
  }

#define COMBINE_LAST(a, c) (c)
#define COMBINE_MIN(a, c) ((c) < (a) || (c) != (c) ? (c) : (a))
#define COMBINE_MAX(a, c) ((a) < (c) || (c) != (c) ? (c) : (a))

COMBINE(combine_add, T_ADD)
COMBINE(combine_update, COMBINE_LAST)
#if !T_COMPLEX
COMBINE(combine_sub, T_SUB)
COMBINE(combine_mul, T_MUL)
COMBINE(combine_min, COMBINE_MIN)
COMBINE(combine_max, COMBINE_MAX)
#endif
#if T_FLOAT || T_HALF
COMBINE(combine_div, T_DIV)
#endif
