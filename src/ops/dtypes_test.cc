// The narrow dtypes and text, as a user meets them.

#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <string>

#include "berth/berth.h"
#include "ops/testing.h"

namespace berth {
namespace {

using test::expect_invalid;
using C64 = std::complex<float>;
using Strings = std::vector<std::string>;

TEST(Dtypes, ConstantsComeBackInTheirOwnType) {
  EXPECT_EQ(constant(int8_t{-5}).item<int8_t>(), -5);
  EXPECT_EQ(constant(bfloat16_t(1.5f)).item<float>(), 1.5f);
  EXPECT_EQ(constant({float16_t(0.1f)}).to_vector<float16_t>()[0].bits,
            float16_t(0.1f).bits);
  EXPECT_EQ(constant(C64{1, -2}).item<C64>(), (C64{1, -2}));
  EXPECT_EQ(constant({C64{1, -2}}).item<float>(), 1);  // as tf.cast
}

TEST(Dtypes, IntegersOfEveryWidthHoldTheirEndsAndWrap) {
  const auto check = []<class T>(T most) {
    const Tensor x = constant(most);
    EXPECT_EQ(x.dtype(), dtype_of<T>);
    EXPECT_EQ(x.item<T>(), most);
    const Tensor half = math::floordiv(x, constant(T{2})), next = x + 1;
    EXPECT_EQ(half.item<T>(), most / 2);
    EXPECT_EQ(next.item<T>(), std::numeric_limits<T>::min());
    EXPECT_EQ(math::cast(x, float64).item<double>(), static_cast<double>(most));
    EXPECT_TRUE((x > 1).item<bool>());
    EXPECT_NE(x.str().find(std::to_string(most)), std::string::npos);
  };
  check(std::numeric_limits<int16_t>::max());
  check(std::numeric_limits<uint16_t>::max());
  check(std::numeric_limits<uint32_t>::max());
  check(std::numeric_limits<uint64_t>::max());
  EXPECT_THROW(constant(uint64_t{1} << 63).item<int64_t>(),
               errors::InvalidArgument);
}

TEST(Dtypes, PrintTheirNumbers) {
  EXPECT_NE(constant({C64{1, -2.5f}}).str().find("complex64"),
            std::string::npos);
  EXPECT_NE(constant({C64{1, -2.5f}}).str().find("[1.-2.5j]"),
            std::string::npos);
  EXPECT_NE(constant(int8_t{65}).str().find("dtype=int8"), std::string::npos);
  EXPECT_NE(constant(int8_t{65}).str().find(", 65)"), std::string::npos);
  EXPECT_NE(constant(bfloat16_t(0.5f)).str().find(", 0.5)"), std::string::npos);
}

TEST(Dtypes, NothingIsPromoted) {
  expect_invalid([] { constant(bfloat16_t(1.f)) + constant(1.f); },
                 "x is bfloat16 but y is float32");
  expect_invalid([] { constant(int8_t{1}) + constant(1); },
                 "expected equal dtypes");
}

TEST(Dtypes, NumbersAdaptOrSayThatTheyDoNotFit) {
  EXPECT_EQ((constant(int8_t{100}) + 27).item<int>(), 127);
  EXPECT_EQ((constant(C64{1, 2}) * 2.0).item<C64>(), (C64{2, 4}));
  EXPECT_EQ((1.0 - constant(float16_t(0.5f))).item<float>(), 0.5f);
  expect_invalid([] { constant(int8_t{1}) + 200; }, "200");
  expect_invalid([] { fill({2}, -129, int8); }, "[-128, 127]");
}

TEST(Dtypes, HalvesAreComputedInFloatAndRoundedOnce) {
  // 256 + 1 is not a bfloat16; 256 + 1 + 1 in one sum is.
  const Tensor x =
      constant({bfloat16_t(256.f), bfloat16_t(1.f), bfloat16_t(1.f)});
  EXPECT_EQ(math::reduce_sum(x).item<float>(), 258.f);
  EXPECT_EQ((x[{0}] + x[{1}]).item<float>(), 256.f);
}

TEST(Dtypes, AnOpThatLacksOneNamesThoseItTakes) {
  const Tensor z = constant({C64{1, 2}});
  expect_invalid([&] { math::less(z, z); },
                 "x is complex64; expected one of float32");
  expect_invalid([&] { nn::relu(z); }, "expected one of");
  expect_invalid([&] { math::floor(z); }, "expected one of");
}

TEST(Dtypes, VariablesHoldThem) {
  const Variable v(constant({C64{1, 2}, C64{3, 4}}));
  v.assign_add(constant({C64{0, 1}, C64{1, 0}}));
  EXPECT_EQ(v.value().to_vector<C64>(), (std::vector<C64>{{1, 3}, {4, 4}}));
  const Variable h(constant({bfloat16_t(1.f)}));
  GradientTape tape;
  const Tensor loss = math::reduce_sum(math::square(h.value()));
  const Tensor g = tape.gradient(loss, h);
  EXPECT_EQ(g.dtype(), bfloat16);
  EXPECT_EQ(g.item<float>(), 2.f);
}

TEST(Dtypes, FunctionsRunThem) {
  const auto f = function(
      [](const Tensor& x) { return math::cast(math::exp(x) * 2.0, float32); });
  EXPECT_NEAR(f(constant({float16_t(1.f)})).item<float>(), 5.43656f, 5e-3f);
  EXPECT_EQ(f(constant({C64{0, 0}})).item<float>(), 2.f);
}

TEST(Strings, LiveInTensors) {
  const Tensor t = constant({"a", "bc", ""});
  EXPECT_EQ(t.dtype(), string_);
  EXPECT_EQ(t.to_vector<std::string>(), (Strings{"a", "bc", ""}));
  EXPECT_EQ(constant("x").item<std::string>(), "x");
  const std::vector<std::string> values = {"1", "2", "3", "4"};
  const Tensor m = constant(values, {2, 2});
  EXPECT_EQ(reshape(m, {4}).to_vector<std::string>(), values);
  EXPECT_NE(m.str().find("[[\"1\", \"2\"],\n [\"3\", \"4\"]]"),
            std::string::npos);
}

TEST(Strings, CompareWithBroadcasting) {
  const Tensor t = constant({"a", "bc", ""});
  EXPECT_EQ(math::equal(t, constant("bc")).to_vector<bool>(),
            (std::vector<bool>{false, true, false}));
  EXPECT_EQ(math::not_equal(t, t).to_vector<bool>(),
            (std::vector<bool>{false, false, false}));
}

TEST(Strings, TakePartInFunctions) {
  const Tensor words = constant({"yes", "no"});
  const auto is = function([&](const Tensor& t) {
    return math::equal(reshape(words, {2, 1}), t);
  });
  EXPECT_EQ(is(constant({"no", "yes", "no"})).to_vector<bool>(),
            (std::vector<bool>{false, true, false, true, false, true}));
  const auto scalar =
      function([](const Tensor& t) { return math::equal(t, constant("a")); });
  EXPECT_TRUE(scalar(constant("a")).item<bool>());
  // Scalars of text are told apart.
  const auto two = function([](const Tensor& t) {
    return math::cast(math::equal(t, constant("a")), int32) +
           math::cast(math::equal(t, constant("b")), int32) * 2.0;
  });
  EXPECT_EQ(two(constant("b")).item<int>(), 2);
}

TEST(Strings, NothingElseTakesThem) {
  const Tensor t = constant({"a", "b"});
  expect_invalid([&] { t + t; }, "x is string; expected one of");
  expect_invalid([&] { t[{0}]; }, "is string; expected one of");
  expect_invalid([&] { math::cast(t, float32); }, "is string");
  expect_invalid([&] { t.to_vector<float>(); }, "of a tensor of strings");
  expect_invalid([&] { constant({1.f}).to_vector<std::string>(); },
                 "expected a tensor of strings");
  char buffer[64];
  expect_invalid([&] { t.copy_to(buffer); }, "of a tensor of strings");
  expect_invalid([&] { zeros({2}, string_); }, "dtype is string");
}

TEST(Strings, VariablesHoldThem) {
  const Variable v(constant({"a", "b"}));
  const Tensor was = v.value();
  v.assign(constant({"c", "longer"}));
  EXPECT_EQ(v.value().to_vector<std::string>(), (Strings{"c", "longer"}));
  EXPECT_EQ(was.to_vector<std::string>(), (Strings{"a", "b"}));
  expect_invalid([&] { v.assign(constant("a")); }, "fits [2]");
  expect_invalid([&] { v.assign_add(was); }, "value is string");
  const auto f = function([&](const Tensor& x) { return x + v.value(); });
  expect_invalid([&] { f(constant(1.f)); }, "of text, is used in");
}

TEST(Variables, TakeValuesOfTheShapesThatFit) {
  const Variable v(zeros({1, 2}), {.shape = Shape{kUnknownDim, 2}});
  const Tensor was = v.value();
  v.assign(ones({3, 2}));
  v.assign_add(ones({3, 2}));
  EXPECT_EQ(v.shape(), (Shape{3, 2}));
  EXPECT_EQ(v.shape_of_all(), (Shape{kUnknownDim, 2}));
  EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(6, 2));
  EXPECT_EQ(was.to_vector<float>(), std::vector<float>(2, 0));
  expect_invalid([&] { v.assign(zeros({2, 3})); }, "fits [?,2]");
  const Variable any(1.f, {.any_shape = true});
  any.assign(ones({2, 2, 2}));
  EXPECT_EQ(any.value().rank(), 3);
  EXPECT_FALSE(any.shape_of_all());
  expect_invalid([&] { Variable(zeros({2}), {.shape = Shape{3}}); },
                 "initial value is [2]");
}

TEST(Strings, ManyThreadsReadOneTensor) {
  const Tensor t = constant(Strings(5000, "word"), Shape{5000});
  const auto f = function([](const Tensor& x) {
    return math::reduce_all(math::equal(x, constant("word")));
  });
  EXPECT_TRUE(f(t).item<bool>());
}

}  // namespace
}  // namespace berth
