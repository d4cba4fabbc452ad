// Comparisons, logic, casts.

#include <string>

#include "conformance/modes.h"
#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

void add_comparison(Cases& cases, const char* op, DTypeSet types) {
  // Small whole numbers, so that some are equal.
  const auto add = [&](const char* label, Shape x, Shape y) -> Case& {
    return cases.add(op, label, {Input(x).whole(0, 2), Input(y).whole(0, 2)})
        .types(types);
  };
  add("same", {4, 5}, {4, 5});
  add("row", {4, 5}, {5});
  add("outer", {4, 1}, {1, 3});
  add("scalars", {}, {});
  add("empty", {0, 3}, {3});
  cases
      .add(op, "special",
           {Input({13, 13}).special(), Input({13, 13}).special()})
      .types(kFloatingTypes);
  add("1m", {1024, 1024}, {1024, 1024}).types(dtype_bit(float32)).perf_only();
}

void add_logic(Cases& cases, const char* op, int inputs) {
  const auto add = [&](const char* label, Shape x, Shape y) {
    Case& c = cases.add(op, label, {Input(x).boolean()}).types(kBoolType);
    if (inputs == 2) c.input(Input(y).boolean());
  };
  add("same", {4, 5}, {4, 5});
  add("row", {4, 5}, {5});
  add("scalar", {}, {});
  add("empty", {0, 3}, {3});
}

void add_cast(Cases& cases) {
  for (const DType to : kRunTypes) {
    const std::string name = name_of(to);
    const std::string whole = "differences vanish through whole numbers";
    Case& c = cases.add("Cast", "to_" + name, {Input({3, 5}).uniform(0, 9)})
                  .attr("DstT", to)
                  .types(kNumberTypes);
    Case& b = cases.add("Cast", "bool_to_" + name, {Input({7}).boolean()})
                  .attr("DstT", to)
                  .types(kBoolType);
    if (to == float32 || to == complex64)
      c.step_of(1);  // rounds away smaller differences
    const std::string narrow = "differences vanish in the rounding to 16 bits";
    if (dtype_bit(to) & kHalfTypes) {
      c.skip_gradients(narrow);
      b.skip_gradients(narrow);
    } else if (!is_inexact(to)) {
      c.skip_gradients(whole);
      b.skip_gradients(whole);
    }
    cases.add("Cast", "empty_to_" + name, {Input({0})})
        .attr("DstT", to)
        .types(kNumberTypes)
        .skip_gradients("nothing to differentiate");
  }
  cases.add("Cast", "special_to_float64", {Input({26}).special()})
      .attr("DstT", float64)
      .types(kFloatingTypes);
  cases.add("Cast", "saturates_to_int32", {Input({26}).special()})
      .attr("DstT", int32)
      .types(kFloatingTypes);
  cases.add("Cast", "1m_to_float64", {Input({1024, 1024})})
      .attr("DstT", float64)
      .types(dtype_bit(float32))
      .perf_only();
}

}  // namespace

void add_compare_cases(Cases& cases) {
  add_comparison(cases, "Equal", kNumberTypes);
  add_comparison(cases, "NotEqual", kNumberTypes);
  add_comparison(cases, "Less", kNumberTypes);
  add_comparison(cases, "LessEqual", kNumberTypes);
  add_comparison(cases, "Greater", kNumberTypes);
  add_comparison(cases, "GreaterEqual", kNumberTypes);
  add_logic(cases, "Equal", 2);
  add_logic(cases, "NotEqual", 2);
  add_logic(cases, "LogicalAnd", 2);
  add_logic(cases, "LogicalOr", 2);
  add_logic(cases, "LogicalNot", 1);
  add_cast(cases);
}

}  // namespace berth::conformance
