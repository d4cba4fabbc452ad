// Complex numbers and their parts.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

void add_part(Cases& cases, const char* op) {
  const auto add = [&](const char* label, Shape shape) -> Case& {
    return cases.add(op, label, {Input(shape).not_zero()}).types(kComplexTypes);
  };
  add("matrix", {3, 5});
  add("scalar", {});
  add("empty", {0, 2});
  add("odd_length", {131});
  cases.add(op, "special", {Input({26}).special()}).types(kComplexTypes);
}

}  // namespace

void add_complex_cases(Cases& cases) {
  const auto add = [&](const char* label, Shape re, Shape im) {
    cases.add("Complex", label, {Input(re), Input(im)});
  };
  add("same", {3, 5}, {3, 5});
  add("row", {4, 5}, {5});
  add("scalar", {}, {2, 3});
  add("scalars", {}, {});
  add("empty", {0, 3}, {3});
  cases.add("Complex", "special",
            {Input({13, 13}).special(), Input({13, 13}).special()});
  for (const char* op : {"Real", "Imag", "Angle", "ComplexAbs", "Conj"}) {
    add_part(cases, op);
  }
  cases.add("ComplexAbs", "zero", {Input({3}).of({0, 0, 3, 4, 0, -2})})
      .types(kComplexTypes)
      .skip_gradients("no derivative at 0");
}

}  // namespace berth::conformance
