// The place of the largest (smallest) element along an axis: the first of
// equals; the first NaN, if there is one.

// 1 when b at place q wins over a at place p.
FN i32 wins(T_C a, i64 p, T_C b, i64 q, i32 largest) {
  if (largest ? b > a : b < a) return 1;
  if (largest ? a > b : a < b) return 0;
#if T_FLOAT
  if (b != b && a == a) return 1;
  if (a != a && b == b) return 0;
#endif
  return q < p;
}

// Row: one output; x is [outer, n, inner].
KERNEL(ROW_ITEMS, arg_extreme)
(BUF(const T, x), BUF(i32, narrow), BUF(i64, wide), const i64 outputs,
 const i64 n, const i64 inner, const i32 lanes, const i32 largest,
 const i32 is_wide) {
  AT(const T, x);
  AT(i32, narrow);
  AT(i64, wide);
  ROW_BOX(T_C, values);
  ROW_BOX(i64, places);
  ROW_BEGIN;
  const i64 o = row < outputs ? row : 0;
  GLOBAL const T *p = x + (o / inner * inner * n + o % inner);
  i64 best = lane < n ? lane : 0;
  T_C value = T_LOAD(p, best * inner);
  for (i64 i = best + lanes; i < n; i += lanes) {
    const T_C v = T_LOAD(p, i * inner);
    if (wins(value, best, v, i, largest)) {
      value = v;
      best = i;
    }
  }
  values[LID] = value;
  places[LID] = best;
  BARRIER();
  for (i32 s = lanes / 2; s > 0; s /= 2) {
    if (lane < s && wins(values[LID], places[LID], values[LID + s],
                         places[LID + s], largest)) {
      values[LID] = values[LID + s];
      places[LID] = places[LID + s];
    }
    BARRIER();
  }
  best = places[LID];
  if (lane != 0 || row >= outputs) return;
  if (is_wide) {
    wide[o] = best;
  } else {
    narrow[o] = (i32)best;
  }
}
