// Elements read and written at coordinates; segments; gather with batches.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

const char* const kDepth = "the indices' last dimension says what they name";

// indices [..., k] into an array; repeated ones unless `once`.
struct Nd {
  const char* label;
  Shape target, indices, rows;  // rows: of the updates
  double last;                  // the largest coordinate
};

void add_nd(Cases& cases, const Nd& s) {
  for (const DType d : {int32, int64}) {
    const std::string label = std::string(s.label) + "_" + name_of(d);
    const Input indices = Input(s.indices).whole(0, s.last, d);
    cases.add("GatherNd", label, {Input(s.target), indices})
        .types(kNumberTypes)
        .close_to(0, 0)
        .known_dimensions_only(kDepth);
    cases.add("ScatterNd", label, {indices, Input(s.rows)})
        .types(kNumberTypes)
        .attr("shape", s.target)
        .known_dimensions_only(kDepth);
    cases
        .add("ScatterNdLike", label,
             {indices, Input(s.rows),
              Input(s.target).as(uint8).without_gradient("only its shape")})
        .types(kNumberTypes)
        .known_dimensions_only(kDepth);
    for (const char* op : {"TensorScatterAdd", "TensorScatterSub"}) {
      cases.add(op, label, {Input(s.target), indices, Input(s.rows)})
          .types(kNumberTypes)
          .known_dimensions_only(kDepth);
    }
    for (const char* op : {"TensorScatterMin", "TensorScatterMax"}) {
      cases
          .add(op, label,
               {Input(s.target).distinct(), indices,
                Input(s.rows).distinct().uniform(-1.9, 1.9)})
          .types(kNumberTypes)
          .known_dimensions_only(kDepth);
    }
  }
}

// Each place once: of equal indices the last wins, without a gradient for the
// others.
void add_updates(Cases& cases) {
  const auto update = [&](const char* label, Shape target, Shape indices,
                          std::vector<double> at, Shape rows) {
    const Input index = Input(indices).whole(0, 0, int32).of(at).as(int32);
    cases.add("TensorScatterUpdate", label, {Input(target), index, Input(rows)})
        .types(kNumberTypes)
        .close_to(0, 0)
        .known_dimensions_only(kDepth);
    cases
        .add("ResourceScatterNdUpdate", label,
             {Input(target).as_variable(), index, Input(rows)})
        .types(kNumberTypes)
        .close_to(0, 0)
        .known_dimensions_only(kDepth);
    for (const char* op : {"ResourceScatterNdAdd", "ResourceScatterNdSub"}) {
      cases.add(op, label, {Input(target).as_variable(), index, Input(rows)})
          .types(kNumberTypes)
          .known_dimensions_only(kDepth);
    }
  };
  update("elements", {7}, {3, 1}, {5, 0, 2}, {3});
  update("rows", {4, 3}, {2, 1}, {3, 1}, {2, 3});
  update("points", {3, 4}, {3, 2}, {0, 1, 2, 3, 1, 0}, {3});
  update("grid", {4, 2}, {2, 1, 1}, {3, 0}, {2, 1, 2});
  update("none", {4, 3}, {0, 1}, {0}, {0, 3});
  update("whole", {2, 3}, {1, 0}, {0}, {1, 2, 3});
}

void add_variables(Cases& cases) {
  const auto scatter = [&](const char* op, const char* label, Shape variable,
                           Shape indices, Shape rows) -> Case& {
    return cases
        .add(op, label,
             {Input(variable).as_variable(),
              Input(indices).whole(0, static_cast<double>(variable[0] - 1),
                                   int64),
              Input(rows)})
        .types(kNumberTypes);
  };
  for (const char* op :
       {"ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMul",
        "ResourceScatterMin", "ResourceScatterMax", "ResourceScatterUpdate"}) {
    scatter(op, "rows", {4, 3}, {6}, {6, 3});
    scatter(op, "elements", {5}, {3}, {3});
    scatter(op, "grid", {4, 2}, {2, 2}, {2, 2, 2});
    scatter(op, "one", {4, 3}, {}, {3});
    scatter(op, "none", {4, 3}, {0}, {0, 3});
  }
  cases
      .add("ResourceScatterDiv", "rows",
           {Input({4, 3}).as_variable(), Input({6}).whole(0, 3, int32),
            Input({6, 3}).not_zero()})
      .types(kFloatingTypes);
}

void add_segments(Cases& cases) {
  const auto segment = [&](const std::string& op, const char* label, Shape data,
                           Shape ids, std::vector<double> at,
                           int64_t num) -> Case& {
    const Input rows = op == "UnsortedSegmentProd" ? Input(data).not_zero()
                                                   : Input(data).distinct();
    return cases.add(op, label, {rows, Input(ids).of(std::move(at)).as(int32)})
        .types(kNumberTypes)
        .attr("num_segments", num);
  };
  for (const std::string op : {"UnsortedSegmentSum", "UnsortedSegmentProd",
                               "UnsortedSegmentMin", "UnsortedSegmentMax"}) {
    // -1: dropped.
    segment(op, "rows", {7, 3}, {7}, {2, 0, -1, 1, 1, 3, 0}, 4);
    segment(op, "elements", {9}, {9}, {0, 1, 2, 0, -1, 2, 2, 1, 0}, 3);
    segment(op, "grid", {3, 2, 2}, {3, 2}, {2, 0, 1, 1, -1, 0}, 3);
    segment(op, "one_id", {3}, {}, {0}, 1);
    segment(op, "no_segments", {3, 2}, {3}, {-1}, 0);
    // The extremes of nothing differ between types.
    const bool sums = op == "UnsortedSegmentSum" || op == "UnsortedSegmentProd";
    const DTypeSet types = sums ? kNumberTypes : kIntegerTypes;
    segment(op, "empty_segments", {4, 2}, {4}, {3, 1, 1, 3}, 6).types(types);
    segment(op, "none", {0, 3}, {0}, {0}, 2).types(types);
  }
  cases
      .add("UnsortedSegmentProd", "zeros",
           {Input({6}).of({2, 0, 3, 0, 0, 5}),
            Input({6}).of({0, 0, 1, 1, 1, 2}).as(int64)})
      .attr("num_segments", int64_t{3});
}

// params, indices, what is gathered.
void add_batched(Cases& cases, const char* label, Shape params, Shape indices,
                 Shape result, int64_t axis, int64_t batch) {
  const Input index = Input(indices).whole(
      0, static_cast<double>(params[static_cast<int>(axis)] - 1), int32);
  cases.add("GatherV2", label, {Input(params), index})
      .types(kNumberTypes)
      .close_to(0, 0)
      .attr("axis", axis)
      .attr("batch_dims", batch);
  cases.add("GatherGrad", label, {Input(result), index})
      .types(kNumberTypes)
      .attr("shape", params)
      .attr("axis", axis)
      .attr("batch_dims", batch);
  cases
      .add("GatherGradLike", label,
           {Input(result), index,
            Input(params).as(uint8).without_gradient("only its shape")})
      .types(kNumberTypes)
      .attr("axis", axis)
      .attr("batch_dims", batch);
}

}  // namespace

void add_scatter_cases(Cases& cases) {
  add_nd(cases, {"elements", {5}, {7, 1}, {7}, 4});
  add_nd(cases, {"rows", {4, 3}, {5, 1}, {5, 3}, 3});
  add_nd(cases, {"points", {3, 4}, {6, 2}, {6}, 2});
  add_nd(cases, {"grid", {3, 3, 2}, {2, 3, 2}, {2, 3, 2}, 2});
  add_nd(cases, {"one", {4, 3}, {1}, {3}, 3});
  add_nd(cases, {"none", {4, 3}, {0, 1}, {0, 3}, 3});
  add_nd(cases, {"whole", {2, 3}, {2, 0}, {2, 2, 3}, 0});
  add_updates(cases);
  add_variables(cases);
  add_segments(cases);
  add_batched(cases, "batch", {3, 4}, {3, 2}, {3, 2}, 1, 1);
  add_batched(cases, "batch_rows", {2, 4, 3}, {2, 5}, {2, 5, 3}, 1, 1);
  add_batched(cases, "batch_axis_2", {2, 3, 4}, {2, 2}, {2, 3, 2}, 2, 1);
  add_batched(cases, "batch_of_one", {4, 3}, {4}, {4}, 1, 1);
}

}  // namespace berth::conformance
