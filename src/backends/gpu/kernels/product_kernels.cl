// Kernels of products of any kind; see product.cl.

#define PRODUCT_MEMORY \
  BUF(const T, a), BUF(const T, b), BUF(T, c), BUF(ACC, sums)

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
  ACC sum = ZERO_ACC;
  for (i64 q = begin; q < end; ++q) {
    const i64 at = a_place(&p, row, inner);
    if (at >= 0) {
      sum = ACC_MADD(TO_ACC(T_LOAD(a, at)), TO_ACC(T_LOAD(b, b_from + inner.b)),
                     sum);
    }
    inner_next(&p, &inner);
  }
  if (parts > 1) {
    sums[sum_place(&p, part, z, r, col)] = sum;
  } else {
    T_STORE(c, c_place(&p, z, r, col), sum);
  }
}

// Adds the parts.
KERNEL(FLAT_SIZE, product_sum)(BUF(const ACC, sums), BUF(T, c),
                               const Problem p, const i64 parts) {
  AT(const ACC, sums);
  AT(T, c);
  const i64 each = p.batches * p.m * p.n;
  if (ITEM >= each) return;
  ACC sum = sums[ITEM];
  for (i64 part = 1; part < parts; ++part) {
    sum = ADD_ACC(sum, sums[part * each + ITEM]);
  }
  const i64 row = ITEM / p.n, z = row / p.m;
  T_STORE(c, c_place(&p, z, row - z * p.m, ITEM - row * p.n), sum);
}
