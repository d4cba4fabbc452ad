// Making and reshaping tensors.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

void add_same_shape(Cases& cases, const char* op, const char* no_gradient) {
  const auto add = [&](const char* label, Shape shape) -> Case& {
    Case& c = cases.add(op, label, {Input(shape)}).types(kNumberTypes);
    if (*no_gradient) c.skip_gradients(no_gradient);
    return c;
  };
  add("matrix", {3, 4});
  add("scalar", {});
  add("empty", {0, 2});
  cases.add(op, "bool", {Input({5}).boolean()}).types(kBoolType);
  cases.add(op, "special", {Input({26}).special()}).close_to(0, 0);
  add("1m", {1024, 1024}).types(dtype_bit(float32)).perf_only();
}

void add_reshape(Cases& cases) {
  const auto add = [&](const char* label, Shape from, Shape to) -> Case& {
    return cases.add("Reshape", label, {Input(from)})
        .types(kNumberTypes)
        .attr("shape", to)
        .close_to(0, 0);
  };
  add("flatten", {2, 3, 4}, {24});
  add("keep_batch", {4, 3, 2}, {4, -1});
  add("to_scalar", {1, 1}, {});
  add("from_scalar", {}, {1, 1});
  add("empty", {0, 3}, {3, 0});
}

void add_broadcast_to(Cases& cases) {
  const auto add = [&](const char* label, Shape from, Shape to) -> Case& {
    return cases.add("BroadcastTo", label, {Input(from)})
        .types(kNumberTypes)
        .attr("shape", to)
        .close_to(0, 0);
  };
  add("row", {3}, {4, 3});
  add("column", {4, 1}, {4, 3});
  add("scalar", {}, {2, 3});
  add("middle", {2, 1, 3}, {2, 4, 3});
  add("same", {2, 3}, {2, 3});
  add("empty", {1, 3}, {0, 3});
  add("1m", {1, 1024}, {1024, 1024}).types(dtype_bit(float32)).perf_only();
}

}  // namespace

void add_array_cases(Cases& cases) {
  add_same_shape(cases, "Identity", "");
  add_same_shape(cases, "DeepCopy", "");
  add_same_shape(cases, "StopGradient", "says no gradient on purpose");
  add_same_shape(cases, "ZerosLike", "");
  add_reshape(cases);
  add_broadcast_to(cases);
}

}  // namespace berth::conformance
