// Where updates go, as keys to sort them by; `end`: nowhere.

// Index i of batch b, of n each: row b * dim + index. `segments`: a negative
// one goes nowhere.
KERNEL(FLAT_SIZE, keys_of_rows)
(BUF(u64, keys), BUF(const u8, indices), const i32 kind, const i64 dim,
 const i64 n, const i32 segments, const u64 end, const i64 items,
 BUF(i64, fault)) {
  AT(u64, keys);
  AT(const u8, indices);
  AT(i64, fault);
  if (ITEM >= items) return;
  const i64 row = index_at(indices, kind, ITEM);
  const i32 inside = row >= 0 && row < dim;
  if (!inside && !(segments && row < 0)) report(fault, 1, row, ITEM, dim);
  keys[ITEM] = inside ? (u64)(ITEM / n * dim + row) : end;
}

KERNEL(FLAT_SIZE, keys_of_places)
(BUF(u64, keys), BUF(const u8, indices), const Coordinates c, const u64 end,
 const i64 items, BUF(i64, fault)) {
  AT(u64, keys);
  AT(const u8, indices);
  AT(i64, fault);
  if (ITEM >= items) return;
  const i64 place = place_at(indices, &c, ITEM, fault);
  keys[ITEM] = place < 0 ? end : (u64)place;
}
