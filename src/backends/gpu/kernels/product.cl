// Products of matrices: c[r, col] = sum over q of a[r, q] * b[q, col], for
// each of `batches`. Where an element of a or b lies is the business of the
// file after this one (product_matmul.cl, product_conv.cl), so that one set
// of kernels (product_kernels.cl) serves all. The inner dimension may be cut
// into parts, whose sums are added in order.
//
// ACC is what sums are kept in.

#define PRODUCT_FIELDS                                             \
  i64 m, n, k, batches;                                            \
  i64 c_row, c_batch; /* strides of c; columns are dense */        \
  i64 batch_inner;    /* 1: batches lie between rows and columns */ \
  i64 rows_fast;      /* 1: rows of a are nearer than its columns */ \
  i64 b_col           /* stride of b's columns */

// Whole numbers are summed in the unsigned type.
#define WHOLE_MADD(a, b, c) ((c) + (a) * (b))
#define COMPLEX_MADD(a, b, c) T_ADD(c, T_MUL(a, b))

#if T_COMPLEX
#define TO_ACC(x) (x)
#define ADD_ACC(a, b) T_ADD(a, b)
#define ZERO_ACC T_ZERO
#else
#define TO_ACC(x) ((ACC)(x))
#define ADD_ACC(a, b) ((a) + (b))
#define ZERO_ACC ((ACC)0)
#endif
