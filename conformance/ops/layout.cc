// Axes and places: expand, squeeze, transpose, pad, tile.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

using Ints = std::vector<int64_t>;

void add_axes(Cases& cases) {
  const auto expand = [&](const char* label, Shape shape, int64_t axis) {
    add_move(cases, "ExpandDims", label, shape).attr("axis", axis);
  };
  expand("front", {3, 4}, 0);
  expand("back", {3, 4}, -1);
  expand("middle", {3, 4}, 1);
  expand("scalar", {}, 0);
  expand("empty", {0, 2}, 1);
  const auto squeeze = [&](const char* label, Shape shape, const Ints& axes) {
    Case& c = add_move(cases, "Squeeze", label, shape).attr("axis", axes);
    if (axes.empty()) {
      c.known_dimensions_only("which axes go depends on their lengths");
    }
  };
  squeeze("all", {1, 3, 1}, {});
  squeeze("one", {1, 3, 1}, {0});
  squeeze("last", {4, 3, 1}, {-1});
  squeeze("to_scalar", {1, 1}, {});
  squeeze("empty", {1, 0, 2}, {0});
}

void add_transpose(Cases& cases) {
  const auto transpose = [&](const char* label, Shape shape,
                             const Ints& perm) -> Case& {
    return add_move(cases, "Transpose", label, shape).attr("perm", perm);
  };
  transpose("matrix", {3, 5}, {1, 0});
  transpose("same", {2, 3}, {0, 1});
  transpose("reverse_3d", {2, 3, 4}, {2, 1, 0});
  transpose("nhwc_to_nchw", {2, 3, 2, 4}, {0, 3, 1, 2});
  transpose("vector", {4}, {0});
  transpose("scalar", {}, {});
  transpose("empty", {0, 3}, {1, 0});
  transpose("odd_blocks", {67, 35}, {1, 0})
      .skip_gradients("the same rule as the small cases, only larger");
  cases.add("Transpose", "bool", {Input({3, 5}).boolean()})
      .types(kBoolType)
      .attr("perm", Ints{1, 0});
  transpose("1m", {1024, 1024}, {1, 0}).types(dtype_bit(float32)).perf_only();
}

void add_pad(Cases& cases) {
  const auto pad = [&](const char* label, Shape shape,
                       const Ints& paddings) -> Case& {
    return add_move(cases, "Pad", label, shape).attr("paddings", paddings);
  };
  pad("vector", {3}, {1, 2});
  pad("matrix", {2, 3}, {1, 0, 0, 2});
  pad("inner_only", {4, 3}, {0, 0, 1, 1});
  pad("nothing", {2, 3}, {0, 0, 0, 0});
  pad("scalar", {}, {});
  pad("empty", {0, 2}, {1, 1, 0, 0});
  pad("image", {2, 3, 3, 2}, {0, 0, 1, 1, 1, 1, 0, 0});
  pad("1m", {1022, 1022}, {1, 1, 1, 1}).types(dtype_bit(float32)).perf_only();
}

void add_tile(Cases& cases) {
  const auto tile = [&](const char* label, Shape shape,
                        const Ints& multiples) -> Case& {
    Shape tiled = shape;
    for (int i = 0; i < tiled.rank(); ++i) {
      tiled[i] *= multiples[static_cast<size_t>(i)];
    }
    add_move(cases, "TileGrad", label, tiled)
        .attr("multiples", multiples)
        .attr("shape", shape)
        .close_to(1e-6, 1e-6);
    cases
        .add("TileGradLike", label,
             {Input(tiled),
              Input(shape).as(int32).without_gradient("only its shape")})
        .types(kNumberTypes)
        .attr("multiples", multiples);
    return add_move(cases, "Tile", label, shape).attr("multiples", multiples);
  };
  tile("rows", {2, 3}, {2, 1});
  tile("columns", {2, 3}, {1, 3});
  tile("both", {2, 3}, {2, 2});
  tile("vector", {4}, {3});
  tile("scalar", {}, {});
  tile("no_times", {2, 3}, {0, 1});
  add_move(cases, "Tile", "1m", {256, 1024})
      .attr("multiples", Ints{4, 1})
      .types(dtype_bit(float32))
      .perf_only();
}

}  // namespace

void add_layout_cases(Cases& cases) {
  add_axes(cases);
  add_transpose(cases);
  add_pad(cases);
  add_tile(cases);
}

}  // namespace berth::conformance
