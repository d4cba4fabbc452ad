// Elements in other places: pads, mirrors, reverse, roll, split, and shapes
// as tensors.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

using Ints = std::vector<int64_t>;

void add_pads(Cases& cases) {
  const auto pad = [&](const char* label, Shape shape, const Ints& paddings,
                       double value) -> Case& {
    return add_move(cases, "PadV2", label, shape)
        .attr("paddings", paddings)
        .attr("constant_values", value);
  };
  pad("vector", {3}, {1, 2}, 7);
  pad("matrix", {2, 3}, {1, 0, 0, 2}, 3);
  pad("fraction", {2, 3}, {0, 0, 1, 1}, -0.5).types(kFloatingTypes);
  pad("scalar", {}, {}, 1);
  pad("empty", {0, 2}, {1, 1, 0, 0}, 2);
  cases.add("PadV2", "special", {Input({13}).special()})
      .attr("paddings", Ints{1, 1})
      .attr("constant_values", 1.0)
      .close_to(0, 0);
  const auto mirror = [&](const char* label, Shape shape, Ints paddings,
                          const char* mode) {
    add_move(cases, "MirrorPad", label, shape)
        .attr("paddings", paddings)
        .attr("mode", std::string(mode));
    Shape padded = shape;
    for (int i = 0; i < padded.rank(); ++i) {
      padded[i] += paddings[2 * i] + paddings[2 * i + 1];
    }
    add_move(cases, "MirrorPadGrad", label, padded)
        .attr("paddings", paddings)
        .attr("mode", std::string(mode))
        .close_to(1e-6, 1e-6);
  };
  mirror("reflect", {5}, {2, 3}, "REFLECT");
  mirror("reflect_most", {4}, {3, 3}, "REFLECT");
  mirror("symmetric", {5}, {2, 3}, "SYMMETRIC");
  mirror("symmetric_most", {3}, {3, 3}, "SYMMETRIC");
  mirror("reflect_image", {2, 3, 4, 2}, {0, 0, 1, 2, 1, 1, 0, 0}, "REFLECT");
  mirror("symmetric_matrix", {3, 4}, {1, 0, 2, 1}, "SYMMETRIC");
  mirror("nothing", {2, 3}, {0, 0, 0, 0}, "REFLECT");
  mirror("scalar", {}, {}, "SYMMETRIC");
  mirror("empty", {0, 3}, {0, 0, 1, 1}, "REFLECT");
}

void add_turns(Cases& cases) {
  const auto reverse = [&](const char* label, Shape shape, Ints axes) {
    add_move(cases, "ReverseV2", label, shape).attr("axis", axes);
  };
  reverse("vector", {5}, {0});
  reverse("rows", {3, 4}, {0});
  reverse("last", {3, 4}, {-1});
  reverse("both", {3, 4}, {0, 1});
  reverse("middle", {2, 3, 4}, {1});
  reverse("none", {2, 3}, {});
  reverse("scalar", {}, {});
  reverse("empty", {0, 3}, {0});
  const auto roll = [&](const char* label, Shape shape, Ints shift, Ints axes) {
    add_move(cases, "Roll", label, shape)
        .attr("shift", shift)
        .attr("axis", axes);
  };
  roll("vector", {5}, {2}, {0});
  roll("back", {5}, {-1}, {0});
  roll("far", {3, 4}, {11}, {1});
  roll("both", {3, 4}, {1, -2}, {0, 1});
  roll("twice", {5, 2}, {1, 1}, {0, 0});
  roll("none", {2, 3}, {}, {});
  roll("empty", {0, 3}, {2}, {0});
  cases.add("Roll", "bool", {Input({7}).boolean()})
      .types(kBoolType)
      .attr("shift", Ints{3})
      .attr("axis", Ints{0});
}

void add_splits(Cases& cases) {
  const auto equal = [&](const char* label, Shape shape, int64_t num,
                         int64_t axis) {
    add_move(cases, "Split", label, shape)
        .attr("num_split", num)
        .attr("axis", axis);
  };
  equal("rows", {6, 2}, 3, 0);
  equal("columns", {3, 4}, 2, 1);
  equal("last", {2, 2, 6}, 3, -1);
  equal("one", {3}, 1, 0);
  equal("empty", {0, 4}, 2, 1);
  equal("of_nothing", {0, 3}, 2, 0);
  const auto sizes = [&](const char* label, Shape shape, Ints parts,
                         int64_t axis) {
    add_move(cases, "SplitV", label, shape)
        .attr("size_splits", parts)
        .attr("axis", axis);
  };
  sizes("rows", {6, 2}, {1, 2, 3}, 0);
  sizes("rest", {3, 7}, {2, -1, 1}, 1);
  sizes("with_empty", {2, 4}, {0, 4}, -1);
  sizes("one", {2, 3}, {3}, 1);
}

void add_shapes(Cases& cases) {
  for (const Shape& shape : {Shape{3, 4}, Shape{}, Shape{0, 2}}) {
    const std::string label = shape.str();
    for (const char* op : {"Shape", "Size", "Rank"}) {
      cases.add(op, label, {Input(shape)}).types(kNumberTypes);
      cases.add(op, label + "_int64", {Input(shape)}).attr("out_type", int64);
    }
    cases.add("EnsureShape", label, {Input(shape)})
        .types(kNumberTypes)
        .attr("shape", shape);
  }
  cases.add("EnsureShape", "some", {Input({3, 4})})
      .attr("shape", Shape{kUnknownDim, 4});
  const auto between = [&](const char* label, double start, double stop,
                           int64_t num) -> Case& {
    return cases.add("LinSpace", label, {})
        .types(kNumberTypes)
        .attr("start", start)
        .attr("stop", stop)
        .attr("num", num)
        .dtype_attr("dtype");
  };
  between("up", 0, 10, 7);
  between("down", 5, 1, 4);
  between("one", 3, 9, 1);
  between("fractions", -1.5, 0.25, 131).types(kFloatingTypes);
  const auto steps = [&](const char* label, double start, double limit,
                         double delta) {
    cases.add("FloatRange", label, {})
        .types(kFloatingTypes)
        .attr("start", start)
        .attr("limit", limit)
        .attr("delta", delta)
        .dtype_attr("dtype");
  };
  steps("tenths", 0, 1, 0.1);
  steps("down", 1, -1, -0.25);
  steps("empty", 1, 0, 0.5);
}

void add_slice_update(Cases& cases) {
  const auto update = [&](const char* label, Shape full, Shape part, Ints begin,
                          Ints end, Ints strides, int64_t shrink = 0) {
    cases.add("TensorStridedSliceUpdate", label, {Input(full), Input(part)})
        .types(kNumberTypes)
        .close_to(0, 0)
        .attr("begin", begin)
        .attr("end", end)
        .attr("strides", strides)
        .attr("shrink_axis_mask", shrink);
  };
  update("inside", {6}, {3}, {1}, {4}, {1});
  update("every_second", {7}, {4}, {0}, {7}, {2});
  update("rows", {5, 3}, {2, 3}, {1}, {3}, {1});
  update("index", {4, 5}, {5}, {2}, {0}, {1}, 1);
  update("nothing", {4, 3}, {0, 3}, {3}, {1}, {1});
}

}  // namespace

void add_rearrange_cases(Cases& cases) {
  add_pads(cases);
  add_turns(cases);
  add_splits(cases);
  add_shapes(cases);
  add_slice_update(cases);
}

}  // namespace berth::conformance
