// What is wrong with a call is said with the op and the user's line.

#include <functional>
#include <string>

#include "berth/berth.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(Misuse, ProductsOfDimensionsDoNotWrapAround) {
  const std::vector<float> none;
  expect_invalid([] { reshape(zeros({0}), {kHuge, 4}); }, "(misuse_test.cc:");
  expect_invalid(
      [] {
        broadcast_to(ones({2}), {kHuge, 2});
      },
      "too many elements");
  expect_invalid([&] { constant(none, {kHuge, 4}); }, "0 values for shape");
}

TEST(Misuse, OnlyReshapeTakesAnOpenDimensionAndOnlyOne) {
  expect_invalid([] { reshape(ones({6}), {-2, 3}); }, "Reshape: the result");
  expect_invalid([] { broadcast_to(ones({2}), {-1}); }, "BroadcastTo: the res");
  expect_invalid([] { zeros({-5}); }, "misuse_test.cc");
}

TEST(Misuse, CastsGoToDtypesThatHoldNumbers) {
  const auto to = [](DType d) { return [d] { math::cast(ones({2}), d); }; };
  expect_invalid(to(resource), "expected a dtype that holds numbers");
  expect_invalid(to(DType::kInvalid), "expected a dtype that holds numbers");
  expect_invalid(to(static_cast<DType>(99)), "Cast: to invalid");
}

// Axes are checked without, kernels run without knowing the line.
TEST(Misuse, EveryMessageNamesTheLine) {
  expect_invalid([] { math::reduce_sum(ones({2}), {.axis = {{5}}}); },
                 "(misuse_test.cc:" + std::to_string(__LINE__ - 1) + ")");
  expect_invalid([] { gather(ones({3}), constant({7})); },
                 "(misuse_test.cc:" + std::to_string(__LINE__ - 1) + ")");
}

// The line of the op before would be worse than none.
TEST(Misuse, ASubscriptDoesNotNameAnotherLine) {
  const Tensor x = ones({3});
  try {
    x[{5}];
    ADD_FAILURE() << "nothing thrown";
  } catch (const errors::InvalidArgument& e) {
    EXPECT_EQ(std::string(e.what()).find("misuse_test.cc"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace berth::test
