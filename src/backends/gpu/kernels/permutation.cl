// The inverse of a permutation. owner: -1 at first, then who came.
KERNEL(FLAT_SIZE, invert_permutation)
(BUF(const T, x), BUF(T, y), BUF(i32, owner), BUF(i64, fault), const i64 n) {
  AT(const T, x);
  AT(T, y);
  AT(i32, owner);
  AT(i64, fault);
  const i64 i = ITEM;
  if (i >= n) return;
  const i64 at = x[i];
  if (at < 0 || at >= n) {
    report(fault, 1, at, i, n);
    return;
  }
  const i32 other = ATOMIC_CAS((volatile GLOBAL i32 *)(owner + at), -1, (i32)i);
  if (other == -1) {
    y[at] = (T)i;
  } else {
    report(fault, 2, at, other > i ? other : i, n - 1);
  }
}
