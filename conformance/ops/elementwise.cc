// Elementwise arithmetic and functions.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

constexpr DTypeSet kFloats = kFloatingTypes;

void add_binary(Cases& cases, const char* op, DTypeSet types, Domain a = {},
                Domain b = {}) {
  const auto add = [&](const char* label, Shape x, Shape y) -> Case& {
    return cases.add(op, label, {in_domain(x, a), in_domain(y, b)})
        .types(types);
  };
  add("same", {3, 5}, {3, 5});
  add("row", {4, 5}, {5});
  add("column", {4, 1}, {1, 3}).types(kFloats);
  add("scalar", {}, {2, 3}).types(kFloats);
  add("scalars", {}, {});
  add("outer_3d", {2, 1, 3}, {4, 1});
  add("one_element", {1}, {1, 1}).types(kFloats);
  add("empty", {0, 3}, {1, 3});
  add("above_fast_path", {9, 500}, {9, 500})
      .types(dtype_bit(float32))
      .skip_gradients("the same rule as the small cases, only longer");
  cases
      .add(op, "special",
           {Input({13, 13}).special(), Input({13, 13}).special()})
      .types(kFloats);
  add("1m", {1024, 1024}, {1024, 1024}).types(dtype_bit(float32)).perf_only();
}

void add_unary(Cases& cases, const char* op, DTypeSet types, Domain d = {}) {
  const auto add = [&](const char* label, Shape x) -> Case& {
    return cases.add(op, label, {in_domain(x, d)}).types(types);
  };
  add("matrix", {5, 7});
  add("scalar", {});
  add("empty", {2, 0, 3});
  add("odd_length", {131}).types(kFloats);
  cases.add(op, "special", {Input({26}).special()}).types(kFloats);
  add("1m", {1024, 1024}).types(dtype_bit(float32)).perf_only();
}

// Ties: the gradient's rule is TensorFlow's, and there is no difference
// quotient.
void add_ties(Cases& cases, const char* op) {
  cases.add(op, "ties", {Input({6}).whole(0, 2), Input({6}).whole(0, 2)})
      .types(kNumberTypes)
      .skip_gradients("not differentiable at ties");
}

}  // namespace

void add_elementwise_cases(Cases& cases) {
  add_binary(cases, "AddV2", kNumberTypes);
  add_binary(cases, "Sub", kNumberTypes);
  add_binary(cases, "Mul", kNumberTypes);
  add_binary(cases, "RealDiv", kFloats, {}, {.not_zero = true});
  add_binary(cases, "Maximum", kNumberTypes);
  add_binary(cases, "Minimum", kNumberTypes);
  add_binary(cases, "Pow", kFloats, {0.3, 2.5}, {-2, 2});
  add_binary(cases, "SquaredDifference", kNumberTypes);
  add_ties(cases, "Maximum");
  add_ties(cases, "Minimum");
  cases
      .add("Pow", "whole",
           {Input({6, 8}).whole(0, 5), Input({6, 8}).whole(0, 4)})
      .types(kIntegerTypes);
  cases
      .add("Pow", "negative_base",
           {Input({4}).of({-2, -1, 0, 3}), Input({4}).of({3, 2, 2, -1})})
      .types(kFloats)
      .skip_gradients("no derivative in the exponent at a negative base");

  add_unary(cases, "Neg", kNumberTypes);
  add_unary(cases, "Abs", kNumberTypes, {-2, 2, true});
  add_unary(cases, "Sign", kNumberTypes, {-2, 2, true});
  add_unary(cases, "Square", kNumberTypes);
  add_unary(cases, "Sqrt", kFloats, {0.1, 4});
  add_unary(cases, "Rsqrt", kFloats, {0.1, 4});
  add_unary(cases, "Exp", kFloats);
  add_unary(cases, "Log", kFloats, {0.1, 4});
  add_unary(cases, "Log1p", kFloats, {-0.8, 4});
  add_unary(cases, "Floor", kFloats);
  add_unary(cases, "Sigmoid", kFloats, {-6, 6});
  add_unary(cases, "Tanh", kFloats, {-4, 4});
}

}  // namespace berth::conformance
