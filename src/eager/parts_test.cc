// Large eager calls are split over the cores. A function of one slice computes
// the same whole, which is the independent answer here.

#include "eager/parts.h"

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "berth/errors.h"

namespace berth {
namespace {

using Floats = std::vector<float>;

// Eagerly on /CPU:0, and as a function that computes each op whole.
template <class Fn>
void expect_same_bits(const Fn& fn, const Tensors& in) {
  const auto on = device("/CPU:0");
  const Floats eager = fn(in).template to_vector<float>();
  auto whole = function([&](const Tensors& x) { return fn(x); },
                        {.slices = 1, .optimize = false});
  EXPECT_EQ(eager, whole(in).template to_vector<float>());
}

Tensor numbers(const Shape& shape) {
  return random::stateless_normal(shape, {3, 4});
}

TEST(EagerParts, GiveTheBitsOfTheWhole) {
  const Tensor x = numbers({3001, 257}), row = numbers({257}),
               col = numbers({3001, 1});
  expect_same_bits([](const Tensors& t) { return math::floordiv(t[0], t[1]); },
                   {x, row});
  expect_same_bits([](const Tensors& t) { return math::sin(t[0] * t[1]); },
                   {x, col});
  expect_same_bits([](const Tensors& t) { return nn::softmax(t[0]); }, {x});
  expect_same_bits(
      [](const Tensors& t) { return math::cumsum(t[0], {.axis = 1}); }, {x});
  expect_same_bits([](const Tensors& t) { return transpose(t[0]); }, {x});
}

TEST(EagerParts, DrawsDependOnThePlaceInTheWhole) {
  const auto on = device("/CPU:0");
  const Floats all =
      random::stateless_uniform({1 << 20}, {5, 6}).to_vector<float>();
  const Floats few = random::stateless_uniform({64}, {5, 6}).to_vector<float>();
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin()));
  // No part begins as another one does.
  const size_t quarter = all.size() / 4;
  EXPECT_FALSE(std::equal(few.begin(), few.end(), all.begin() + quarter));
}

TEST(EagerParts, AnErrorOfAPartIsThrown) {
  const auto on = device("/CPU:0");
  const Tensor x = fill({1 << 20}, 1, int32), zero = fill({1 << 20}, 0, int32);
  EXPECT_THROW(math::floordiv(x, zero), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth
