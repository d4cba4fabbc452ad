// Where and Unique: results whose length depends on values.

// How values are told apart.
#define VALUE_WHOLE 0
#define VALUE_FLOAT 1  // zeros of both signs are one, every NaN is another

FN u64 bits_at(const GLOBAL E *x, i64 i, i32 value) {
#if E_SIZE == 16
  return x[i].lo;
#else
  const u64 b = (u64)x[i];
  const u64 sign = (u64)1 << (8 * E_SIZE - 1);
  return value == VALUE_FLOAT && b == sign ? 0 : b;
#endif
}

FN i32 is_nan_bits(u64 b, i32 value) {
#if E_SIZE == 4
  return value == VALUE_FLOAT && (b & 0x7fffffffu) > 0x7f800000u;
#elif E_SIZE == 8
  return value == VALUE_FLOAT &&
         (b << 1) > (u64)0x7ff00000 << 33;
#else
  return 0;
#endif
}

KERNEL(FLAT_SIZE, flag_true)
(BUF(u32, flags), BUF(const E, x), const i32 value, const i64 n) {
  AT(u32, flags);
  AT(const E, x);
  if (ITEM < n) flags[ITEM] = bits_at(x, ITEM, value) != 0 ? 1 : 0;
}

// The places of what is true, in order; `before` counts those before each.
KERNEL(FLAT_SIZE, write_true)
(BUF(i64, y), BUF(i64, count), BUF(const E, x), BUF(const u32, before),
 const i32 value, const Strided shape, const i64 most, const i32 narrow,
 const i64 n, BUF(i64, fault)) {
  AT(i64, y);
  AT(i64, count);
  AT(const E, x);
  AT(const u32, before);
  AT(i64, fault);
  if (ITEM >= n) return;
  const i32 is = bits_at(x, ITEM, value) != 0 ? 1 : 0;
  const i64 row = (i64)before[ITEM];
  if (ITEM == n - 1) {
    count[0] = row + is;
    if (row + is > most) report(fault, 1, most, 0, 0);
  }
  if (!is || row >= most) return;
  i64 rest = ITEM;
  for (i32 d = shape.rank - 1; d >= 0; --d) {
    i64 place;
    rest = quotient(rest, shape.n[d], narrow, &place);
    y[row * shape.rank + d] = place;
  }
}

KERNEL(FLAT_SIZE, keys_of_values)
(BUF(u64, keys), BUF(const E, x), const i32 value, const i64 n) {
  AT(u64, keys);
  AT(const E, x);
  if (ITEM < n) keys[ITEM] = bits_at(x, ITEM, value);
}

FN u32 begins(const GLOBAL u64 *keys, i64 p, i32 value) {
  return p == 0 || keys[p - 1] != keys[p] || is_nan_bits(keys[p], value) ? 1
                                                                         : 0;
}

// heads[p]: sorted key p begins a run of equal ones; firsts[i]: element i is
// the first of its kind. firsts holds 0 before.
KERNEL(FLAT_SIZE, flag_runs)
(BUF(u32, heads), BUF(u32, firsts), BUF(const u64, keys),
 BUF(const i32, places), const i32 value, const i64 n) {
  AT(u32, heads);
  AT(u32, firsts);
  AT(const u64, keys);
  AT(const i32, places);
  if (ITEM >= n) return;
  const u32 head = begins(keys, ITEM, value);
  heads[ITEM] = head;
  if (head) firsts[places[ITEM]] = 1;
}

// starts[run]: the first sorted key of each run, and after them n.
KERNEL(FLAT_SIZE, run_starts)
(BUF(u32, starts), BUF(const u32, before), BUF(const u64, keys),
 const i32 value, const i64 n) {
  AT(u32, starts);
  AT(const u32, before);
  AT(const u64, keys);
  if (ITEM >= n) return;
  const u32 head = begins(keys, ITEM, value);
  if (head) starts[before[ITEM]] = (u32)ITEM;
  if (ITEM == n - 1) starts[before[ITEM] + head] = (u32)n;
}

FN void put_index(GLOBAL u8 *y, i32 wide, i64 i, i64 value) {
  if (wide) {
    ((GLOBAL i64 *)y)[i] = value;
  } else {
    ((GLOBAL i32 *)y)[i] = (i32)value;
  }
}

KERNEL(FLAT_SIZE, write_unique)
(BUF(E, y), BUF(u8, idx), BUF(u8, counts), const i32 has_counts,
 const i32 wide, BUF(i64, size), BUF(const E, x), BUF(const u64, keys),
 BUF(const i32, places), BUF(const u32, before), BUF(const u32, starts),
 BUF(const u32, ranks), const i32 value, const i64 most, const i64 n,
 BUF(i64, fault)) {
  AT(E, y);
  AT(u8, idx);
  AT(u8, counts);
  AT(i64, size);
  AT(const E, x);
  AT(const u64, keys);
  AT(const i32, places);
  AT(const u32, before);
  AT(const u32, starts);
  AT(const u32, ranks);
  AT(i64, fault);
  if (ITEM >= n) return;
  const u32 head = begins(keys, ITEM, value);
  const u32 run = before[ITEM] + head - 1;
  const i32 first = places[starts[run]];
  const i64 rank = (i64)ranks[first];
  put_index(idx, wide, places[ITEM], rank);
  if (ITEM == n - 1) {
    size[0] = (i64)run + 1;
    if ((i64)run + 1 > most) report(fault, 1, most, 0, 0);
  }
  if (!head || rank >= most) return;
  y[rank] = x[first];
  if (has_counts) {
    put_index(counts, wide, rank, (i64)starts[run + 1] - (i64)starts[run]);
  }
}
