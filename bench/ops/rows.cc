#include "bench/ops/rows.h"

namespace berth_bench {

Tensor values(DType dtype, const Shape& shape, double low, double high) {
  using namespace berth;
  if (low == high) {
    low = dtype == float32 ? 0.5 : 1;
    high = dtype == float32 ? 2.5 : 1000;
  }
  const Tensor u = random::uniform(shape, {.minval = low, .maxval = high});
  if (dtype == bool_) return u > (low + high) / 2;
  return dtype == float32 ? u : math::cast(u, dtype);
}

Tensor places(DType dtype, const Shape& shape, int64_t below) {
  return berth::random::uniform(
      shape, {.maxval = static_cast<double>(below), .dtype = dtype});
}

Shape image(int64_t side) {
  return side < 100    ? Shape{1, 8, 8, 16}
         : side < 2000 ? Shape{16, 32, 32, 64}
                       : Shape{64, 48, 48, 64};
}

void add(Rows& rows, const char* op, const std::string& name,
         const Types& types, int arity, const Pairs& attrs, double low,
         double high) {
  add(rows, op, name, types, [=](DType dtype, int64_t side) {
    Call call{.in = {}, .attrs = attrs};
    for (int i = 0; i < arity; ++i) {
      call.in.push_back(values(dtype, {side, side}, low, high));
    }
    return call;
  });
}

void add(Rows& rows, const char* op, const std::string& name,
         const Types& types, std::function<Call(DType, int64_t)> make) {
  rows.push_back({op, name, types, std::move(make)});
}

Rows all_rows() {
  Rows rows;
  add_elementwise(rows);
  add_arrays(rows);
  add_indexing(rows);
  add_networks(rows);
  add_updates(rows);
  return rows;
}

}  // namespace berth_bench
