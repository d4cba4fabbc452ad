// Places of arrays of up to 8 axes.

#define MAX_RANK 8

// An array of n[0..rank-1] elements, walked with other strides.
typedef struct {
  i64 n[MAX_RANK];
  i64 stride[MAX_RANK];
  i32 rank;
  i32 unused;
} Strided;

// The offset of element i of the walk.
FN i64 offset_of(const Strided *s, i64 i) {
  i64 at = 0;
  for (i32 d = s->rank - 1; d > 0; --d) {
    const i64 q = i / s->n[d];
    at += (i - q * s->n[d]) * s->stride[d];
    i = q;
  }
  return s->rank > 0 ? at + i * s->stride[0] : 0;
}
