// Sums of variables and values.

#define ASSIGN(name, OF)                                                  \
  KERNEL(FLAT_SIZE, name)                                                 \
  (BUF(T, v), BUF(const T, d), const i64 n, const i64 items) {            \
    AT(T, v);                                                             \
    AT(const T, d);                                                       \
    if (ITEM >= items) return;                                            \
    const i64 first = ITEM * RUN, end = first + run_length(first, n);     \
    for (i64 i = first; i < end; ++i) {                                   \
      const T_C a = T_LOAD(v, i), b = T_LOAD(d, i);                       \
      T_STORE(v, i, OF(a, b));                                            \
    }                                                                     \
  }

ASSIGN(assign_add, T_ADD)
ASSIGN(assign_sub, T_SUB)
