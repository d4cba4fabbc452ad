// Softmax and the cross-entropies over it.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

Input logits(Shape shape) { return Input(shape).uniform(-4, 4); }

void add_softmax(Cases& cases, const char* op) {
  const auto add = [&](const char* label, Input x) -> Case& {
    return cases.add(op, label, {std::move(x)});
  };
  add("matrix", logits({3, 5}));
  add("vector", logits({7}));
  add("3d", logits({2, 3, 4}));
  add("one_class", logits({3, 1}));
  add("large_logits", Input({3, 4}).uniform(-800, 800))
      .close_to(1e-5, 1e-4)
      .skip_gradients("the gradients vanish");
  add("empty", logits({0, 5}));
  add("odd_rows", logits({9, 131}))
      .skip_gradients("the same rule as the small cases, only larger");
  add("special", Input({13, 3}).special());
  add("1m", logits({1024, 1024})).types(dtype_bit(float32)).perf_only();
}

void add_cross_entropy(Cases& cases) {
  const char* op = "SoftmaxCrossEntropyWithLogits";
  const auto add = [&](const char* label, Shape shape) -> Case& {
    return cases.add(op, label, {logits(shape), Input(shape).shares()})
        .close_to(1e-5, 1e-5);
  };
  add("matrix", {3, 5});
  add("one_row", {1, 4});
  add("one_class", {3, 1});
  add("empty", {0, 5});
  add("128x1000", {128, 1000}).types(dtype_bit(float32)).perf_only();
}

void add_sparse_cross_entropy(Cases& cases) {
  const char* op = "SparseSoftmaxCrossEntropyWithLogits";
  const auto add = [&](std::string label, Shape shape, DType d) -> Case& {
    const double last = static_cast<double>(shape[1] - 1);
    return cases
        .add(op, label + "_" + name_of(d),
             {logits(shape), Input({shape[0]}).whole(0, last, d)})
        .close_to(1e-5, 1e-5);
  };
  for (const DType d : {int32, int64}) {
    add("matrix", {3, 5}, d);
    add("one_row", {1, 4}, d);
    add("one_class", {3, 1}, d);
    add("empty", {0, 5}, d);
  }
  add("128x1000", {128, 1000}, int32).types(dtype_bit(float32)).perf_only();
}

}  // namespace

void add_softmax_cases(Cases& cases) {
  add_softmax(cases, "Softmax");
  add_softmax(cases, "LogSoftmax");
  add_cross_entropy(cases);
  add_sparse_cross_entropy(cases);
}

}  // namespace berth::conformance
