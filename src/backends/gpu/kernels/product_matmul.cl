// MatMul's operands, for product.cl: places of a and b go by strides.

typedef struct {
  PRODUCT_FIELDS;
  i64 a_row, a_inner, b_inner;
  Strided batch_a, batch_b;
} Problem;

typedef struct {
  i64 base, b;
} Key;

FN Key row_key(const Problem *p, i64 z, i64 r) {
  Key key;
  key.base = offset_of(&p->batch_a, z) + r * p->a_row;
  key.b = 0;
  return key;
}

FN Key inner_key(const Problem *p, i64 z, i64 q) {
  Key key;
  key.base = q * p->a_inner;
  key.b = q * p->b_inner;
  return key;
}

// Inner indices from `key` on whose places go by strides; all are inside.
FN i64 inner_run(const Problem *p, Key key) { return p->k; }
FN i64 a_stride(const Problem *p) { return p->a_inner; }
FN i64 b_stride(const Problem *p) { return p->b_inner; }
FN void inner_skip(const Problem *p, Key *key, i64 count) {
  key->base += count * p->a_inner;
  key->b += count * p->b_inner;
}
FN i64 a_place(const Problem *p, Key row, Key inner) {
  return row.base + inner.base;
}

FN i64 b_base(const Problem *p, i64 z) { return offset_of(&p->batch_b, z); }
