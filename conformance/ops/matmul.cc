// Matrix products.

#include <string>
#include <utility>
#include <vector>

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

// Products with what fuse_products finds at their ends. Each kind of end is a
// program of a GPU, so few are of float64, too.
Case& add_fused(Cases& cases, const char* label, std::vector<Input> inputs) {
  return cases.add("_FusedMatMul", label, std::move(inputs))
      .types(dtype_bit(float32))
      .close_to(1e-5, 1e-5);
}

void add_fused_cases(Cases& cases) {
  add_fused(cases, "alone", {Input({3, 4}), Input({4, 5})});
  add_fused(cases, "bias", {Input({3, 4}), Input({4, 5}), Input({5})})
      .attr("bias", true);
  add_fused(cases, "bias_relu", {Input({17, 9}), Input({70, 9}), Input({70})})
      .types(kFloatingTypes)
      .attr("transpose_b", true)
      .attr("bias", true)
      .attr("activation", "relu");
  add_fused(cases, "bias_gelu",
            {Input({2, 20, 12}), Input({12, 33}), Input({33})})
      .attr("bias", true)
      .attr("activation", "gelu");
  add_fused(cases, "relu_of_batches", {Input({3, 5, 4}), Input({3, 4, 2})})
      .attr("activation", "relu");
  add_fused(cases, "gelu_kept", {Input({30, 8}), Input({8, 40}), Input({40})})
      .types(kFloatingTypes)
      .attr("bias", true)
      .attr("activation", "gelu")
      .attr("keep", true);
  add_fused(cases, "gelu_kept_without_bias", {Input({8, 5}), Input({8, 6})})
      .attr("transpose_a", true)
      .attr("activation", "gelu")
      .attr("keep", true);
  add_fused(cases, "gelu_grad",
            {Input({30, 8}), Input({40, 8}), Input({30, 40})})
      .types(kFloatingTypes)
      .attr("transpose_b", true)
      .attr("activation", "gelu_grad");
  add_fused(cases, "bias_grad", {Input({50, 8}), Input({50, 19})})
      .attr("transpose_a", true)
      .attr("bias_grad", true);
  add_fused(cases, "flat", {Input({3, 7, 8}), Input({3, 7, 9})})
      .attr("transpose_a", true)
      .attr("flat", true);
  for (const Shape& a : {Shape{2, 3, 0}, Shape{0, 3, 5}}) {
    add_fused(cases, a[0] == 0 ? "flat_no_inner" : "flat_no_rows",
              {Input(a), Input({a[0], 3, 4})})
        .attr("transpose_a", true)
        .attr("flat", true)
        .attr("bias_grad", true);
  }
  add_fused(cases, "flat_bias_grad",
            {Input({2, 3, 70, 5}), Input({2, 3, 70, 9})})
      .attr("transpose_a", true)
      .attr("flat", true)
      .attr("bias_grad", true);
  add_fused(cases, "long_inner",
            {Input({9, 3000}), Input({3000, 20}), Input({20})})
      .attr("bias", true)
      .attr("activation", "relu")
      .close_to(1e-5, 1e-3);
  add_fused(cases, "one_row", {Input({1, 9}), Input({9, 70}), Input({70})})
      .attr("bias", true)
      .attr("activation", "gelu");
  add_fused(cases, "no_rows", {Input({0, 4}), Input({4, 5}), Input({5})})
      .attr("bias", true)
      .attr("activation", "relu");
  add_fused(cases, "no_inner", {Input({3, 0}), Input({0, 2}), Input({2})})
      .attr("bias", true)
      .attr("activation", "gelu")
      .attr("keep", true);
}

}  // namespace

void add_matmul_cases(Cases& cases) {
  add_fused_cases(cases);
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
