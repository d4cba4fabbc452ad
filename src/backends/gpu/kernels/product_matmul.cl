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

FN void inner_next(const Problem *p, Key *key) {
  key->base += p->a_inner;
  key->b += p->b_inner;
}

FN i64 a_place(const Problem *p, Key row, Key inner) {
  return row.base + inner.base;
}

FN i64 b_base(const Problem *p, i64 z) { return offset_of(&p->batch_b, z); }
