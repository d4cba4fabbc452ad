// Reductions over axes.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

using Axes = std::vector<int64_t>;

struct Reduction {
  const char* op;
  DTypeSet types;
  bool distinct = false;  // no ties among the elements
};

Case& add(Cases& cases, const Reduction& r, const char* label, Shape shape,
          const Axes& axis) {
  Input in = Input(shape);
  if (r.types == kBoolType) in = in.boolean();
  if (r.distinct) in = in.distinct();
  return cases.add(r.op, label, {in}).types(r.types).attr("axis", axis);
}

void add_reduction(Cases& cases, const Reduction& r) {
  add(cases, r, "rows", {4, 5}, {0});
  add(cases, r, "columns", {4, 5}, {1});
  add(cases, r, "last_negative", {2, 3, 4}, {-1});
  add(cases, r, "middle", {2, 3, 4}, {1});
  add(cases, r, "outer_and_inner", {2, 3, 4}, {0, 2});
  add(cases, r, "keep_dims", {3, 4}, {1}).attr("keep_dims", true);
  add(cases, r, "keep_all", {2, 3, 4}, {0, 1, 2}).attr("keep_dims", true);
  add(cases, r, "no_axes", {2, 3}, {});
  add(cases, r, "all_listed", {3, 5}, {0, 1});
  add(cases, r, "all", {3, 5}, {}).attr("all_axes", true);
  add(cases, r, "scalar", {}, {});
  add(cases, r, "nothing_kept", {0, 3}, {1});
  add(cases, r, "of_nothing", {0, 3}, {0})
      .skip_gradients("no element to differentiate");
  if (r.types & dtype_bit(float32)) {
    cases.add(r.op, "special", {Input({13, 2}).special()})
        .attr("axis", Axes{1})
        .types(kFloatingTypes);
    add(cases, r, "long_row", {2, 3000}, {1})
        .types(kFloatingTypes)
        .close_to(1e-5, 1e-4)
        .skip_gradients("the same rule as the small cases, only longer");
    add(cases, r, "1m_columns", {1024, 1024}, {1})
        .types(dtype_bit(float32))
        .perf_only();
    add(cases, r, "1m_rows", {1024, 1024}, {0})
        .types(dtype_bit(float32))
        .perf_only();
  }
}

void add_arg(Cases& cases, const char* op) {
  const auto add = [&](const char* label, Shape shape, int64_t axis) -> Case& {
    return cases.add(op, label, {Input(shape).distinct()})
        .types(kNumberTypes)
        .attr("axis", axis);
  };
  add("rows", {4, 5}, 0);
  add("last", {4, 5}, -1);
  add("middle_int32", {2, 5, 3}, 1).attr("output_type", int32);
  add("vector", {7}, 0);
  add("nothing_kept", {0, 3}, 1);
  cases.add(op, "first_of_equals", {Input({4, 6}).whole(0, 2)})
      .types(kNumberTypes)
      .attr("axis", int64_t{1});
  cases.add(op, "special", {Input({13, 2}).special()})
      .types(kFloatingTypes)
      .attr("axis", int64_t{1});
  add("1m", {1024, 1024}, 1).types(dtype_bit(float32)).perf_only();
}

}  // namespace

void add_reduce_cases(Cases& cases) {
  add_reduction(cases, {"Sum", kNumberTypes});
  add_reduction(cases, {"Mean", kFloatingTypes});
  add_reduction(cases, {"Max", kNumberTypes, true});
  add_reduction(cases, {"Min", kNumberTypes, true});
  add_reduction(cases, {"Prod", kNumberTypes});
  add_reduction(cases, {"All", kBoolType});
  add_reduction(cases, {"Any", kBoolType});
  cases.add("Prod", "one_zero", {Input({2, 3}).of({1.5, 0, 2, -1, 0.5, 3})})
      .attr("axis", Axes{1});
  cases.add("Prod", "two_zeros", {Input({4}).of({1.5, 0, 0, 2})})
      .attr("axis", Axes{0});
  cases
      .add("Prod", "zeros_over_two_axes",
           {Input({2, 2, 3}).of({1.5, 0, 2, -1, 0.5, 3, 0, 1, 2, 1, 0, -2})})
      .attr("axis", Axes{0, 2});
  add_arg(cases, "ArgMax");
  add_arg(cases, "ArgMin");
}

}  // namespace berth::conformance
