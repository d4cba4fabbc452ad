// Operators, subscripts and numbers as TensorFlow's users write them.

#include <gtest/gtest.h>

#include <sstream>

#include "berth/data.h"
#include "berth/errors.h"
#include "berth/ops/aliases.h"
#include "berth/ops/array.h"
#include "berth/ops/nn.h"
#include "berth/variable.h"

namespace berth {
namespace {

using Ints = std::vector<int64_t>;

Tensor grid() { return reshape(range(12), {3, 4}); }

TEST(Operators, OneSubscriptDropsOrCutsTheFirstAxis) {
  const Tensor x = grid();
  EXPECT_EQ(x[1].to_vector<int64_t>(), (Ints{4, 5, 6, 7}));
  EXPECT_EQ(x[1][2].item<int64_t>(), 6);
  EXPECT_EQ(x[-1][-1].item<int64_t>(), 11);
  EXPECT_EQ(x[slice(1, 3)].shape(), (Shape{2, 4}));
}

TEST(Operators, CallsTakeSeveralSubscripts) {
  const Tensor x = grid();
  EXPECT_EQ(x(slice(1, 3), 0).to_vector<int64_t>(), (Ints{4, 8}));
  EXPECT_EQ(x(All, 3).to_vector<int64_t>(), (Ints{3, 7, 11}));
  EXPECT_EQ(x(2, slice({}, {}, 2)).to_vector<int64_t>(), (Ints{8, 10}));
}

TEST(Operators, ComparisonsWithNumbersAreElementwise) {
  const Tensor x = constant({1.f, 2.f, 3.f});
  const auto bits = [](const Tensor& t) {
    EXPECT_EQ(t.dtype(), DType::kBool);
    return t.to_vector<int64_t>();
  };
  EXPECT_EQ(bits(x >= 2), (Ints{0, 1, 1}));
  EXPECT_EQ(bits(x <= 2), (Ints{1, 1, 0}));
  EXPECT_EQ(bits(x < 2), (Ints{1, 0, 0}));
  EXPECT_EQ(bits(x > 2), (Ints{0, 0, 1}));
  EXPECT_EQ(bits(x == 2), (Ints{0, 1, 0}));
  EXPECT_EQ(bits(x != 2), (Ints{1, 0, 1}));
  EXPECT_EQ(bits(2 > x), (Ints{1, 0, 0}));
  EXPECT_EQ(bits(2 >= x), (Ints{1, 1, 0}));
  EXPECT_EQ(bits(2 < x), (Ints{0, 0, 1}));
  EXPECT_EQ(bits(2 <= x), (Ints{0, 1, 1}));
  EXPECT_EQ(bits(2 == x), (Ints{0, 1, 0}));
  EXPECT_EQ(bits(2 != x), (Ints{1, 0, 1}));
  EXPECT_EQ(bits(x == constant({1.f, 0.f, 3.f})), (Ints{1, 0, 1}));
  EXPECT_EQ(bits(x != constant({1.f, 0.f, 3.f})), (Ints{0, 1, 0}));
}

TEST(Operators, RemaindersHaveTheSignOfTheDivisorAsInPython) {
  EXPECT_EQ((constant({-7, 7}) % 3).to_vector<int64_t>(), (Ints{2, 1}));
  EXPECT_EQ((constant({-7, 7}) % -3).to_vector<int64_t>(), (Ints{-1, -2}));
  EXPECT_EQ((7 % constant({4, -4})).to_vector<int64_t>(), (Ints{3, -1}));
  EXPECT_EQ((constant({5.5f}) % constant({2.f})).item<double>(), 1.5);
}

TEST(Operators, AndOrNotAreLogicalOfBoolsAndBitByBitOfWholeNumbers) {
  const Tensor a = constant({true, true, false, false});
  const Tensor b = constant({true, false, true, false});
  const auto numbers = [](const Tensor& t) { return t.to_vector<int64_t>(); };
  EXPECT_EQ(numbers(a & b), (Ints{1, 0, 0, 0}));
  EXPECT_EQ(numbers(a | b), (Ints{1, 1, 1, 0}));
  EXPECT_EQ(numbers(a ^ b), (Ints{0, 1, 1, 0}));
  EXPECT_EQ(numbers(!a), (Ints{0, 0, 1, 1}));
  EXPECT_EQ(numbers(~a), (Ints{0, 0, 1, 1}));
  const Tensor x = constant({12}), y = constant({10});
  EXPECT_EQ(numbers(x & y), (Ints{8}));
  EXPECT_EQ(numbers(x | y), (Ints{14}));
  EXPECT_EQ(numbers(x ^ y), (Ints{6}));
  EXPECT_EQ(numbers(~x), (Ints{-13}));
  EXPECT_THROW(!x, errors::InvalidArgument);
}

TEST(Operators, NumbersTakeTheTensorsDtypeInFunctionsToo) {
  const Tensor x = constant({1.f, 3.f});
  using Floats = std::vector<float>;
  EXPECT_EQ(maximum(x, 2.5).to_vector<float>(), (Floats{2.5f, 3}));
  EXPECT_EQ(math::minimum(2, x).to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(pow(x, 2).to_vector<float>(), (Floats{1, 9}));
  EXPECT_EQ(pow(2, constant({1, 3})).to_vector<int64_t>(), (Ints{2, 8}));
  EXPECT_EQ(greater(x, 1).to_vector<int64_t>(), (Ints{0, 1}));
  EXPECT_THROW(maximum(constant({1}), 0.5), errors::InvalidArgument);
}

TEST(Operators, TensorsChangeTheNameNotTheValueByPlusEquals) {
  Tensor x = constant({1.f, 3.f});
  const Tensor before = x;
  x += 1;
  x *= x;
  x -= 2;
  x /= constant(2.f);
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{1, 7}));
  EXPECT_EQ(before.to_vector<double>(), (std::vector<double>{1, 3}));
}

TEST(Operators, ConstantsTakeADtypeAndVectors) {
  EXPECT_EQ(constant({1, 2, 3}, float32).spec().str(), "float32[3]");
  EXPECT_EQ(constant(std::vector<float>{1, 2}).spec().str(), "float32[2]");
  EXPECT_EQ(constant(std::vector<int>{1, 2}, uint8).spec().str(), "uint8[2]");
  EXPECT_EQ(constant(2, float64).item<double>(), 2);
  const int64_t large = (int64_t{1} << 60) + 1;
  EXPECT_EQ(constant(large, int64).item<int64_t>(), large);
  EXPECT_THROW(constant({1.5}, int32), errors::InvalidArgument);
  EXPECT_THROW(constant(300, uint8), errors::InvalidArgument);
  const Variable v(2.f);
  EXPECT_EQ(v.value().spec().str(), "float32[]");
  std::ostringstream out;
  out << v.dtype();
  EXPECT_EQ(out.str(), "float32");
}

TEST(Operators, AxesAreANumberOrAList) {
  const Tensor x = cast(grid(), float32);
  const Ints rows = {6, 22, 38};
  EXPECT_EQ(reduce_sum(x, {.axis = 1}).to_vector<int64_t>(), rows);
  EXPECT_EQ(reduce_sum(x, {.axis = {1}}).to_vector<int64_t>(), rows);
  EXPECT_EQ(reduce_sum(x, {.axis = {{1}}}).to_vector<int64_t>(), rows);
  EXPECT_EQ(reduce_sum(x, {.axis = -1}).to_vector<int64_t>(), rows);
  EXPECT_EQ(reduce_sum(x, {.axis = {0, 1}}).item<int>(), 66);
  EXPECT_EQ(reduce_sum(x, {.axis = std::vector<int64_t>{}}).shape(), x.shape());
  EXPECT_EQ(reduce_sum(x).item<int>(), 66);
  EXPECT_EQ(argmax(x, {.axis = 1}).to_vector<int64_t>(), (Ints{3, 3, 3}));
  EXPECT_EQ(argmin(x, {.axis = 0}).to_vector<int64_t>(), (Ints{0, 0, 0, 0}));
  EXPECT_NEAR(reduce_sum(nn::softmax(x, {.axis = 0})).item<float>(), 4, 1e-5);
  EXPECT_EQ(math::matmul(x, x, {.transpose_b = true}).shape(), (Shape{3, 3}));
}

TEST(Operators, VariablesChangeInPlace) {
  const Variable v(constant({2.f, 4.f}));
  v += constant({1.f, 1.f});
  v -= 0.5;
  v *= 2;
  EXPECT_EQ(v.value().to_vector<double>(), (std::vector<double>{5, 9}));
  v /= constant({5.f, 3.f});
  v += 1;
  EXPECT_EQ(v.value().to_vector<double>(), (std::vector<double>{2, 4}));
  v.assign(0.25);
  EXPECT_EQ(v.value().to_vector<double>(), (std::vector<double>{0.25, 0.25}));
  const Variable whole(constant(int64_t{3}));
  whole.assign(7);
  EXPECT_EQ(whole.value().item<int64_t>(), 7);
}

TEST(Operators, NumbersThatDoNotFitAreRefused) {
  EXPECT_THROW(constant(int64_t{1} << 60).item<int>(), errors::InvalidArgument);
  EXPECT_THROW(constant(-1).item<uint8_t>(), errors::InvalidArgument);
  EXPECT_THROW(constant(3e9f).item<int>(), errors::InvalidArgument);
  EXPECT_THROW(constant(std::nanf("")).item<int>(), errors::InvalidArgument);
  EXPECT_EQ(constant(int64_t{1} << 60).item<int64_t>(), int64_t{1} << 60);
  EXPECT_EQ(constant(2147483647.0).item<int>(), 2147483647);
  EXPECT_EQ(constant(-0.5f).item<uint8_t>(), 0);
  const Tensor bytes = cast(constant({255, 51}), uint8);
  const auto said = [](const auto& fn) -> std::string {
    try {
      fn();
    } catch (const errors::InvalidArgument& e) {
      return e.what();
    }
    return "nothing";
  };
  EXPECT_EQ(said([&] { bytes / 255.0; }),
            "RealDiv: x is uint8; expected one of float32, float64, bfloat16, "
            "float16, complex64, complex128: write math::cast(x, float32)");
  EXPECT_EQ(said([&] { bytes * 0.5; }),
            "the number 0.5 does not fit a tensor of uint8; expected a whole "
            "number in its range, or a tensor of another dtype: write "
            "math::cast(x, float32)");
  // What the advice says to write.
  EXPECT_EQ((math::cast(bytes, float32) / 255.0).to_vector<float>(),
            (std::vector<float>{1, 0.2f}));
}

TEST(Operators, PairsOfADatasetComeApart) {
  const Tensor x = constant({1.f, 2.f}), y = constant({3, 4});
  int64_t sum = 0;
  for (const auto& [a, b] : data::Dataset::from_tensor_slices({x, y})) {
    sum += a.item<int64_t>() * b.item<int64_t>();
  }
  EXPECT_EQ(sum, 11);
  for (auto& [a, b] : data::Dataset::from_tensor_slices({x, y})) {
    EXPECT_EQ(a.dtype(), float32);
    EXPECT_EQ(b.dtype(), int32);
  }
  const data::Element three{{x, y, x}, nullptr};
  EXPECT_THROW(data::get<0>(three), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth
