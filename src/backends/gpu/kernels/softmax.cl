// Softmax along the last axis, and the losses made of it. Results wait in the
// output for their divisor; of 16 bits, where they would be rounded twice, they
// are computed again instead.

#if T_HALF
#define KEPT(p, i, v) (v)
#define AGAIN(p, i, v) (v)
#else
#define KEPT(p, i, v) ((p)[i] = (v))
#define AGAIN(p, i, v) ((p)[i])
#endif

// The maximum of a row and the sum of exp(x - maximum), whose terms are kept in
// y. A NaN, and an infinity that is the maximum, make all results of the
// row NaN.
#define SOFTMAX_SUMS(n, i, LOGIT, y)                                   \
  T_C max, sum;                                                        \
  ROW_FOLD(max, n, larger, T_LOWEST, i, LOGIT);                        \
  ROW_TREE(box, max, larger);                                          \
  ROW_FOLD(sum, n, T_ADD, T_ZERO, i,                                   \
           KEPT(y, at + i, T_EXP(LOGIT - max)));                       \
  ROW_TREE(box, sum, T_ADD)

KERNEL(ROW_ITEMS, softmax)
(BUF(const T, x), BUF(T, y), const i64 rows, const i64 length,
 const i32 lanes) {
  AT(const T, x);
  AT(T, y);
  ROW_BOX(T_C, box);
  ROW_BEGIN;
  const i64 n = row < rows ? length : 0, at = row * length;
  SOFTMAX_SUMS(n, i, T_LOAD(x, at + i), y);
  for (i64 i = lane; i < n; i += lanes) {
    const T_C power = AGAIN(y, at + i, T_EXP(T_LOAD(x, at + i) - max));
    T_STORE(y, at + i, power / sum);
  }
}

KERNEL(ROW_ITEMS, log_softmax)
(BUF(const T, x), BUF(T, y), const i64 rows, const i64 length,
 const i32 lanes) {
  AT(const T, x);
  AT(T, y);
  ROW_BOX(T_C, box);
  ROW_BEGIN;
  const i64 n = row < rows ? length : 0, at = row * length;
  T_C max, sum;
  ROW_FOLD(max, n, larger, T_LOWEST, i, T_LOAD(x, at + i));
  ROW_TREE(box, max, larger);
  ROW_FOLD(sum, n, T_ADD, T_ZERO, i, T_EXP(T_LOAD(x, at + i) - max));
  ROW_TREE(box, sum, T_ADD);
  const T_C log_sum = T_LOG(sum);
  for (i64 i = lane; i < n; i += lanes) {
    T_STORE(y, at + i, T_LOAD(x, at + i) - max - log_sum);
  }
}

// Element i of a row of scores, x * scale + mask.
#define SCORE(i)                        \
  (T_LOAD(x, at + (i)) * (T_C)scale +   \
   (masked ? T_LOAD(mask, mask_base + (i) * mask_step) : -T_ZERO))

// The softmax of x * scale + mask, in which row r sees the columns up to r %
// seen_rows when `causal`; a row of -inf gives zeros.
KERNEL(ROW_ITEMS, masked_softmax)
(BUF(const T, x), BUF(const T, mask), BUF(T, y), const Strided mask_rows,
 const i64 mask_step, const i64 rows, const i64 length, const i64 seen_rows,
 const i32 lanes, const i32 causal, const i32 masked, const real scale) {
  AT(const T, x);
  AT(const T, mask);
  AT(T, y);
  ROW_BOX(T_C, box);
  ROW_BEGIN;
  const i64 at = row * length;
  i64 n = row < rows ? length : 0;
  if (causal && n > row % seen_rows + 1) n = row % seen_rows + 1;
  const i64 mask_base = masked && row < rows ? offset_of(&mask_rows, row) : 0;
  T_C max, sum;
  ROW_FOLD(max, n, larger, T_LOWEST, i, KEPT(y, at + i, SCORE(i)));
  ROW_TREE(box, max, larger);
  ROW_FOLD(sum, n, T_ADD, T_ZERO, i,
           KEPT(y, at + i, T_EXP(AGAIN(y, at + i, SCORE(i)) - max)));
  ROW_TREE(box, sum, T_ADD);
  if (row >= rows) return;
  const i64 seen = max == T_LOWEST ? 0 : n;
  for (i64 i = lane; i < seen; i += lanes) {
    const T_C power = AGAIN(y, at + i, T_EXP(SCORE(i) - max));
    T_STORE(y, at + i, power / sum);
  }
  for (i64 i = lane; i < length; i += lanes) {
    if (i >= seen) T_STORE(y, at + i, T_ZERO);
  }
}

// loss: -sum(labels * log_softmax(x)); backprop: softmax(x) - labels.
KERNEL(ROW_ITEMS, cross_entropy)
(BUF(const T, x), BUF(const T, labels), BUF(T, loss), BUF(T, backprop),
 const i64 rows, const i64 length, const i32 lanes) {
  AT(const T, x);
  AT(const T, labels);
  AT(T, loss);
  AT(T, backprop);
  ROW_BOX(T_C, box);
  ROW_BEGIN;
  const i64 n = row < rows ? length : 0, at = row * length;
  SOFTMAX_SUMS(n, i, T_LOAD(x, at + i), backprop);
  const T_C log_sum = T_LOG(sum);
  T_C share;
  ROW_FOLD(share, n, T_ADD, T_ZERO, i,
           T_LOAD(labels, at + i) * (T_LOAD(x, at + i) - max - log_sum));
  ROW_TREE(box, share, T_ADD);
  for (i64 i = lane; i < n; i += lanes) {
    const T_C power = AGAIN(backprop, at + i, T_EXP(T_LOAD(x, at + i) - max));
    T_STORE(backprop, at + i, power / sum - T_LOAD(labels, at + i));
  }
  if (lane == 0 && row < rows) T_STORE(loss, row, T_ZERO - share);
}

KERNEL(ROW_ITEMS, sparse_cross_entropy)
(BUF(const T, x), BUF(const i32, narrow), BUF(const i64, wide), BUF(T, loss),
 BUF(T, backprop), BUF(i64, fault), const i64 rows, const i64 length,
 const i32 lanes, const i32 is_wide) {
  AT(const T, x);
  AT(const i32, narrow);
  AT(const i64, wide);
  AT(T, loss);
  AT(T, backprop);
  AT(i64, fault);
  ROW_BOX(T_C, box);
  ROW_BEGIN;
  const i64 n = row < rows ? length : 0, at = row * length;
  i64 label = 0;
  if (row < rows) {
    label = is_wide ? wide[row] : narrow[row];
    if (label < 0 || label >= length) {
      if (lane == 0) report(fault, 1, label, row, length);
      label = 0;
    }
  }
  SOFTMAX_SUMS(n, i, T_LOAD(x, at + i), backprop);
  for (i64 i = lane; i < n; i += lanes) {
    const T_C power = AGAIN(backprop, at + i, T_EXP(T_LOAD(x, at + i) - max));
    const T_C p = power / sum;
    T_STORE(backprop, at + i, i == label ? p - T_ONE : p);
  }
  if (lane == 0 && n > 0) {
    T_STORE(loss, row, T_LOG(sum) - (T_LOAD(x, at + label) - max));
  }
}

// 1 where fewer than k elements of the row are larger than the target's; 0 for
// rows with NaN or infinity and for targets that are not a class.
#define NOT_FINITE(v) ((v) - (v) != T_ZERO)
KERNEL(ROW_ITEMS, in_top_k)
(BUF(const T, x), BUF(const i32, narrow), BUF(const i64, wide), BUF(u8, y),
 const i64 rows, const i64 length, const i64 k, const i32 lanes,
 const i32 is_wide) {
  AT(const T, x);
  AT(const i32, narrow);
  AT(const i64, wide);
  AT(u8, y);
  ROW_BOX(i64, box);
  ROW_BEGIN;
  i64 n = row < rows ? length : 0;
  const i64 at = row * length;
  i64 target = 0;
  if (row < rows) target = is_wide ? wide[row] : narrow[row];
  const i32 is_class = target >= 0 && target < n;
  if (!is_class) n = 0;
  const T_C wanted = is_class ? T_LOAD(x, at + target) : T_ZERO;
  i64 count = 0;  // of larger ones; more than any k when one is not finite
  for (i64 i = lane; i < n; i += lanes) {
    const T_C v = T_LOAD(x, at + i);
    if (NOT_FINITE(v)) count += (i64)1 << 40;
    if (v > wanted) count += 1;
  }
  ROW_TREE(box, count, i64_ADD);
  if (lane == 0 && row < rows) {
    y[row] = (u8)(is_class && count < ((i64)1 << 40) && count < k);
  }
}
