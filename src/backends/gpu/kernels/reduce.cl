// Reductions over any axes, in pieces of a length that the number of elements
// of one sum alone decides: outputs are walked by `kept`, elements of one by
// `reduced`. Pieces of one output are left in `partial` when there are several.

// Sums, for means, are divided; other results have the divisor 1.
FN T_C quotient(T_C v, real divisor) {
#if T_COMPLEX
  v.re /= divisor;
  v.im /= divisor;
#elif T_FLOAT
  v /= divisor;
#else
  (void)divisor;
#endif
  return v;
}

// <name>_rows: the elements of an output end with the last axis. Row: a piece.
// <name>_columns: `columns` neighbouring outputs end with the last axis; an
// item has one of them for one piece.
// <name>_fold: from pieces to outputs.
#define REDUCTION(name, COMBINE, START)                                        \
  KERNEL(ROW_ITEMS, name##_rows)                                               \
  (BUF(const T, x), BUF(T, y), BUF(T_C, partial), const Strided kept,          \
   const Strided reduced, const i64 outputs, const i64 length,                 \
   const i64 piece, const i64 pieces, const i32 lanes, const i32 dense,        \
   const real divisor) {                                                       \
    AT(const T, x);                                                            \
    AT(T, y);                                                                  \
    AT(T_C, partial);                                                          \
    ROW_BOX(T_C, box);                                                         \
    ROW_BEGIN;                                                                 \
    const i64 o = row / pieces, begin = (row - o * pieces) * piece;            \
    i64 n = length - begin < piece ? length - begin : piece;                   \
    if (o >= outputs) n = 0;                                                   \
    const i64 base = o < outputs ? offset_of(&kept, o) : 0;                    \
    T_C v;                                                                     \
    if (dense) {                                                               \
      ROW_FOLD(v, n, COMBINE, START, i, T_LOAD(x, base + begin + i));          \
    } else {                                                                   \
      ROW_FOLD(v, n, COMBINE, START, i,                                        \
               T_LOAD(x, base + offset_of(&reduced, begin + i)));              \
    }                                                                          \
    ROW_TREE(box, v, COMBINE);                                                 \
    if (lane != 0 || o >= outputs) return;                                     \
    if (pieces > 1) {                                                          \
      partial[row] = v;                                                        \
    } else {                                                                   \
      v = quotient(v, divisor);                                                \
      T_STORE(y, o, v);                                                        \
    }                                                                          \
  }                                                                            \
                                                                               \
  KERNEL(ROW_ITEMS, name##_columns)                                            \
  (BUF(const T, x), BUF(T, y), BUF(T_C, partial), const Strided kept,          \
   const Strided reduced, const i64 outer, const i64 columns,                  \
   const i64 length, const i64 piece, const i64 pieces, const real divisor) {  \
    AT(const T, x);                                                            \
    AT(T, y);                                                                  \
    AT(T_C, partial);                                                          \
    const i64 unit = ITEM / columns, c = ITEM - unit * columns;                \
    const i64 o = unit / pieces, p = unit - o * pieces;                        \
    if (o >= outer) return;                                                    \
    const i64 begin = p * piece;                                               \
    const i64 end = length - begin < piece ? length : begin + piece;           \
    const i64 base = offset_of(&kept, o) + c;                                  \
    T_C v = START;                                                             \
    for (i64 i = begin; i < end; ++i) {                                        \
      v = COMBINE(v, T_LOAD(x, base + offset_of(&reduced, i)));                \
    }                                                                          \
    const i64 to = o * columns + c;                                            \
    if (pieces > 1) {                                                          \
      partial[p * outer * columns + to] = v;                                   \
    } else {                                                                   \
      v = quotient(v, divisor);                                                \
      T_STORE(y, to, v);                                                       \
    }                                                                          \
  }                                                                            \
                                                                               \
  KERNEL(ROW_ITEMS, name##_fold)                                               \
  (BUF(const T_C, partial), BUF(T, y), const i64 outputs,                      \
   const i64 output_stride, const i64 pieces, const i64 piece_stride,          \
   const i32 lanes, const real divisor) {                                      \
    AT(const T_C, partial);                                                    \
    AT(T, y);                                                                  \
    ROW_BOX(T_C, box);                                                         \
    ROW_BEGIN;                                                                 \
    const i64 n = row < outputs ? pieces : 0;                                  \
    T_C v;                                                                     \
    ROW_FOLD(v, n, COMBINE, START, i,                                          \
             partial[row * output_stride + i * piece_stride]);                 \
    ROW_TREE(box, v, COMBINE);                                                 \
    if (lane != 0 || row >= outputs) return;                                   \
    v = quotient(v, divisor);                                                  \
    T_STORE(y, row, v);                                                        \
  }

REDUCTION(sum, T_ADD, T_ZERO)
REDUCTION(prod, T_MUL, T_ONE)
#if !T_COMPLEX
REDUCTION(max, larger, T_LOWEST)
REDUCTION(min, smaller, T_HIGHEST)
#endif
