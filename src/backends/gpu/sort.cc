// TopKV2, ArgSort and searches in sorted rows.

#include "backends/gpu/kernels.h"
#include "backends/gpu/rows.h"

namespace berth::gpu {

namespace {
namespace sort_family {

KernelSource source_of(Recipe& r) {
  return row_source(r.in_type(0), {"sort.cl"});
}

Arg flag(bool on) { return value(static_cast<int32_t>(on)); }

// Sorts rows; returns their places, [rows, span].
Arg order_rows(Recipe& r, const RowShape& x, int64_t span, bool down) {
  const KernelSource source = source_of(r);
  const int64_t local = 2 * int64_t{r.features().group_size};  // SORT_SPAN
  const int64_t groups = ceil_div(x.rows * span, local);
  const auto places = static_cast<size_t>(groups * local);
  const DType type = r.in_type(0);
  const bool half = type == bfloat16 || type == float16;
  const Arg keys = r.scratch(places * (half ? 4 : size_of(type)));
  const Arg order = r.scratch(places * sizeof(int32_t));
  const Arg n = value(x.length), over = value(span);
  const auto inside = [&](int64_t size, bool first) {
    r.groups(source, "sort_local", groups,
             {in(0), keys, order, value(x.rows), n, over, value(size),
              flag(first), flag(down)});
  };
  inside(0, true);
  for (int64_t size = 2 * local; size <= span; size *= 2) {
    for (int64_t apart = size / 2; apart >= local; apart /= 2) {
      const int64_t pairs = groups * local / 2;
      r.flat(source, "sort_step", pairs,
             {keys, order, value(pairs), n, over, value(size), value(apart),
              flag(down)});
    }
    inside(size, false);
  }
  return order;
}

// Finds the first k of each row: places go to output `places`, and values to
// output 0 when that is another one.
bool first_of_rows(Recipe& r, int64_t k, int places, bool down) {
  const RowShape x = rows_of(r.in_shape(0));
  if (x.rows * k == 0) return true;
  int64_t span = 1;
  while (span < x.length) span *= 2;
  const Arg order = order_rows(r, x, span, down);
  r.flat(source_of(r), "sort_results", x.rows * k,
         {in(0), order, places == 0 ? no_buffer() : out(0), out(places),
          value(x.rows), value(x.length), value(span), value(k),
          flag(places != 0)});
  return true;
}

bool top_k(Recipe& r) {
  return first_of_rows(r, rows_of(r.out_shape(0)).length, 1, true);
}
bool arg_sort(Recipe& r) {
  return first_of_rows(r, rows_of(r.in_shape(0)).length, 0,
                       r.args().attr<bool>("descending"));
}

bool bound(Recipe& r, bool upper) {
  const RowShape sorted = rows_of(r.in_shape(0)), v = rows_of(r.in_shape(1));
  const int64_t count = v.rows * v.length;
  r.flat(source_of(r), "bound", count,
         {in(0), in(1), out(0), out(0), value(count), value(v.length),
          value(sorted.length), flag(upper), flag(r.out_type(0) == int64)});
  return true;
}
bool lower_bound(Recipe& r) { return bound(r, false); }
bool upper_bound(Recipe& r) { return bound(r, true); }

}  // namespace sort_family
}  // namespace

void add_sort(Kernels& k) {
  using namespace sort_family;  // NOLINT: the functions of this file
  k.add("TopKV2", kRealNumbers, &top_k);
  k.add("ArgSort", kRealNumbers, &arg_sort);
  k.add("LowerBound", kRealNumbers, &lower_bound);
  k.add("UpperBound", kRealNumbers, &upper_bound);
}

}  // namespace berth::gpu
