#include "berth/gradient_tape.h"
#include "berth/ops/linalg.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

TEST(Pad, MirrorsWithAndWithoutTheEdge) {
  const Tensor x = constant({1, 2, 3});
  EXPECT_EQ(ints(pad(x, {2, 1}, {.mode = "REFLECT"})),
            (Ints{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(ints(pad(x, {2, 1}, {.mode = "SYMMETRIC"})),
            (Ints{2, 1, 1, 2, 3, 3}));
  EXPECT_EQ(ints(pad(x, {1, 1}, {.constant_values = 9})),
            (Ints{9, 1, 2, 3, 9}));
  expect_invalid(
      [&] {
        pad(x, {3, 0}, {.mode = "REFLECT"});
      },
      "expected at most 2");
  expect_invalid(
      [&] {
        pad(x, {4, 0}, {.mode = "SYMMETRIC"});
      },
      "expected at most 3");
  expect_invalid([&] { pad(x, {1, 1}, {.mode = "WRAP"}); }, "mode is 'WRAP'");
  expect_invalid([&] { pad(x, {1, 1}, {.constant_values = 0.5}); }, "0.5");
}

TEST(Pad, MirroredElementsAddUpInTheGradient) {
  // REFLECT 1,1 of [a b c]: b a b c b.
  EXPECT_EQ(floats(adjoint(zeros({3}), counted({5}),
                           [](const Tensor& t) {
                             return pad(t, {1, 1}, {.mode = "REFLECT"});
                           })),
            (Floats{1, 0 + 2 + 4, 3}));
}

TEST(Reverse, TurnsTheNamedAxes) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(floats(reverse(x, {1})), (Floats{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(floats(reverse(x, {0, -1})), (Floats{5, 4, 3, 2, 1, 0}));
  expect_invalid([&] { reverse(x, {0, -2}); }, "names one twice");
  expect_invalid([&] { reverse(x, {2}); }, "out of range");
}

TEST(Roll, WrapsAround) {
  const Tensor x = counted({5});
  EXPECT_EQ(floats(roll(x, {2}, {0})), (Floats{3, 4, 0, 1, 2}));
  EXPECT_EQ(floats(roll(x, {-6}, {0})), (Floats{1, 2, 3, 4, 0}));
  EXPECT_EQ(floats(roll(counted({2, 2}), {1, 1}, {0, 1})),
            (Floats{3, 2, 1, 0}));
  expect_invalid([&] { roll(x, {1, 2}, {0}); }, "expected as many");
}

TEST(Split, CutsIntoEqualOrGivenParts) {
  const Tensor x = counted({2, 6});
  const Tensors three = split(x, 3, 1);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(floats(three[1]), (Floats{2, 3, 8, 9}));
  const Tensors sized = split(x, std::vector<int64_t>{1, -1, 2}, -1);
  EXPECT_EQ(sized[1].shape(), Shape({2, 3}));
  EXPECT_EQ(floats(sized[2]), (Floats{4, 5, 10, 11}));
  expect_invalid([&] { split(x, 4, 1); }, "expected a multiple of 4");
  expect_invalid(
      [&] {
        split(x, std::vector<int64_t>{1, 2}, 1);
      },
      "do not add up to 6");
  expect_invalid([&] { split(x, 0); }, "into 0 parts");
  expect_invalid([&] { split(x, std::vector<int64_t>{-1, -1}); }, "one -1");
}

TEST(Split, UnusedPartsHaveZeroGradient) {
  EXPECT_EQ(floats(adjoint(zeros({6}), constant({5.f, 7.f}),
                           [](const Tensor& t) { return split(t, 3)[1]; })),
            (Floats{0, 0, 5, 7, 0, 0}));
}

TEST(Shapes, UnknownDimensionsStayUnknown) {
  const std::vector<Attrs::Pair> three = {{"num_split", int64_t{3}},
                                          {"axis", int64_t{0}}};
  EXPECT_EQ(inferred("Split", {{-1, 2}}, three)[2], Shape({-1, 2}));
  EXPECT_EQ(inferred("SplitV", {{-1, 2}}, {{"size_splits", Ints{2, -1}}})[1],
            Shape({-1, 2}));
  EXPECT_EQ(inferred("Shape", {{-1, 2}}, {})[0], Shape({2}));
  EXPECT_EQ(inferred("EnsureShape", {{-1, 2}}, {{"shape", Shape{3, -1}}})[0],
            Shape({3, 2}));
}

TEST(Shapes, AreTensors) {
  const Tensor x = zeros({3, 0, 2});
  EXPECT_EQ(ints(shape(x)), (Ints{3, 0, 2}));
  EXPECT_EQ(shape(x, int64).dtype(), int64);
  EXPECT_EQ(size(x).item<int>(), 0);
  EXPECT_EQ(rank(x).item<int>(), 3);
  EXPECT_EQ(ensure_shape(x, {-1, 0, 2}).shape(), x.shape());
  expect_invalid([&] { ensure_shape(x, {3, 1, 2}); }, "expected [3,1,2]");
  expect_invalid([&] { shape(x, float32); }, "expected int32 or int64");
}

TEST(Linspace, ReachesBothEnds) {
  EXPECT_EQ(floats(linspace(0, 1, 5)), (Floats{0, .25f, .5f, .75f, 1}));
  EXPECT_EQ(floats(linspace(3, 9, 1)), (Floats{3}));
  EXPECT_EQ(ints(linspace(0, 10, 4, int32)), (Ints{0, 3, 6, 10}));
  EXPECT_EQ(linspace(0.1, 0.7, 37, float64).to_vector<double>().back(), 0.7);
  EXPECT_EQ(floats(float_range(0, 1, 0.25)), (Floats{0, .25f, .5f, .75f}));
  EXPECT_EQ(floats(float_range(1, 0, -0.5)), (Floats{1, .5f}));
  expect_invalid([] { linspace(0, 1, 0); }, "num is 0");
  expect_invalid([] { float_range(0, 1, 0); }, "delta is 0");
  expect_invalid([] { float_range(0, 1e300, 1); }, "too many");
}

TEST(Repeat, RepeatsEachElement) {
  EXPECT_EQ(ints(repeat(constant({{1, 2}, {3, 4}}), 2)),
            (Ints{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(ints(repeat(constant({{1, 2}, {3, 4}}), 2, 0)),
            (Ints{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(ints(repeat(constant({7, 8, 9}), std::vector<int64_t>{2, 0, 1}, 0)),
            (Ints{7, 7, 9}));
  expect_invalid(
      [] {
        repeat(constant({7, 8}), std::vector<int64_t>{1}, 0);
      },
      "expected 2");
}

TEST(Meshgrid, HasEachTensorAlongItsAxis) {
  const Tensors xy = meshgrid({constant({1, 2, 3}), constant({4, 5})});
  EXPECT_EQ(xy[0].shape(), Shape({2, 3}));
  EXPECT_EQ(ints(xy[0]), (Ints{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(ints(xy[1]), (Ints{4, 4, 4, 5, 5, 5}));
  const Tensors ij = meshgrid({constant({1, 2, 3}), constant({4, 5})}, "ij");
  EXPECT_EQ(ints(ij[0]), (Ints{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(ints(ij[1]), (Ints{4, 5, 4, 5, 4, 5}));
}

TEST(SequenceMask, IsTrueBelowTheLength) {
  EXPECT_EQ(ints(sequence_mask(constant({0, 2, 3}))),
            (Ints{0, 0, 0, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(sequence_mask(constant({5}), 2).shape(), Shape({1, 2}));
}

TEST(StridedSliceUpdate, ReplacesTheSlice) {
  EXPECT_EQ(
      ints(tensor_strided_slice_update(constant({0, 1, 2, 3, 4}), {0}, {5},
                                       constant({7, 8, 9}), {.strides = {2}})),
      (Ints{7, 1, 8, 3, 9}));
  EXPECT_EQ(ints(strided_slice(constant({0, 1, 2, 3, 4}), {1}, {4})),
            (Ints{1, 2, 3}));
  expect_invalid(
      [] { tensor_strided_slice_update(zeros({5}), {0}, {2}, zeros({3})); },
      "value is [3]; expected [2]");
}

TEST(Diagonals, ArePutAndTaken) {
  EXPECT_EQ(ints(eye(2, 3, {}, int32)), (Ints{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(eye(2, -1, {3}).shape(), Shape({3, 2, 2}));
  EXPECT_EQ(ints(linalg::diag(constant({1, 2}))), (Ints{1, 0, 0, 2}));
  EXPECT_EQ(ints(linalg::diag(constant({1, 2}), 1)),
            (Ints{0, 1, 0, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(ints(linalg::diag(constant({1, 2}), -1)),
            (Ints{0, 0, 0, 1, 0, 0, 0, 2, 0}));
  const Tensor x = counted({2, 2, 3});
  EXPECT_EQ(floats(linalg::diag_part(x)), (Floats{0, 4, 6, 10}));
  EXPECT_EQ(floats(linalg::diag_part(x, 1)), (Floats{1, 5, 7, 11}));
  EXPECT_EQ(floats(linalg::diag_part(x, -1)), (Floats{3, 9}));
  EXPECT_EQ(floats(linalg::diag_part(counted({3, 2}), -1)), (Floats{2, 5}));
  EXPECT_EQ(linalg::diag_part(x, 3).shape(), Shape({2, 0}));
  EXPECT_EQ(floats(linalg::trace(x)), (Floats{4, 16}));
  EXPECT_EQ(floats(linalg::band_part(counted({3, 3}), 0, -1)),
            (Floats{0, 1, 2, 0, 4, 5, 0, 0, 8}));
  EXPECT_EQ(floats(linalg::band_part(counted({3, 3}), 1, 0)),
            (Floats{0, 0, 0, 3, 4, 0, 0, 7, 8}));
  // Zeros replace infinities; nothing is multiplied.
  const Tensor inf = fill({2, 2}, INFINITY);
  EXPECT_EQ(floats(linalg::band_part(inf, 0, 0)),
            (Floats{INFINITY, 0, 0, INFINITY}));
  EXPECT_EQ(
      floats(adjoint(zeros({2, 3}), counted({2}),
                     [](const Tensor& t) { return linalg::diag_part(t, 1); })),
      (Floats{0, 0, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace berth::test
