#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

TEST(ExpandDims, AddsAnAxisOverTheSameBytes) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(expand_dims(x, 0).shape(), Shape({1, 2, 3}));
  EXPECT_EQ(expand_dims(x, 1).shape(), Shape({2, 1, 3}));
  EXPECT_EQ(expand_dims(x, -1).shape(), Shape({2, 3, 1}));
  EXPECT_EQ(expand_dims(constant(1.f), 0).shape(), Shape{1});
  EXPECT_EQ(expand_dims(x, 2).impl()->data(), x.impl()->data());
  expect_invalid([&] { expand_dims(x, 3); }, "ExpandDims: axis 3");
  expect_invalid([&] { expand_dims(x, -4); }, "[-3, 3)");
  expect_invalid(
      [] {
        expand_dims(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0);
      },
      "no room");
}

TEST(Squeeze, DropsAxesOfLengthOne) {
  const Tensor x = counted({1, 3, 1});
  EXPECT_EQ(squeeze(x).shape(), Shape{3});
  EXPECT_EQ(squeeze(x, {0}).shape(), Shape({3, 1}));
  EXPECT_EQ(squeeze(x, {-1, 0}).shape(), Shape{3});
  EXPECT_EQ(squeeze(zeros({1, 0}), {0}).shape(), Shape{0});
  EXPECT_EQ(squeeze(x).impl()->data(), x.impl()->data());
  expect_invalid([&] { squeeze(x, {1}); },
                 "axis 1 of [1,3,1] has length 3; expected 1");
  expect_invalid([&] { squeeze(x, {3}); }, "axis 3 is out of range");
}

TEST(Transpose, MovesAxes) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(floats(transpose(x)), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(transpose(x).shape(), Shape({3, 2}));
  EXPECT_EQ(floats(transpose(x, {0, 1})), floats(x));
  EXPECT_EQ(transpose(zeros({2, 0, 3}), {2, 0, 1}).shape(), Shape({3, 2, 0}));
  EXPECT_EQ(transpose(constant(4.f)).item<float>(), 4.f);
  // Element [k, i, j] of the result is [i, j, k] of the input.
  const Tensor t = transpose(counted({2, 3, 4}), {2, 0, 1});
  EXPECT_EQ(t.shape(), Shape({4, 2, 3}));
  EXPECT_EQ(floats(t)[(1 * 2 + 1) * 3 + 2], (1 * 3 + 2) * 4 + 1);
  for (const Ints& perm : {Ints{0}, Ints{0, 0}, Ints{0, 2}, Ints{-1, 0}}) {
    expect_invalid([&] { transpose(x, perm); }, "each of 0 to 1 once");
  }
}

TEST(Tile, RepeatsAlongEachAxis) {
  const Tensor x = constant({{1, 2}, {3, 4}});
  EXPECT_EQ(ints(tile(x, {1, 2})), (Ints{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(ints(tile(x, {2, 1})), (Ints{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(tile(x, {0, 3}).shape(), Shape({0, 6}));
  EXPECT_EQ(tile(zeros({0}), {3}).shape(), Shape{0});
  EXPECT_EQ(tile(constant(2.f), {}).item<float>(), 2.f);
  expect_invalid([&] { tile(x, {2}); }, "1 numbers; expected 2");
  expect_invalid([&] { tile(x, {2, -1}); }, "multiple -1 of axis 1");
  expect_invalid(
      [&] {
        tile(x, {int64_t{1} << 40, int64_t{1} << 40});
      },
      "too many");
  expect_invalid([&] { tile(x, {int64_t{1} << 62, 3}); }, "overflows");
}

TEST(Pad, PutsZerosAround) {
  EXPECT_EQ(ints(pad(constant({1, 2}), {1, 2})), (Ints{0, 1, 2, 0, 0}));
  EXPECT_EQ(ints(pad(constant({{1, 2}}), {0, 1, 1, 0})),
            (Ints{0, 1, 2, 0, 0, 0}));
  EXPECT_EQ(floats(pad(zeros({0, 2}), {1, 1, 0, 0})), Floats(4, 0));
  EXPECT_EQ(pad(constant(3), {}).item<int>(), 3);
  expect_invalid([] { pad(constant({1}), {1}); }, "1 numbers; expected 2");
  expect_invalid([] { pad(constant({1}), {1, -1}); }, "expected 0 or more");
  const int64_t most = INT64_MAX;
  expect_invalid([&] { pad(constant({1}), {most, most}); }, "overflows");
}

TEST(Layout, GradientsAreAdjoints) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(floats(adjoint(x, counted({3, 2}),
                           [](const Tensor& t) { return transpose(t); })),
            (Floats{0, 2, 4, 1, 3, 5}));
  // A cycle of three is not its own inverse: y[k, i, j] = x[i, j, k].
  const Ints cycle = {2, 0, 1}, inverse = {1, 2, 0};
  const Tensor w = counted({4, 2, 3});
  const Tensor dx = adjoint(zeros({2, 3, 4}), w, [&](const Tensor& t) {
    return transpose(t, cycle);
  });
  EXPECT_EQ(dx.shape(), Shape({2, 3, 4}));
  EXPECT_EQ(floats(dx), floats(transpose(w, inverse)));
  EXPECT_EQ(adjoint(x, counted({2, 1, 3}),
                    [](const Tensor& t) { return expand_dims(t, 1); })
                .shape(),
            x.shape());
  EXPECT_EQ(adjoint(counted({1, 2}), counted({2}),
                    [](const Tensor& t) { return squeeze(t); })
                .shape(),
            Shape({1, 2}));
  // Tiles add up: w = [[0 1 2 3] [4 5 6 7]] over x [1, 2].
  EXPECT_EQ(floats(adjoint(counted({1, 2}), counted({2, 4}),
                           [](const Tensor& t) {
                             return tile(t, {2, 2});
                           })),
            (Floats{0 + 2 + 4 + 6, 1 + 3 + 5 + 7}));
  EXPECT_EQ(floats(adjoint(counted({1, 2}), counted({3, 4}),
                           [](const Tensor& t) {
                             return pad(t, {1, 1, 0, 2});
                           })),
            (Floats{4, 5}));
}

TEST(Layout, SecondOrderGradientsRun) {
  // y = sum(tile(x^2)) -> dy/dx = 2 m x -> d2y/dx2 = 2 m, with m = 3.
  const Tensor x = constant({1.f, 2.f});
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor g = inner.gradient(tile(x * x, {3}), x);
  EXPECT_EQ(floats(g), (Floats{6, 12}));
  EXPECT_EQ(floats(outer.gradient(g, x)), (Floats{6, 6}));
}

TEST(Layout, PassesUnknownDimensions) {
  EXPECT_EQ(inferred("ExpandDims", {{-1, 3}}, {{"axis", int64_t{1}}})[0],
            Shape({-1, 1, 3}));
  EXPECT_EQ(inferred("Squeeze", {{-1, 1}}, {})[0], Shape{-1});
  EXPECT_EQ(inferred("Squeeze", {{-1, 3}}, {{"axis", Ints{0}}})[0], Shape{3});
  EXPECT_EQ(inferred("Transpose", {{-2, 3}}, {{"perm", Ints{1, 0}}})[0],
            Shape({3, -2}));
  EXPECT_EQ(inferred("Tile", {{-2, 3}}, {{"multiples", Ints{1, 2}}})[0],
            Shape({-2, 6}));
  EXPECT_EQ(inferred("Tile", {{-2, 3}}, {{"multiples", Ints{2, 1}}})[0],
            Shape({-1, 3}));
  EXPECT_EQ(inferred("Pad", {{-2, 3}}, {{"paddings", Ints{0, 0, 1, 1}}})[0],
            Shape({-2, 5}));
  EXPECT_EQ(inferred("Pad", {{-2, 3}}, {{"paddings", Ints{1, 0, 0, 0}}})[0],
            Shape({-1, 3}));
}

TEST(Layout, SplitsOnlyAxesThatStayWhole) {
  const auto rules = [](const char* name, const Shape& in,
                        std::vector<Attrs::Pair> pairs) {
    const OpDef& op = op_named(name);
    const AttrsRef attrs(std::move(pairs));
    const SpecView spec{float32, &in};
    OutSpec out;
    InferContext c(op, attrs.get(), {&spec, 1}, {&out, 1});
    op.infer()(c);
    std::vector<std::pair<int, int>> cuts;
    for (const SplitSignature& s : op.split()(c)) {
      cuts.push_back({s.inputs[0], s.outputs[0]});
    }
    return cuts;
  };
  using Cuts = std::vector<std::pair<int, int>>;
  EXPECT_EQ(rules("Transpose", {2, 3}, {{"perm", Ints{1, 0}}}),
            (Cuts{{1, 0}, {0, 1}}));
  EXPECT_EQ(rules("Tile", {2, 3}, {{"multiples", Ints{1, 2}}}), (Cuts{{0, 0}}));
  EXPECT_EQ(rules("Pad", {2, 3}, {{"paddings", Ints{0, 1, 0, 0}}}),
            (Cuts{{1, 1}}));
  EXPECT_EQ(rules("ExpandDims", {2, 3}, {{"axis", int64_t{0}}}),
            (Cuts{{0, 1}}));
  EXPECT_EQ(rules("Squeeze", {1, 3}, {}), (Cuts{{1, 0}}));
  EXPECT_EQ(
      rules("Slice", {4, 3}, {{"begin", Ints{1, 0}}, {"size", Ints{2, 3}}}),
      (Cuts{{1, 1}}));
}

}  // namespace
}  // namespace berth::test
