#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

TEST(Concat, JoinsAlongAnAxis) {
  const Tensor a = constant({{1, 2}}), b = constant({{3, 4}, {5, 6}});
  EXPECT_EQ(ints(concat({a, b}, 0)), (Ints{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ints(concat({b, b}, -1)), (Ints{3, 4, 3, 4, 5, 6, 5, 6}));
  EXPECT_EQ(ints(concat({zeros({0, 2}, int32), a}, 0)), (Ints{1, 2}));
  EXPECT_EQ(concat({zeros({0, 2}), zeros({0, 3})}, 1).shape(), Shape({0, 5}));
  EXPECT_EQ(ints(concat({a}, 0)), (Ints{1, 2}));
}

TEST(Concat, NamesThePartThatDoesNotFit) {
  const Tensor a = zeros({2, 3}), b = zeros({2, 4});
  expect_invalid(
      [&] {
        concat({a, b}, 0);
      },
      "value 1 is [2,4], value 0 is [2,3]");
  expect_invalid([&] { concat({a, zeros({2})}, 0); }, "equal ranks");
  expect_invalid([&] { concat({a, a}, 2); }, "axis 2 is out of range");
  expect_invalid([] { concat({constant(1.f)}, 0); }, "write stack");
  expect_invalid([] { concat({}, 0); }, "0 inputs given");
  expect_invalid(
      [&] {
        concat({a, zeros({2, 3}, int32)}, 0);
      },
      "expected equal dtypes");
  EXPECT_THROW(concat({a, Tensor()}, 0), errors::FailedPrecondition);
}

TEST(Stack, AddsAnAxis) {
  const Tensor a = constant({1, 2}), b = constant({3, 4});
  EXPECT_EQ(ints(stack({a, b})), (Ints{1, 2, 3, 4}));
  EXPECT_EQ(ints(stack({a, b}, -1)), (Ints{1, 3, 2, 4}));
  EXPECT_EQ(stack({constant(1), constant(2)}).shape(), Shape{2});
  EXPECT_EQ(stack({zeros({0}), zeros({0})}, 1).shape(), Shape({0, 2}));
  expect_invalid(
      [&] {
        stack({a, constant({1})});
      },
      "value 1 is [1], value 0 is [2]");
  expect_invalid([&] { stack({a, b}, 2); }, "axis 2 is out of range");
}

TEST(Unstack, GivesThePartsBack) {
  const Tensor x = counted({2, 3});
  const Tensors rows = unstack(x), columns = unstack(x, -1);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(floats(rows[1]), (Floats{3, 4, 5}));
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(floats(columns[2]), (Floats{2, 5}));
  EXPECT_EQ(floats(stack(columns, 1)), floats(x));
  EXPECT_TRUE(unstack(zeros({0, 3})).empty());
  expect_invalid([] { unstack(constant(1.f)); }, "axis 0 is out of range");
  expect_invalid([] { unstack(symbol({-1, 3})); }, "not known");
}

TEST(Join, GradientsAreTheParts) {
  const Tensor a = zeros({1, 2}), b = zeros({2, 2});
  GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  const Tensor y = concat({a, b}, 0);
  const Tensors g = tape.gradient(y, {a, b}, {.output_grad = counted({3, 2})});
  EXPECT_EQ(floats(g[0]), (Floats{0, 1}));
  EXPECT_EQ(floats(g[1]), (Floats{2, 3, 4, 5}));

  EXPECT_EQ(floats(adjoint(zeros({2}), counted({2, 2}),
                           [](const Tensor& t) {
                             return stack({t, t * 10.0}, 1);
                           })),
            (Floats{0 + 10, 2 + 30}));
  // Only one of the parts is used: the others get zeros.
  EXPECT_EQ(floats(adjoint(zeros({2, 2}), constant({1.f, 2.f}),
                           [](const Tensor& t) { return unstack(t, 1)[1]; })),
            (Floats{0, 1, 0, 2}));
}

TEST(Join, PassesUnknownDimensions) {
  const std::vector<Attrs::Pair> axis0 = {{"axis", int64_t{0}}};
  const std::vector<Attrs::Pair> axis1 = {{"axis", int64_t{1}}};
  EXPECT_EQ(inferred("ConcatV2", {{-1, 3}, {2, 3}}, axis0)[0], Shape({-1, 3}));
  EXPECT_EQ(inferred("ConcatV2", {{-2, 3}, {-2, 4}}, axis1)[0], Shape({-2, 7}));
  EXPECT_EQ(inferred("ConcatV2", {{-1, 3}, {2, 4}}, axis1)[0], Shape({2, 7}));
  EXPECT_EQ(inferred("Pack", {{-1, 3}, {2, 3}}, axis0)[0], Shape({2, 2, 3}));
  EXPECT_EQ(inferred("Unpack", {{-1, 3}},
                     {{"axis", int64_t{1}}, {"num", int64_t{3}}}),
            std::vector<Shape>(3, Shape{-1}));
  expect_invalid(
      [] {
        inferred("Unpack", {{2, 3}}, {{"num", int64_t{3}}});
      },
      "num is 3; expected 2");
  expect_invalid(
      [] {
        inferred("Unpack", {{2}}, {{"num", int64_t{-1}}});
      },
      "num is -1");
}

TEST(Join, ConcatGradTakesItsPartFromTheOperands) {
  const Tensor dy = counted({2, 5}), a = zeros({2, 2}), b = zeros({2, 3});
  const auto part = [&](int64_t i) {
    return call_list(op_named("ConcatGrad"), {dy, a, b},
                     AttrsRef({{"axis", int64_t{1}}, {"index", i}}).get())[0];
  };
  EXPECT_EQ(floats(part(0)), (Floats{0, 1, 5, 6}));
  EXPECT_EQ(floats(part(1)), (Floats{2, 3, 4, 7, 8, 9}));
  expect_invalid([&] { part(2); }, "index 2 of 2 parts");
}

}  // namespace
}  // namespace berth::test
