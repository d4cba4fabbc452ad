// Gather and its gradient, one_hot, select.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

struct Gather {
  const char* label;
  Shape params, indices, result;
  int64_t axis = 0;
};

// Repeated indices: their gradients add up.
void add_gather(Cases& cases, const Gather& g) {
  const double last =
      static_cast<double>(g.params[static_cast<int>(g.axis)] - 1);
  for (const DType d : {int32, int64}) {
    const std::string label = std::string(g.label) + "_" + name_of(d);
    const Input indices = Input(g.indices).whole(0, last, d);
    cases.add("GatherV2", label, {Input(g.params), indices})
        .types(kNumberTypes)
        .close_to(0, 0)
        .attr("axis", g.axis);
    cases.add("GatherGrad", label, {Input(g.result), indices})
        .types(kNumberTypes)
        .attr("shape", g.params)
        .attr("axis", g.axis);
    cases
        .add("GatherGradLike", label,
             {Input(g.result), indices,
              Input(g.params).as(uint8).without_gradient("only its shape")})
        .types(kNumberTypes)
        .attr("axis", g.axis);
  }
}

void add_one_hot(Cases& cases) {
  const auto hot = [&](const char* label, Shape shape, int64_t depth) -> Case& {
    // -1 and depth are out of range: all off.
    return cases
        .add("OneHot", label,
             {Input(shape).whole(-1, static_cast<double>(depth))})
        .types(kIntegerTypes)
        .attr("depth", depth);
  };
  hot("last", {6}, 3);
  hot("first", {2, 3}, 4).attr("axis", int64_t{0});
  hot("middle", {2, 3}, 4).attr("axis", int64_t{1});
  hot("on_off", {5}, 3).attr("on_value", 2.5).attr("off_value", -1.0);
  hot("int32", {5}, 3).attr("dtype", int32);
  hot("bool", {5}, 3).attr("dtype", bool_);
  hot("scalar", {}, 3);
  hot("empty", {0}, 3);
  hot("no_depth", {2}, 0);
}

void add_select(Cases& cases) {
  const auto select = [&](const char* label, Shape condition, Shape a,
                          Shape b) -> Case& {
    return cases
        .add("SelectV2", label,
             {Input(condition).boolean(), Input(a), Input(b)})
        .types(kNumberTypes)
        .close_to(0, 0);
  };
  select("same", {4, 5}, {4, 5}, {4, 5});
  select("condition_row", {5}, {4, 5}, {4, 5});
  select("condition_column", {4, 1}, {4, 5}, {5});
  select("scalar_values", {3, 2}, {}, {});
  select("scalars", {}, {}, {});
  select("outer", {2, 1, 1}, {3, 1}, {4});
  select("empty", {0, 3}, {0, 3}, {3});
  cases
      .add("SelectV2", "special",
           {Input({13, 13}).boolean(), Input({13, 13}).special(),
            Input({13, 13}).special()})
      .close_to(0, 0);
  select("1m", {1024, 1024}, {1024, 1024}, {1024, 1024})
      .types(dtype_bit(float32))
      .perf_only();
}

}  // namespace

void add_gather_cases(Cases& cases) {
  add_gather(cases, {"rows", {4, 3}, {6}, {6, 3}});
  add_gather(cases, {"columns", {3, 5}, {4}, {3, 4}, 1});
  add_gather(cases, {"middle", {2, 4, 3}, {5}, {2, 5, 3}, 1});
  add_gather(cases, {"grid", {4, 3}, {2, 3}, {2, 3, 3}});
  add_gather(cases, {"one", {4, 3}, {}, {3}});
  add_gather(cases, {"none", {4, 3}, {0}, {0, 3}});
  add_one_hot(cases);
  add_select(cases);
  cases
      .add("GatherV2", "embedding",
           {Input({10000, 128}), Input({4096}).whole(0, 9999, int32)})
      .types(dtype_bit(float32))
      .perf_only();
}

}  // namespace berth::conformance
