#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

TEST(Slice, TakesABox) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ(floats(slice(x, {1, 1}, {2, 2})), (Floats{5, 6, 9, 10}));
  EXPECT_EQ(floats(slice(x, {2, 1}, {-1, -1})), (Floats{9, 10, 11}));
  EXPECT_EQ(slice(x, {3, 0}, {-1, 2}).shape(), Shape({0, 2}));
  EXPECT_EQ(slice(constant(3.f), {}, {}).item<float>(), 3.f);
  expect_invalid(
      [&] {
        slice(x, {0, 2}, {3, 3});
      },
      "begin 2 and size 3 of axis 1 leave [3,4]");
  expect_invalid([&] { slice(x, {-1, 0}, {1, 1}); }, "begin -1");
  expect_invalid([&] { slice(x, {0, 0}, {-2, 1}); }, "size -2");
  expect_invalid([&] { slice(x, {0}, {1}); }, "expected 2");
  expect_invalid([&] { slice(x, {0, INT64_MAX}, {1, INT64_MAX}); }, "leave");
}

TEST(Subscript, IndexesAndRangesAsNumPy) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ(floats(x[{1}]), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(floats(x[{-1}]), (Floats{8, 9, 10, 11}));
  EXPECT_EQ((x[{2, -1}].item<float>()), 11);
  EXPECT_EQ(floats(x[{slice(1, 3), 0}]), (Floats{4, 8}));
  EXPECT_EQ(floats(x[{slice(), slice(-2)}]), (Floats{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(floats(x[{slice({}, -1), slice(0, 1)}]), (Floats{0, 4}));
  EXPECT_EQ(floats(x[{slice(1, {}, 2)}]), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(floats(x[{slice(0, {}, 2), slice(1, {}, 2)}]),
            (Floats{1, 3, 9, 11}));
  EXPECT_EQ(floats(x[{0, slice({}, {}, -1)}]), (Floats{3, 2, 1, 0}));
  EXPECT_EQ(floats(x[{0, slice(2, 0, -1)}]), (Floats{2, 1}));
  EXPECT_EQ(floats(x[{0, slice(2, {}, -2)}]), (Floats{2, 0}));
  EXPECT_EQ(floats(x[{0, slice(-99, 99)}]), (Floats{0, 1, 2, 3}));
  EXPECT_EQ((x[{slice(2, 1), slice()}].shape()), Shape({0, 4}));
  EXPECT_EQ(x[{}].shape(), Shape({3, 4}));
  EXPECT_EQ(constant(5.f)[{}].item<float>(), 5);
}

TEST(Subscript, EveryNthPartsPutTogetherAreTheWhole) {
  const Tensor x = counted({7});
  Floats all(7);
  for (int64_t i = 0; i < 3; ++i) {
    const Floats part = floats(x[{slice(i, {}, 3)}]);
    for (size_t k = 0; k < part.size(); ++k) all[i + 3 * k] = part[k];
  }
  EXPECT_EQ(all, floats(x));
}

TEST(Subscript, SaysWhatIsOutOfRange) {
  const Tensor x = counted({3, 4});
  expect_invalid([&] { x[{3}]; },
                 "index 3 is out of range for axis 0 of [3,4]; expected one "
                 "in [-3, 3)");
  expect_invalid([&] { x[{0, -5}]; }, "index -5 is out of range for axis 1");
  expect_invalid([&] { x[{0, 0, 0}]; }, "3 subscripts for [3,4]");
  expect_invalid([&] { x[{slice(0, 1, 0)}]; }, "stride of axis 0 is 0");
  expect_invalid([] { zeros({0})[{0}]; }, "index 0 is out of range");
  EXPECT_THROW(Tensor()[{0}], errors::FailedPrecondition);
}

TEST(Subscript, SurvivesExtremeNumbers) {
  const Tensor x = counted({3});
  const int64_t low = INT64_MIN, high = INT64_MAX;
  EXPECT_EQ(floats(x[{slice(low, high)}]), (Floats{0, 1, 2}));
  EXPECT_EQ(floats(x[{slice({}, {}, high)}]), Floats{0});
  EXPECT_EQ(floats(x[{slice({}, {}, low)}]), Floats{2});
  EXPECT_EQ(floats(x[{slice(high, low, -1)}]), (Floats{2, 1, 0}));
  expect_invalid([&] { x[{low}]; }, "out of range");
}

TEST(Slice, GradientsPutZerosAround) {
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(floats(adjoint(x, constant({{1.f, 2.f}}),
                           [](const Tensor& t) {
                             return slice(t, {1, 0}, {1, 2});
                           })),
            (Floats{0, 0, 0, 1, 2, 0}));
  EXPECT_EQ(floats(adjoint(x, constant({1.f, 2.f}),
                           [](const Tensor& t) {
                             return t[{1, slice({}, {}, -2)}];
                           })),
            (Floats{0, 0, 0, 2, 0, 1}));
  EXPECT_EQ(floats(adjoint(x, constant(5.f),
                           [](const Tensor& t) {
                             return t[{0, 1}];
                           })),
            (Floats{0, 5, 0, 0, 0, 0}));
}

TEST(Slice, SecondOrderGradientsRun) {
  const Tensor x = constant({1.f, 2.f, 3.f});
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor g = inner.gradient((x * x * x)[{slice(1, {}, 1)}], x);
  EXPECT_EQ(floats(g), (Floats{0, 12, 27}));
  EXPECT_EQ(floats(outer.gradient(g, x)), (Floats{0, 12, 18}));
}

TEST(Slice, GradLikeTakesTheShapeOfAnOperand) {
  const OpDef& op = op_named("StridedSliceGradLike");
  const AttrsRef attrs(
      {{"begin", Ints{1}}, {"end", Ints{4}}, {"strides", Ints{2}}});
  const Tensor dx =
      call1(op, constant({1.f, 2.f}), zeros({5}, int32), attrs.get());
  EXPECT_EQ(floats(dx), (Floats{0, 1, 0, 2, 0}));
  expect_invalid([&] { call1(op, zeros({3}), zeros({5}), attrs.get()); },
                 "dy is [3]; expected [2], the slice of [5]");
}

TEST(Slice, PassesUnknownDimensions) {
  EXPECT_EQ(inferred("Slice", {{-2, 3}},
                     {{"begin", Ints{0, 1}}, {"size", Ints{-1, 2}}})[0],
            Shape({-2, 2}));
  EXPECT_EQ(inferred("Slice", {{-2, 3}},
                     {{"begin", Ints{1, 1}}, {"size", Ints{-1, -1}}})[0],
            Shape({-1, 2}));
  ShapesOnly tracer;
  const DispatchGuard on(&tracer);
  const Tensor x = symbol({-2, 3});
  EXPECT_EQ(x[{0}].shape(), Shape{3});
  EXPECT_EQ((x[{slice(), -1}].shape()), Shape{-2});
  EXPECT_EQ((x[{slice(0, {}), slice(1)}].shape()), Shape({-2, 2}));
  EXPECT_EQ(x[{slice(1)}].shape(), Shape({-1, 3}));
  EXPECT_EQ(x[{slice(0, {}, 2)}].shape(), Shape({-1, 3}));
  EXPECT_EQ((x[{slice({}, {}, -1)}].shape()), Shape({-2, 3}));
}

}  // namespace
}  // namespace berth::test
