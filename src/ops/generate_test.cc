#include <limits>

#include "berth/ops/array.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

TEST(Fill, HasTheValueInEveryDtype) {
  EXPECT_EQ(floats(fill({2, 2}, 1.5)), Floats(4, 1.5f));
  EXPECT_EQ(ints(fill({3}, -7, int32)), Ints(3, -7));
  EXPECT_EQ(ints(fill({2}, 255, uint8)), Ints(2, 255));
  EXPECT_EQ(ints(fill({2}, 3, bool_)), Ints(2, 1));
  EXPECT_EQ(ones({2}, float64).to_vector<double>(), std::vector<double>(2, 1));
  EXPECT_EQ(zeros({}, int64).item<int64_t>(), 0);
  EXPECT_EQ(zeros({0, 3}).shape(), Shape({0, 3}));
  EXPECT_TRUE(floats(zeros({0, 3})).empty());
}

TEST(Fill, RefusesWhatTheDtypeCannotHold) {
  expect_invalid([] { fill({2}, 2.5, int32); }, "Fill: the value 2.5 does not");
  expect_invalid([] { fill({2}, 256, uint8); }, "in [0, 255]");
  expect_invalid([] { fill({2}, 0x1p63, int64); }, "does not fit int64");
  expect_invalid([] { fill({2}, 0, resource); }, "dtype is resource");
}

TEST(Fill, RefusesShapesThatAreNoTensor) {
  const int64_t big = int64_t{1} << 40;
  expect_invalid([&] { zeros({big, big}); }, "too many elements");
  expect_invalid([] { zeros({-1, 3}); }, "[?,3]");
}

TEST(Fill, PassesUnknownDimensions) {
  EXPECT_EQ(inferred("Fill", {}, {{"shape", Shape{-2, 3}}})[0], Shape({-2, 3}));
}

TEST(Range, CountsUpAndDown) {
  EXPECT_EQ(ints(range(0, 4)), (Ints{0, 1, 2, 3}));
  EXPECT_EQ(ints(range(3, 10, 3)), (Ints{3, 6, 9}));
  EXPECT_EQ(ints(range(3, 9, 3)), (Ints{3, 6}));
  EXPECT_EQ(ints(range(5, 0, -2, int32)), (Ints{5, 3, 1}));
  EXPECT_EQ(floats(range(-1, 1, 1, float32)), (Floats{-1, 0}));
  EXPECT_EQ(range(4, 4).shape(), Shape{0});
  EXPECT_EQ(range(4, 0).shape(), Shape{0});
}

TEST(Range, SurvivesTheEndsOfInt64) {
  const int64_t low = std::numeric_limits<int64_t>::min();
  const int64_t high = std::numeric_limits<int64_t>::max();
  const int64_t step = int64_t{1} << 62;
  EXPECT_EQ(ints(range(low, high, step)), (Ints{low, -step, 0, step}));
  EXPECT_EQ(ints(range(0, low, low)), Ints{0});
  expect_invalid([&] { range(low, high); }, "too many elements");
  expect_invalid([] { range(0, 300, 1, uint8); }, "the last value 299");
  expect_invalid([] { range(0, 3, 0); }, "delta is 0");
  expect_invalid([] { range(0, 3, 1, bool_); }, "bool");
}

TEST(Like, OnesHaveShapeAndDtypeOfTheInput) {
  const Tensor t = ones_like(constant({{1, 2}, {3, 4}}));
  EXPECT_EQ(t.dtype(), int32);
  EXPECT_EQ(ints(t), Ints(4, 1));
  EXPECT_THROW(ones_like(Tensor()), errors::FailedPrecondition);
}

Tensor call(const char* name, const Tensor& a, const Tensor& b) {
  return call1(op_named(name), a, b);
}

TEST(Like, SumLikeUndoesBroadcasting) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(floats(call("SumLike", x, zeros({3}))), (Floats{3, 5, 7}));
  EXPECT_EQ(floats(call("SumLike", x, zeros({2, 1}))), (Floats{3, 12}));
  EXPECT_EQ(floats(call("SumLike", x, zeros({}, int32))), Floats{15});
  EXPECT_EQ(floats(call("SumLike", x, x)), floats(x));
  EXPECT_EQ(floats(call("SumLike", zeros({0, 2}), zeros({2}))), Floats(2, 0));
  expect_invalid([&] { call("SumLike", x, zeros({2, 3, 1})); }, "SumLike");
}

TEST(Like, BroadcastAndReshapeTakeTheOtherShape) {
  EXPECT_EQ(floats(call("BroadcastLike", constant({1.f, 2.f}), zeros({2, 2}))),
            (Floats{1, 2, 1, 2}));
  expect_invalid(
      [&] {
        call("BroadcastLike", zeros({2, 3}), zeros({3}));
      },
      "[2,3] does not broadcast to [3]");
  const Tensor x = counted({2, 3});
  const Tensor y = call("ReshapeLike", x, zeros({3, 2}, bool_));
  EXPECT_EQ(y.shape(), Shape({3, 2}));
  EXPECT_EQ(y.impl()->data(), x.impl()->data());  // the same bytes
  expect_invalid([&] { call("ReshapeLike", x, zeros({4})); }, "4");
}

TEST(Like, SizeRatioDividesElementCounts) {
  const Tensor r = call("SizeRatio", zeros({2, 3}), zeros({4}, int32));
  EXPECT_EQ(r.shape(), Shape{});
  EXPECT_EQ(r.item<float>(), 1.5f);
}

TEST(Like, GradientsGoBackThroughTheOther) {
  const Tensor x = counted({2, 3});
  const Tensor w = constant({1.f, 2.f, 3.f});
  EXPECT_EQ(floats(adjoint(
                x, w, [&](const Tensor& t) { return call("SumLike", t, w); })),
            (Floats{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(
      floats(adjoint(
          w, x, [&](const Tensor& t) { return call("BroadcastLike", t, x); })),
      (Floats{3, 5, 7}));
  EXPECT_EQ(adjoint(x, zeros({6}),
                    [&](const Tensor& t) {
                      return call("ReshapeLike", t, zeros({6}));
                    })
                .shape(),
            x.shape());
}

TEST(Like, PassesUnknownDimensions) {
  EXPECT_EQ(inferred("SumLike", {{-1, 3}, {3}}, {})[0], Shape{3});
  EXPECT_EQ(inferred("SumLike", {{-2, 3}, {-2, 1}}, {})[0], Shape({-2, 1}));
  EXPECT_EQ(inferred("BroadcastLike", {{3}, {-1, 3}}, {})[0], Shape({-1, 3}));
  EXPECT_EQ(inferred("ReshapeLike", {{-1, 3}, {-1}}, {})[0], Shape{-1});
  EXPECT_EQ(inferred("SizeRatio", {{-1, 3}, {-1}}, {})[0], Shape{});
}

}  // namespace
}  // namespace berth::test
