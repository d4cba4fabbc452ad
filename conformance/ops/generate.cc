// Tensors from nothing, and the ops that read only the shape of an input.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

constexpr const char* kShapeOnly = "only its shape is read";

Input like(Shape shape) {
  return Input(shape).as(int32).without_gradient(kShapeOnly);
}

void add_fill(Cases& cases) {
  const auto fill = [&](const char* label, Shape shape, double value) -> Case& {
    return cases.add("Fill", label, {})
        .types(kAllTypes)
        .attr("shape", shape)
        .attr("value", value)
        .dtype_attr("dtype");
  };
  fill("ones", {3, 4}, 1);
  fill("zeros", {5}, 0);
  fill("scalar", {}, 1);
  fill("empty", {0, 2}, 1);
  fill("fraction", {3}, -0.1).types(kFloatingTypes);
  fill("1m", {1024, 1024}, 1).types(dtype_bit(float32)).perf_only();
}

void add_range(Cases& cases) {
  const auto range = [&](const char* label, int64_t start, int64_t limit,
                         int64_t delta) {
    cases.add("Range", label, {})
        .types(kNumberTypes)
        .attr("start", start)
        .attr("limit", limit)
        .attr("delta", delta)
        .dtype_attr("dtype");
  };
  range("up", 0, 10, 1);
  range("by_3", 2, 12, 3);
  range("down", 9, 0, -2);
  range("empty", 5, 5, 1);
}

void add_like(Cases& cases) {
  const auto add = [&](const char* op, const char* label, Shape value,
                       Shape shape) -> Case& {
    return cases.add(op, label, {Input(value), like(shape)})
        .types(kNumberTypes);
  };
  add("SumLike", "rows", {4, 3}, {3});
  add("SumLike", "columns", {4, 3}, {4, 1});
  add("SumLike", "all", {4, 3}, {});
  add("SumLike", "middle", {2, 4, 3}, {2, 1, 3});
  add("SumLike", "same", {2, 3}, {2, 3});
  add("SumLike", "of_nothing", {0, 3}, {3});
  add("BroadcastLike", "row", {3}, {4, 3});
  add("BroadcastLike", "column", {4, 1}, {4, 3});
  add("BroadcastLike", "scalar", {}, {2, 3});
  add("BroadcastLike", "same", {2, 3}, {2, 3});
  add("BroadcastLike", "empty", {1, 3}, {0, 3});
  add("ReshapeLike", "flatten", {2, 3, 4}, {24});
  add("ReshapeLike", "keep_batch", {4, 6}, {4, 2, 3});
  add("ReshapeLike", "to_scalar", {1, 1}, {});
  add("ReshapeLike", "empty", {0, 3}, {3, 0});
  add("SizeRatio", "more", {4, 6}, {3}).types(kFloatingTypes);
  add("SizeRatio", "less", {2}, {4, 3}).types(kFloatingTypes);
}

}  // namespace

void add_generate_cases(Cases& cases) {
  add_fill(cases);
  add_range(cases);
  add_like(cases);
  cases.add("OnesLike", "matrix", {Input({3, 4})}).types(kNumberTypes);
  cases.add("OnesLike", "bool", {Input({3}).boolean()}).types(kBoolType);
  cases.add("OnesLike", "scalar", {Input({})}).types(kNumberTypes);
  cases.add("OnesLike", "empty", {Input({0, 3})}).types(kNumberTypes);
}

}  // namespace berth::conformance
