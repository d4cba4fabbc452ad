// Sums of variables and values.

#define ASSIGN(name, OF)                            \
  KERNEL(FLAT_SIZE, name)                           \
  (BUF(T, v), BUF(const T, d), const i64 n) {       \
    AT(T, v);                                       \
    AT(const T, d);                                 \
    if (ITEM >= n) return;                          \
    const T_C a = T_LOAD(v, ITEM), b = T_LOAD(d, ITEM); \
    T_STORE(v, ITEM, OF(a, b));                     \
  }

ASSIGN(assign_add, T_ADD)
ASSIGN(assign_sub, T_SUB)
