// Whole numbers in order, and sums over those before each: `keys` are sorted
// with the places where they stood, equal ones keep theirs.

// Elements of one item of a block.
#define EACH 8
#define DIGITS 16

// Exclusive sums over values[0..GROUP_SIZE-1], and of all of them.
FN u32 sum_before(LOCAL u32 *values) {
  const u32 own = values[LID];
  for (i32 by = 1; by < GROUP_SIZE; by *= 2) {
    const u32 before = LID >= by ? values[LID - by] : 0;
    BARRIER();
    values[LID] += before;
    BARRIER();
  }
  return values[LID] - own;
}

// Few keys: each looks for its place among all.
KERNEL(FLAT_SIZE, sort_few)
(BUF(u64, sorted), BUF(i32, places), BUF(const u64, keys), const i32 n) {
  AT(u64, sorted);
  AT(i32, places);
  AT(const u64, keys);
  if (ITEM >= n) return;
  const i32 i = (i32)ITEM;
  const u64 key = keys[i];
  i32 rank = 0;
  for (i32 j = 0; j < n; ++j) {
    rank += keys[j] < key || (keys[j] == key && j < i) ? 1 : 0;
  }
  sorted[rank] = key;
  places[rank] = i;
}

// How often item i has each digit, at [digit * GROUP_SIZE + i], then the sums
// of all those before.
FN void count_digits(LOCAL u32 *counts, LOCAL u32 *sums,
                     const GLOBAL u64 *keys, i32 shift, i64 first, i64 n) {
  for (i32 d = 0; d < DIGITS; ++d) counts[d * GROUP_SIZE + LID] = 0;
  for (i32 k = 0; k < EACH; ++k) {
    if (first + k < n) {
      const i32 digit = (i32)((keys[first + k] >> shift) & (DIGITS - 1));
      counts[digit * GROUP_SIZE + LID] += 1;
    }
  }
  BARRIER();
  u32 own = 0;
  for (i32 k = 0; k < DIGITS; ++k) own += counts[LID * DIGITS + k];
  sums[LID] = own;
  BARRIER();
  u32 before = sum_before(sums);
  for (i32 k = 0; k < DIGITS; ++k) {
    const u32 count = counts[LID * DIGITS + k];
    counts[LID * DIGITS + k] = before;
    before += count;
  }
  BARRIER();
}

// One digit of the keys: how many of each value a block has, and, with the
// sums of these, where they go.
KERNEL(GROUP_SIZE, sort_count)
(BUF(u32, found), BUF(const u64, keys), const i32 shift, const i64 n) {
  AT(u32, found);
  AT(const u64, keys);
  LOCAL_ARRAY(u32, counts, DIGITS * GROUP_SIZE);
  LOCAL_ARRAY(u32, sums, GROUP_SIZE);
  const i64 first = (GROUP * GROUP_SIZE + LID) * EACH;
  count_digits(counts, sums, keys, shift, first, n);
  if (LID < DIGITS) {
    const i64 left = n - GROUP * GROUP_SIZE * EACH;
    const u32 all =
        left < GROUP_SIZE * EACH ? (u32)left : (u32)(GROUP_SIZE * EACH);
    const u32 next =
        LID + 1 < DIGITS ? counts[(LID + 1) * GROUP_SIZE] : all;
    found[LID * GROUPS + GROUP] = next - counts[LID * GROUP_SIZE];
  }
}

KERNEL(GROUP_SIZE, sort_place)
(BUF(u64, sorted), BUF(i32, places), BUF(const u64, keys),
 BUF(const i32, came_from), const i32 first_pass, BUF(const u32, before),
 const i32 shift, const i64 n) {
  AT(u64, sorted);
  AT(i32, places);
  AT(const u64, keys);
  AT(const i32, came_from);
  AT(const u32, before);
  LOCAL_ARRAY(u32, counts, DIGITS * GROUP_SIZE);
  LOCAL_ARRAY(u32, sums, GROUP_SIZE);
  LOCAL_ARRAY(u32, starts, DIGITS);
  const i64 first = (GROUP * GROUP_SIZE + LID) * EACH;
  count_digits(counts, sums, keys, shift, first, n);
  if (LID < DIGITS) {
    starts[LID] = before[LID * GROUPS + GROUP] - counts[LID * GROUP_SIZE];
  }
  BARRIER();
  for (i32 k = 0; k < EACH; ++k) {
    const i64 i = first + k;
    if (i < n) {
      const u64 key = keys[i];
      const i32 digit = (i32)((key >> shift) & (DIGITS - 1));
      const u32 to = starts[digit] + counts[digit * GROUP_SIZE + LID];
      counts[digit * GROUP_SIZE + LID] += 1;
      sorted[to] = key;
      places[to] = first_pass ? (i32)i : came_from[i];
    }
  }
}

// One group: values[i] becomes the sum of those before it.
KERNEL(GROUP_SIZE, sum_all)(BUF(u32, values), const i64 n) {
  AT(u32, values);
  LOCAL_ARRAY(u32, sums, GROUP_SIZE);
  const i64 each = (n + GROUP_SIZE - 1) / GROUP_SIZE;
  const i64 first = LID * each;
  const i64 end = first + each < n ? first + each : n;
  u32 own = 0;
  for (i64 i = first; i < end; ++i) own += values[i];
  sums[LID] = own;
  BARRIER();
  u32 before = sum_before(sums);
  for (i64 i = first; i < end; ++i) {
    const u32 value = values[i];
    values[i] = before;
    before += value;
  }
}

// In blocks: sums of blocks, then the sums within each.
KERNEL(GROUP_SIZE, sum_blocks)
(BUF(u32, blocks), BUF(const u32, values), const i64 n) {
  AT(u32, blocks);
  AT(const u32, values);
  LOCAL_ARRAY(u32, sums, GROUP_SIZE);
  const i64 first = (GROUP * GROUP_SIZE + LID) * EACH;
  u32 own = 0;
  for (i32 k = 0; k < EACH; ++k) own += first + k < n ? values[first + k] : 0;
  sums[LID] = own;
  BARRIER();
  const u32 before = sum_before(sums);
  if (LID == GROUP_SIZE - 1) blocks[GROUP] = before + own;
}

KERNEL(GROUP_SIZE, sum_within)
(BUF(u32, values), BUF(const u32, blocks), const i64 n) {
  AT(u32, values);
  AT(const u32, blocks);
  LOCAL_ARRAY(u32, sums, GROUP_SIZE);
  const i64 first = (GROUP * GROUP_SIZE + LID) * EACH;
  u32 own = 0;
  for (i32 k = 0; k < EACH; ++k) own += first + k < n ? values[first + k] : 0;
  sums[LID] = own;
  BARRIER();
  u32 before = blocks[GROUP] + sum_before(sums);
  for (i32 k = 0; k < EACH; ++k) {
    if (first + k < n) {
      const u32 value = values[first + k];
      values[first + k] = before;
      before += value;
    }
  }
}
