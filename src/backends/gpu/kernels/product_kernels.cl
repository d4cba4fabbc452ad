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

// Processors add up neighbouring elements as vectors.
#if defined(__OPENCL_VERSION__) && IS_CPU && T_FLOAT && !T_HALF
#define DOT_VECTORS 1
#else
#define DOT_VECTORS 0
#endif

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
#if DOT_VECTORS
  VEC lanes = (VEC)0;
#endif
  for (i64 q = begin; q < end;) {
    const i64 run = inner_run(&p, inner);
    const i64 count = run < end - q ? run : end - q;
    const i64 at = a_place(&p, row, inner);
    if (at >= 0) {
      GLOBAL const T *x = a + at, *y = b + (b_from + inner.b);
      i64 i = 0;
#if DOT_VECTORS
      if (a_step == 1 && b_step == 1) {
        for (; i + LANES <= count; i += LANES) {
          lanes = VEC_MADD(VLOAD(0, x + i), VLOAD(0, y + i), lanes);
        }
      }
#endif
      for (; i < count; ++i) {
        sum = ACC_MADD(TO_ACC(T_LOAD(x, i * a_step)),
                       TO_ACC(T_LOAD(y, i * b_step)), sum);
      }
    }
    inner_skip(&p, &inner, count);
    q += count;
  }
#if DOT_VECTORS
  ACC each_lane[LANES];
  VSTORE(lanes, 0, each_lane);
  for (i32 w = LANES / 2; w > 0; w /= 2) {
    for (i32 i = 0; i < w; ++i) each_lane[i] += each_lane[i + w];
  }
  sum += each_lane[0];
#endif
  if (parts > 1) {
    sums[sum_place(&p, part, z, r, col)] = sum;
  } else {
    C_STORE(c_place(&p, z, r, col), col, sum);
  }
}

#if DOT_VECTORS && defined(CONV)
// The same where each group is one channel, to one: as many batches as a
// vector has.
KERNEL(FLAT_SIZE, product_channels)(PRODUCT_MEMORY, const Problem p,
                                    const i64 parts, const i64 chunk) {
  AT(const T, a);
  AT(const T, b);
  AT(T, c);
  AT(ACC, sums);
  const i64 blocks = (p.batches + LANES - 1) / LANES, each = blocks * p.m;
  const i64 part = ITEM / each, r = (ITEM - part * each) / blocks;
  if (part >= parts) return;
  const i64 z = (ITEM - part * each - r * blocks) * LANES;
  const i64 count = p.batches - z < LANES ? p.batches - z : LANES;
  const i64 begin = part * chunk;
  const i64 end = begin + chunk < p.k ? begin + chunk : p.k;
  const Key row = row_key(&p, z, r);
  Key inner = inner_key(&p, z, begin);
  GLOBAL const T *weights = b + b_base(&p, z);
  ACC out[LANES];
  VEC sum = (VEC)0;
  if (count < LANES) VSTORE(sum, 0, out);
  for (i64 q = begin; q < end; ++q) {
    const i64 at = a_place(&p, row, inner);
    if (at >= 0 && count == LANES) {
      sum = VEC_MADD(VLOAD(0, a + at), VLOAD(0, weights + inner.b), sum);
    } else if (at >= 0) {
      for (i64 i = 0; i < count; ++i) {
        out[i] = ACC_MADD(a[at + i], weights[inner.b + i], out[i]);
      }
    }
    inner_skip(&p, &inner, 1);
  }
  if (count == LANES) VSTORE(sum, 0, out);
  for (i64 i = 0; i < count; ++i) {
    if (parts > 1) {
      sums[sum_place(&p, part, z + i, r, 0)] = out[i];
    } else {
      c[c_place(&p, z + i, r, 0)] = out[i];
    }
  }
}
#endif

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
// The same behind a library's product: c becomes what it is to be.
KERNEL(FLAT_SIZE, product_end)(BUF(T, c) END_MEMORY, const i64 n,
                               const i64 elements) {
  AT(T, c);
  END_AT;
  if (ITEM >= elements) return;
  C_STORE(ITEM, ITEM % n, TO_ACC(T_LOAD(c, ITEM)));
}
#endif
