// Matrix products.

#include <string>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

Case& add(Cases& cases, const char* label, Shape a, Shape b, bool ta = false,
          bool tb = false) {
  Case& c =
      cases.add("MatMul", label, {Input(a), Input(b)}).close_to(1e-5, 1e-5);
  if (ta) c.attr("transpose_a", true);
  if (tb) c.attr("transpose_b", true);
  return c;
}

}  // namespace

void add_matmul_cases(Cases& cases) {
  add(cases, "nn", {3, 4}, {4, 5}).types(kNumberTypes);
  add(cases, "tn", {4, 3}, {4, 5}, true, false).types(kNumberTypes);
  add(cases, "nt", {3, 4}, {5, 4}, false, true);
  add(cases, "tt", {4, 3}, {5, 4}, true, true);
  add(cases, "vectors", {1, 7}, {7, 1});
  add(cases, "outer", {5, 1}, {1, 4});
  add(cases, "batch", {2, 3, 4}, {2, 4, 5});
  add(cases, "batch_nt", {2, 3, 4}, {2, 5, 4}, false, true);
  add(cases, "batch_broadcast", {2, 1, 3, 4}, {3, 4, 2});
  add(cases, "batch_times_matrix", {2, 3, 4}, {4, 5});
  add(cases, "one", {1, 1}, {1, 1});
  add(cases, "no_rows", {0, 4}, {4, 5});
  add(cases, "no_inner", {3, 0}, {0, 2});
  add(cases, "empty_batch", {0, 3, 4}, {0, 4, 5});
  add(cases, "odd_blocks", {67, 131}, {131, 65})
      .close_to(1e-5, 1e-4)
      .skip_gradients("the same rule as the small cases, only larger");
  cases
      .add("MatMul", "special",
           {Input({3, 13}).special(), Input({13, 2}).special()})
      .types(kFloatingTypes);
  for (const int64_t n : {64, 256, 512}) {
    cases
        .add("MatMul", "square_" + std::to_string(n),
             {Input({n, n}), Input({n, n})})
        .types(dtype_bit(float32))
        .perf_only();
  }
  add(cases, "dense_784x128", {64, 784}, {784, 128})
      .types(dtype_bit(float32))
      .perf_only();
}

}  // namespace berth::conformance
