// Sums of variables and values.

KERNEL(FLAT_SIZE, assign_add)(BUF(T, v), BUF(const T, d), const i64 n) {
  AT(T, v);
  AT(const T, d);
  if (ITEM >= n) return;
  const T_C a = T_LOAD(v, ITEM), b = T_LOAD(d, ITEM);
  T_STORE(v, ITEM, T_ADD(a, b));
}

KERNEL(FLAT_SIZE, assign_sub)(BUF(T, v), BUF(const T, d), const i64 n) {
  AT(T, v);
  AT(const T, d);
  if (ITEM >= n) return;
  const T_C a = T_LOAD(v, ITEM), b = T_LOAD(d, ITEM);
  T_STORE(v, ITEM, T_SUB(a, b));
}
