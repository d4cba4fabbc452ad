// enable_check_numerics(): the first op that makes a NaN or an infinity fails.

#include "eager/check_numerics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/errors_testing.h"
#include "berth/berth.h"

namespace berth {
namespace {

struct Checked {
  Checked() { debugging::enable_check_numerics(); }
  ~Checked() { debugging::disable_check_numerics(); }
};

std::string refusal(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(CheckNumerics, NamesTheFirstOpItsLineAndTheRangesOfItsInputs) {
  const Tensor x = constant({4.f, 0.f, -1.f});
  EXPECT_TRUE(std::isnan(math::log(x).to_vector<float>()[2]));  // nobody checks
  const Checked checked;
  const std::string text = refusal([&] { math::log(x) * 2.f; });
  EXPECT_EQ(text.find("Log"), 0u) << text;
  for (const char* part : {"check_numerics_test.cc:", "float32[3]",
                           "1 NaN and 1 Inf among 3", "input 0", "-1 to 4"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << ": " << text;
  }
  EXPECT_EQ(refusal([&] { x + 1.f; }), "");
}

TEST(CheckNumerics, LooksIntoFunctionsAndAtEveryFloatType) {
  const auto f =
      function([](const Tensor& x) { return math::exp(x) - math::exp(x); });
  const Checked checked;
  for (const DType dtype : {float32, float64, float16, bfloat16}) {
    const Tensor x = cast(constant({1.f, 800.f}), dtype);
    const std::string text = refusal([&] { f(x); });
    EXPECT_EQ(text.find("Exp"), 0u) << text;
    EXPECT_NE(text.find("1 to 800"), std::string::npos) << text;
  }
  EXPECT_NO_THROW(f(constant({1.f})));
}

TEST(CheckNumerics, EndsWhenItIsSwitchedOff) {
  {
    const Checked checked;
    EXPECT_TRUE(debugging::checks_numerics());
  }
  EXPECT_FALSE(debugging::checks_numerics());
  EXPECT_NO_THROW(math::log(constant({0.f})));
}

}  // namespace
}  // namespace berth
