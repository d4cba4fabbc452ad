// Kernels of products of any kind; see product.cl.

// What is done to an element before it is stored: the bias of its column is
// added, aux keeps that, or is read, END_FUNCTION is called.
#if defined(PRODUCT_END)
#define END_MEMORY , BUF(const T, bias), BUF(T, aux)
#define END_AT       \
  AT(const T, bias); \
  AT(T, aux)
#define C_STORE(at, col, value) end_store(c, bias, aux, at, col, value)
FN void end_store(GLOBAL T *c, GLOBAL const T *bias, GLOBAL T *aux, i64 at,
                  i64 col, ACC value) {
#if END_BIAS
  value = value + TO_ACC(T_LOAD(bias, col));
#endif
#if END_KEEPS
  T_STORE(aux, at, value);
#endif
#if END_SLOPE
  value = END_FUNCTION(value, TO_ACC(T_LOAD(aux, at)));
#elif defined(END_FUNCTION)
  value = END_FUNCTION(value);
#endif
  T_STORE(c, at, value);
}
#else
#define END_MEMORY
#define END_AT
#define C_STORE(at, col, value) T_STORE(c, at, value)
#endif

#define PRODUCT_MEMORY \
  BUF(const T, a), BUF(const T, b), BUF(T, c), BUF(ACC, sums) END_MEMORY

FN i64 c_place(const Problem *p, i64 z, i64 r, i64 col) {
  return z * p->c_batch + r * p->c_row + col;
}

FN ACC load_a(GLOBAL const T *a, const Problem *p, Key row, Key inner) {
  const i64 at = a_place(p, row, inner);
  if (at < 0) return ZERO_ACC;
  return TO_ACC(T_LOAD(a, at));
}

FN i64 sum_place(const Problem *p, i64 part, i64 z, i64 r, i64 col) {
  return ((part * p->batches + z) * p->m + r) * p->n + col;
}

// Sums of `parts` pieces of the inner dimension, of `chunk` each.
KERNEL(FLAT_SIZE, product_plain)(PRODUCT_MEMORY, const Problem p,
                                 const i64 parts, const i64 chunk) {
  AT(const T, a);
  AT(const T, b);
  AT(T, c);
  AT(ACC, sums);
  END_AT;
  const i64 each = p.batches * p.m * p.n, part = ITEM / each;
  if (part >= parts) return;
  i64 i = ITEM - part * each, z, r;
  const i64 col = i % p.n;
  i /= p.n;
  if (p.batch_inner) {
    z = i % p.batches;
    r = i / p.batches;
  } else {
    r = i % p.m;
    z = i / p.m;
  }
  const i64 begin = part * chunk;
  const i64 end = begin + chunk < p.k ? begin + chunk : p.k;
  const i64 b_from = b_base(&p, z) + col * p.b_col;
  const Key row = row_key(&p, z, r);
  Key inner = inner_key(&p, z, begin);
  const i64 a_step = a_stride(&p), b_step = b_stride(&p);
  ACC sum = ZERO_ACC;
  for (i64 q = begin; q < end;) {
    const i64 run = inner_run(&p, inner);
    const i64 count = run < end - q ? run : end - q;
    const i64 at = a_place(&p, row, inner);
    if (at >= 0) {
      GLOBAL const T *x = a + at, *y = b + (b_from + inner.b);
      for (i64 i = 0; i < count; ++i) {
        sum = ACC_MADD(TO_ACC(T_LOAD(x, i * a_step)),
                       TO_ACC(T_LOAD(y, i * b_step)), sum);
      }
    }
    inner_skip(&p, &inner, count);
    q += count;
  }
  if (parts > 1) {
    sums[sum_place(&p, part, z, r, col)] = sum;
  } else {
    C_STORE(c_place(&p, z, r, col), col, sum);
  }
}

// Adds the parts.
KERNEL(FLAT_SIZE, product_sum)(BUF(const ACC, sums), BUF(T, c) END_MEMORY,
                               const Problem p, const i64 parts) {
  AT(const ACC, sums);
  AT(T, c);
  END_AT;
  const i64 each = p.batches * p.m * p.n;
  if (ITEM >= each) return;
  ACC sum = sums[ITEM];
  for (i64 part = 1; part < parts; ++part) {
    sum = ADD_ACC(sum, sums[part * each + ITEM]);
  }
  const i64 row = ITEM / p.n, z = row / p.m;
  const i64 col = ITEM - row * p.n;
  C_STORE(c_place(&p, z, row - z * p.m, col), col, sum);
}

#if defined(PRODUCT_END)
// Applies the epilogue to a library's product c.
KERNEL(FLAT_SIZE, product_end)(BUF(T, c) END_MEMORY, const i64 n,
                               const i64 elements) {
  AT(T, c);
  END_AT;
  if (ITEM >= elements) return;
  C_STORE(ITEM, ITEM % n, TO_ACC(T_LOAD(c, ITEM)));
}
#endif
