// Order of rows, search in sorted rows.
//
// Rows of n elements are sorted by a bitonic network over `span` places, a
// power of two: pairs of a value and its place, which make all keys different,
// so the order is the one of a stable sort.

// NaN is larger than any number.
FN i32 is_less(T_C a, T_C b) {
#if T_FLOAT
  if (a != a) return 0;
  if (b != b) return 1;
#endif
  return a < b;
}

// True when element p of value a stands before element q of value b. Places
// from n on are after all others.
FN i32 stands_before(T_C a, i32 p, T_C b, i32 q, i32 n, i32 down) {
  if (p >= n || q >= n) return p < q;
  if (down ? is_less(b, a) : is_less(a, b)) return 1;
  if (down ? is_less(a, b) : is_less(b, a)) return 0;
  return p < q;
}

// A group sorts SORT_SPAN neighbours in its own memory.
#define SORT_SPAN (GROUP_SIZE * 2)

// Element i of the pairs at distance `apart` that number `pair` is.
#define SORT_LOW(pair, apart) (((pair) / (apart)) * (apart) * 2 + (pair) % (apart))

// The comparisons of one step, in local memory: pair by item, up to the place
// `at` that the group begins at.
#define SORT_LOCAL_STEP(size, apart)                                          \
  {                                                                          \
    const i32 low_ = (i32)SORT_LOW(LID, apart), high_ = low_ + (i32)(apart);   \
    const i32 up_ = (((begin + low_) & (span - 1)) & (size)) == 0;           \
    const i32 right_ = stands_before(values[low_], places[low_],             \
                                     values[high_], places[high_], (i32)n,   \
                                     down);                                  \
    if (right_ != up_) {                                                     \
      const T_C v_ = values[low_];                                           \
      const i32 p_ = places[low_];                                           \
      values[low_] = values[high_];                                          \
      places[low_] = places[high_];                                          \
      values[high_] = v_;                                                    \
      places[high_] = p_;                                                    \
    }                                                                        \
    BARRIER();                                                               \
  }

// keys and order are [rows, span], padded to a multiple of SORT_SPAN. When
// `first`, they are filled from x and sorted up to SORT_SPAN; else the steps
// of `size` below SORT_SPAN are done.
KERNEL(GROUP_SIZE, sort_local)
(BUF(const T, x), BUF(T_C, keys), BUF(i32, order), const i64 rows, const i64 n,
 const i64 span, const i64 size, const i32 first, const i32 down) {
  AT(const T, x);
  AT(T_C, keys);
  AT(i32, order);
  LOCAL_ARRAY(T_C, values, SORT_SPAN);
  LOCAL_ARRAY(i32, places, SORT_SPAN);
  const i64 begin = GROUP * SORT_SPAN;
  for (i32 k = 0; k < 2; ++k) {
    const i32 i = LID + k * GROUP_SIZE;
    const i64 at = begin + i;
    if (first) {
      const i64 row = at / span, place = at & (span - 1);
      T_C v = T_ZERO;
      if (row < rows && place < n) v = T_LOAD(x, row * n + place);
      values[i] = v;
      places[i] = (i32)place;
    } else {
      values[i] = keys[at];
      places[i] = order[at];
    }
  }
  BARRIER();
  if (first) {
    const i64 top = span < SORT_SPAN ? span : SORT_SPAN;
    for (i64 s = 2; s <= top; s *= 2) {
      for (i64 apart = s / 2; apart > 0; apart /= 2) SORT_LOCAL_STEP(s, apart)
    }
  } else {
    for (i64 apart = SORT_SPAN / 2; apart > 0; apart /= 2) {
      SORT_LOCAL_STEP(size, apart)
    }
  }
  for (i32 k = 0; k < 2; ++k) {
    const i32 i = LID + k * GROUP_SIZE;
    keys[begin + i] = values[i];
    order[begin + i] = places[i];
  }
}

// One step of pairs that are `apart` apart.
KERNEL(FLAT_SIZE, sort_step)
(BUF(T_C, keys), BUF(i32, order), const i64 pairs, const i64 n, const i64 span,
 const i64 size, const i64 apart, const i32 down) {
  AT(T_C, keys);
  AT(i32, order);
  const i64 pair = ITEM;
  if (pair >= pairs) return;
  const i64 low = SORT_LOW(pair, apart), high = low + apart;
  const i32 up = ((low & (span - 1)) & size) == 0;
  const T_C a = keys[low], b = keys[high];
  const i32 p = order[low], q = order[high];
  if (stands_before(a, p, b, q, (i32)n, down) != up) {
    keys[low] = b;
    order[low] = q;
    keys[high] = a;
    order[high] = p;
  }
}

// The first k of each row: values, when there are any wanted, and places.
KERNEL(FLAT_SIZE, sort_results)
(BUF(const T, x), BUF(const i32, order), BUF(T, values), BUF(i32, places),
 const i64 rows, const i64 n, const i64 span, const i64 k,
 const i32 with_values) {
  AT(const T, x);
  AT(const i32, order);
  AT(T, values);
  AT(i32, places);
  const i64 i = ITEM;
  if (i >= rows * k) return;
  const i64 row = i / k;
  const i32 place = order[row * span + i - row * k];
  places[i] = place;
  if (with_values) values[i] = x[row * n + place];
}

// How many elements of the sorted row stand before the value; `upper`: or are
// its equals.
KERNEL(FLAT_SIZE, bound)
(BUF(const T, sorted), BUF(const T, values), BUF(i32, narrow), BUF(i64, wide),
 const i64 count, const i64 per_row, const i64 length, const i32 upper,
 const i32 is_wide) {
  AT(const T, sorted);
  AT(const T, values);
  AT(i32, narrow);
  AT(i64, wide);
  const i64 i = ITEM;
  if (i >= count) return;
  const T_C v = T_LOAD(values, i);
  const i64 begin = i / per_row * length;
  i64 place = 0, left = length;
  while (left > 0) {
    const i64 apart = left / 2;
    const T_C x = T_LOAD(sorted, begin + place + apart);
    if (upper ? !is_less(v, x) : is_less(x, v)) {
      place += apart + 1;
      left -= apart + 1;
    } else {
      left = apart;
    }
  }
  if (is_wide) {
    wide[i] = place;
  } else {
    narrow[i] = (i32)place;
  }
}
