// Running sums and the like along an axis of [outer, n, inner]: lines are
// numbered over outer and inner. Results of a line depend on n alone.

// Where element i of a line is, counted in the direction of the scan.
FN i64 line_at(i64 line, i64 n, i64 inner, i64 i, i32 reverse) {
  const i64 outer = line / inner;
  return (outer * n + (reverse ? n - 1 - i : i)) * inner + line - outer * inner;
}

#if T_FLOAT
FN T_C log_add(T_C a, T_C b) {
  if (a != a || b != b) return a + b;
  const T_C high = b > a ? b : a, low = b > a ? a : b;
  if (high == T_LOWEST || high == T_HIGHEST) return high;
  return high + T_LOG1P(T_EXP(low - high));
}
#endif

// Elements that an item of a group takes at a time.
#define SCAN_RUN 8

// <name>_serial: an item has a line.
// <name>_totals, _carries, _tiles: a group has a piece of a line. Totals of
// pieces, what comes before each piece, then the elements.
#define SCAN_SERIAL(name, COMBINE, START)                                    \
  KERNEL(FLAT_SIZE, name##_serial)                                           \
  (BUF(const T, x), BUF(T, y), const i64 lines, const i64 n,                 \
   const i64 inner, const i32 reverse, const i32 exclusive) {                \
    AT(const T, x);                                                          \
    AT(T, y);                                                                \
    const i64 line = ITEM;                                                   \
    if (line >= lines) return;                                               \
    i64 at = line_at(line, n, inner, 0, reverse);                            \
    const i64 step = reverse ? -inner : inner;                               \
    T_C sum = START;                                                         \
    for (i64 i = 0; i < n; ++i, at += step) {                                \
      const T_C next = COMBINE(sum, T_LOAD(x, at));                          \
      T_STORE(y, at, exclusive ? sum : next);                                \
      sum = next;                                                            \
    }                                                                        \
  }

#define SCAN_TILES(name, COMBINE, START)                                     \
  KERNEL(GROUP_SIZE, name##_totals)                                          \
  (BUF(const T, x), BUF(T_C, totals), const i64 n, const i64 inner,          \
   const i64 piece, const i64 pieces, const i32 reverse) {                   \
    AT(const T, x);                                                          \
    AT(T_C, totals);                                                         \
    LOCAL_ARRAY(T_C, box, GROUP_SIZE);                                       \
    const i64 line = GROUP / pieces, begin = GROUP % pieces * piece;         \
    const i64 end = n - begin < piece ? n : begin + piece;                   \
    const i64 share = piece / GROUP_SIZE;                                    \
    i64 i = begin + LID * share;                                             \
    const i64 stop = end - i < share ? end : i + share;                      \
    T_C v = START;                                                           \
    for (; i < stop; ++i) {                                                  \
      v = COMBINE(v, T_LOAD(x, line_at(line, n, inner, i, reverse)));        \
    }                                                                        \
    box[LID] = v;                                                            \
    BARRIER();                                                               \
    for (i32 s = 1; s < GROUP_SIZE; s *= 2) {                                \
      if ((LID & (2 * s - 1)) == 0) box[LID] = COMBINE(box[LID], box[LID + s]); \
      BARRIER();                                                             \
    }                                                                        \
    if (LID == 0) totals[GROUP] = box[0];                                    \
  }                                                                          \
                                                                             \
  KERNEL(FLAT_SIZE, name##_carries)                                          \
  (BUF(T_C, totals), const i64 lines, const i64 pieces) {                    \
    AT(T_C, totals);                                                         \
    const i64 line = ITEM;                                                   \
    if (line >= lines) return;                                               \
    T_C sum = START;                                                         \
    for (i64 p = line * pieces; p < (line + 1) * pieces; ++p) {              \
      const T_C v = totals[p];                                               \
      totals[p] = sum;                                                       \
      sum = COMBINE(sum, v);                                                 \
    }                                                                        \
  }                                                                          \
                                                                             \
  KERNEL(GROUP_SIZE, name##_tiles)                                           \
  (BUF(const T, x), BUF(T, y), BUF(const T_C, carries), const i64 n,         \
   const i64 inner, const i64 piece, const i64 pieces, const i32 reverse,    \
   const i32 exclusive) {                                                    \
    AT(const T, x);                                                          \
    AT(T, y);                                                                \
    AT(const T_C, carries);                                                  \
    LOCAL_ARRAY(T_C, box, GROUP_SIZE);                                       \
    const i64 line = GROUP / pieces, begin = GROUP % pieces * piece;         \
    const i64 end = n - begin < piece ? n : begin + piece;                   \
    T_C carry = START;                                                       \
    if (pieces > 1) carry = carries[GROUP];                                  \
    for (i64 tile = begin; tile < end; tile += GROUP_SIZE * SCAN_RUN) {      \
      const i64 first = tile + LID * SCAN_RUN;                               \
      T_C run[SCAN_RUN];                                                     \
      T_C v = START;                                                         \
      for (i32 j = 0; j < SCAN_RUN; ++j) {                                   \
        run[j] = START;                                                      \
        if (first + j < end) {                                               \
          run[j] = T_LOAD(x, line_at(line, n, inner, first + j, reverse));   \
        }                                                                    \
        v = COMBINE(v, run[j]);                                              \
      }                                                                      \
      box[LID] = v;                                                          \
      BARRIER();                                                             \
      for (i32 s = 1; s < GROUP_SIZE; s *= 2) {                              \
        if (LID >= s) v = COMBINE(box[LID - s], v);                          \
        BARRIER();                                                           \
        box[LID] = v;                                                        \
        BARRIER();                                                           \
      }                                                                      \
      T_C sum = carry;                                                       \
      if (LID > 0) sum = COMBINE(carry, box[LID - 1]);                       \
      for (i32 j = 0; j < SCAN_RUN; ++j) {                                   \
        const T_C next = COMBINE(sum, run[j]);                               \
        if (first + j < end) {                                               \
          T_STORE(y, line_at(line, n, inner, first + j, reverse),            \
                  exclusive ? sum : next);                                   \
        }                                                                    \
        sum = next;                                                          \
      }                                                                      \
      carry = COMBINE(carry, box[GROUP_SIZE - 1]);                           \
      BARRIER();                                                             \
    }                                                                        \
  }

#define SCAN(name, COMBINE, START)   \
  SCAN_SERIAL(name, COMBINE, START)  \
  SCAN_TILES(name, COMBINE, START)

SCAN(sum, T_ADD, T_ZERO)
SCAN(prod, T_MUL, T_ONE)
#if T_FLOAT
SCAN(logsumexp, log_add, T_LOWEST)

// s[i] = a[i] s[i-1] + b[i], anew where ids differ. An item has a line: runs of
// it put together would multiply what a zero between them keeps apart.
KERNEL(FLAT_SIZE, recurrence)
(BUF(const T, a), BUF(const T, b), BUF(const i32, narrow), BUF(const i64, wide),
 BUF(T, y), const i64 lines, const i64 n, const i64 inner, const i32 reverse,
 const i32 previous, const i32 exclusive, const i32 bytes_of_id) {
  AT(const T, a);
  AT(const T, b);
  AT(const i32, narrow);
  AT(const i64, wide);
  AT(T, y);
  const i64 line = ITEM;
  if (line >= lines) return;
  i64 at = line_at(line, n, inner, 0, reverse);
  const i64 step = reverse ? -inner : inner;
  T_C s = T_ZERO;
  i64 id = 0;
  for (i64 i = 0; i < n; ++i, at += step) {
    const i64 place = reverse ? n - 1 - i : i, before = id;
    if (bytes_of_id == 4) id = narrow[place];
    if (bytes_of_id == 8) id = wide[place];
    // The first element has nothing to multiply.
    const i32 first = i == 0 || id != before;
    if (first) s = T_ZERO;
    T_C next = T_LOAD(b, at);
    if (!first) next = T_LOAD(a, previous ? at - step : at) * s + next;
    T_STORE(y, at, exclusive ? s : next);
    s = next;
  }
}
#endif
