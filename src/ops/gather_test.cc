#include <algorithm>

#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

TEST(Gather, TakesRowsAlongAnAxis) {
  const Tensor x = counted({3, 2});
  EXPECT_EQ(floats(gather(x, constant({2, 0, 2}))), (Floats{4, 5, 0, 1, 4, 5}));
  EXPECT_EQ(floats(gather(x, constant({int64_t{1}}), -1)), (Floats{1, 3, 5}));
  EXPECT_EQ(floats(gather(x, constant(1))), (Floats{2, 3}));
  EXPECT_EQ(gather(x, constant({{0, 1}, {1, 0}})).shape(), Shape({2, 2, 2}));
  EXPECT_EQ(gather(x, zeros({0}, int32)).shape(), Shape({0, 2}));
  EXPECT_EQ(gather(zeros({3, 0}), constant({2})).shape(), Shape({1, 0}));
}

TEST(Gather, NamesTheIndexThatIsOutOfRange) {
  const Tensor x = counted({3, 2});
  expect_invalid(
      [&] {
        gather(x, constant({0, 3})).to_vector<float>();
      },
      "index 3 at place 1 of the indices is out of range for axis "
      "0 of [3,2]; expected one in [0, 3)");
  expect_invalid([&] { gather(x, constant(-1), 1).to_vector<float>(); },
                 "index -1");
  expect_invalid([&] { gather(zeros({0}), constant(0)).to_vector<float>(); },
                 "index 0");
  expect_invalid([&] { gather(x, constant(0), 2); }, "axis 2 is out of range");
  expect_invalid([&] { gather(x, constant(0.f)); }, "indices is float32");
  expect_invalid([] { gather(constant(1.f), constant(0)); }, "rank 0");
}

TEST(Gather, GradientAddsUpWhatWasTakenTwice) {
  const Tensor ids = constant({2, 0, 2});
  EXPECT_EQ(floats(adjoint(zeros({3, 2}), counted({3, 2}),
                           [&](const Tensor& t) { return gather(t, ids); })),
            (Floats{2, 3, 0, 0, 0 + 4, 1 + 5}));
  EXPECT_EQ(floats(adjoint(zeros({2, 3}), counted({2, 3}),
                           [&](const Tensor& t) { return gather(t, ids, 1); })),
            (Floats{1, 0, 0 + 2, 4, 0, 3 + 5}));
  const Tensor dx =
      call1(op_named("GatherGradLike"), {&ids, &ids, &ids}, nullptr);
  EXPECT_EQ(ints(dx), (Ints{0, 0, 4}));
}

TEST(OneHot, PutsOnWhereTheIndexPoints) {
  EXPECT_EQ(floats(one_hot(constant({2, 0}), 3)), (Floats{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(floats(one_hot(constant({2, 0}), 3, {.axis = 0})),
            (Floats{0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(floats(one_hot(constant({-1, 3}), 3)), Floats(6, 0));
  EXPECT_EQ(ints(one_hot(constant(1), 2, {.on = 7, .off = -1, .dtype = int64})),
            (Ints{-1, 7}));
  EXPECT_EQ(one_hot(constant(1), 2, {.dtype = bool_}).dtype(), bool_);
  EXPECT_EQ(one_hot(zeros({0}, uint8), 4).shape(), Shape({0, 4}));
  EXPECT_EQ(one_hot(constant({1}), 0).shape(), Shape({1, 0}));
  expect_invalid([] { one_hot(constant({1}), -1); }, "depth is -1");
  expect_invalid([] { one_hot(constant({1.f}), 3); }, "indices is float32");
  expect_invalid([] { one_hot(constant({1}), 3, {.on = 300, .dtype = uint8}); },
                 "on_value 300 does not fit uint8");
}

TEST(Where, ChoosesElementwiseWithBroadcasting) {
  const Tensor c = constant({true, false, true});
  EXPECT_EQ(floats(where(c, constant({1.f, 2.f, 3.f}), constant(-1.f))),
            (Floats{1, -1, 3}));
  EXPECT_EQ(ints(where(constant(false), constant({1, 2}), constant({3, 4}))),
            (Ints{3, 4}));
  EXPECT_EQ(where(zeros({0}, bool_), zeros({1}), zeros({})).shape(), Shape{0});
  const Tensor column = reshape(constant({true, false}), {2, 1});
  EXPECT_EQ(ints(where(column, constant({1, 2}), constant({3, 4}))),
            (Ints{1, 2, 3, 4}));
  expect_invalid([&] { where(c, constant(1.f), constant(1)); },
                 "t is float32 but e is int32");
  expect_invalid([&] { where(constant(1), c, c); }, "condition is int32");
  expect_invalid([&] { where(c, zeros({2}), zeros({2})); }, "broadcast");
}

TEST(Where, GradientFlowsToTheChosenSideOnly) {
  const Tensor c = constant({true, false, true});
  const Tensor a = constant({0.f, 0.f, 0.f}), b = constant(0.f);
  GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  const Tensor y = where(c, a, b);
  const Tensors g =
      tape.gradient(y, {a, b}, {.output_grad = constant({1.f, 2.f, 3.f})});
  EXPECT_EQ(floats(g[0]), (Floats{1, 0, 3}));
  EXPECT_EQ(g[1].shape(), Shape{});
  EXPECT_EQ(g[1].item<float>(), 2);
}

TEST(Gather, PassesUnknownDimensions) {
  EXPECT_EQ(inferred("GatherV2", {{-2, 3}, {-1}}, {{"axis", int64_t{1}}},
                     {float32, int32})[0],
            Shape({-2, -1}));
  EXPECT_EQ(inferred("OneHot", {{-2}}, {{"depth", int64_t{4}}}, {int32})[0],
            Shape({-2, 4}));
  EXPECT_EQ(inferred("SelectV2", {{-2, 1}, {-2, 3}, {}}, {}, {bool_})[0],
            Shape({-2, 3}));
}

// The gradient of every op of the array families, of inputs whose shapes are
// not known, has the shape of the input.
TEST(Gradients, PassUnknownDimensions) {
  struct Case {
    const char* op;
    std::vector<Tensor> in;
    std::vector<Attrs::Pair> attrs;
    const char* calls;  // an op that the gradient must call
  };
  const Tensor x = symbol({-1, 3}), row = symbol({3});
  const Tensor ids = symbol({-1}, int32), c = symbol({-1, 1}, bool_);
  const std::vector<Attrs::Pair> axis0 = {{"axis", int64_t{0}}};
  const std::vector<Case> cases = {
      {"Reshape", {x}, {{"shape", Shape{3, -1}}}, "ReshapeLike"},
      {"ReshapeLike", {x, ids}, {}, "ReshapeLike"},
      {"BroadcastLike", {row, x}, {}, "SumLike"},
      {"SumLike", {x, row}, {}, "BroadcastLike"},
      {"ExpandDims", {x}, axis0, "ReshapeLike"},
      {"Squeeze", {symbol({-1, 1})}, {{"axis", Ints{1}}}, "ReshapeLike"},
      {"Transpose", {x}, {{"perm", Ints{1, 0}}}, "Transpose"},
      {"Tile", {x}, {{"multiples", Ints{2, 1}}}, "TileGradLike"},
      {"Pad", {x}, {{"paddings", Ints{1, 2, 0, 1}}}, "StridedSlice"},
      {"ConcatV2", {x, x}, axis0, "ConcatGrad"},
      {"ConcatV2", {x, x}, {{"axis", int64_t{1}}}, "Slice"},
      {"Pack", {x, x}, axis0, "Unpack"},
      {"Slice",
       {x},
       {{"begin", Ints{1, 1}}, {"size", Ints{-1, 2}}},
       "StridedSliceGradLike"},
      {"StridedSlice",
       {x},
       {{"begin", Ints{1}}, {"end", Ints{5}}, {"strides", Ints{2}}},
       "StridedSliceGradLike"},
      {"GatherV2", {x, ids}, axis0, "GatherGradLike"},
      {"SelectV2", {c, x, row}, {}, "SumLike"},
  };
  for (const Case& k : cases) {
    SCOPED_TRACE(k.op);
    ShapesOnly tracer;
    const DispatchGuard on(&tracer);
    const OpDef& op = op_named(k.op);
    const AttrsRef attrs(k.attrs);
    const Tensors out = call_list(op, k.in, attrs.get());
    const std::vector<bool> needed(k.in.size(), true);
    tracer.called.clear();
    const Tensors grads =
        op.gradient()(GradCall(op, attrs.get(), k.in, out, out, needed));
    ASSERT_EQ(grads.size(), k.in.size());
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) continue;
      EXPECT_EQ(grads[i].rank(), k.in[i].rank());
      EXPECT_TRUE(grads[i].shape().compatible_with(k.in[i].shape()));
    }
    EXPECT_NE(std::find(tracer.called.begin(), tracer.called.end(), k.calls),
              tracer.called.end())
        << "expected a call of " << k.calls;
  }
}

}  // namespace
}  // namespace berth::test
