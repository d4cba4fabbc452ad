#include "berth/ops/adaptive.h"

#include "berth/ops/math.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

using Floats = std::vector<float>;

Tensor counted(const Shape& shape) {
  return reshape(range(0, shape.num_elements(), 1, float32), shape);
}
void expect_all(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  EXPECT_EQ(got.to_vector<float>(), want.to_vector<float>());
}

// Windows of 5 in 3: 0-1, 1-3, 3-4.
TEST(AdaptivePool, WindowsMayOverlap) {
  const Tensor x = constant(Floats{1.f, 2.f, 6.f, 4.f, 5.f}, {1, 5, 1});
  expect_all(nn::adaptive_average_pool(x, {3}),
             constant(Floats{1.5f, 4.f, 4.5f}, {1, 3, 1}));
  expect_all(nn::adaptive_max_pool(x, {3}),
             constant(Floats{2.f, 6.f, 5.f}, {1, 3, 1}));
  expect_all(nn::adaptive_average_pool(counted({1, 1, 4, 4}), {2, 1}, "NCHW"),
             constant(Floats{3.5f, 11.5f}, {1, 1, 2, 1}));
}

TEST(SpaceToDepth, MovesBlocksAndBack) {
  const Tensor x = counted({2, 4, 6, 3});
  expect_all(nn::space_to_depth(counted({1, 2, 2, 1}), 2),
             constant(Floats{0.f, 1.f, 2.f, 3.f}, {1, 1, 1, 4}));
  expect_all(nn::depth_to_space(nn::space_to_depth(x, 2), 2), x);
  const Tensor first = transpose(x, {0, 3, 1, 2});
  expect_all(nn::space_to_depth(first, 2, "NCHW"),
             transpose(nn::space_to_depth(x, 2), {0, 3, 1, 2}));
  expect_all(
      nn::depth_to_space(nn::space_to_depth(first, 2, "NCHW"), 2, "NCHW"),
      first);
  expect_invalid([&] { nn::space_to_depth(x, 5); }, "no multiple of 5");
}

TEST(Bitcast, ReadsBytes) {
  EXPECT_EQ(bitcast(constant(1.f), int32).item<int32_t>(), 0x3F800000);
  const Tensor bytes = bitcast(constant(0x01020304), uint8);
  EXPECT_EQ(bytes.to_vector<uint8_t>(), (std::vector<uint8_t>{4, 3, 2, 1}));
  EXPECT_EQ(bitcast(bytes, int32).item<int32_t>(), 0x01020304);
  expect_invalid([] { bitcast(zeros({3}), float64); }, "length 2");
}

TEST(Bessel, HasTheValuesOfTables) {
  // TensorFlow 2.21 gives these in double precision.
  const Tensor x = constant({0.0, 1.0, -2.0, 40.0});
  const auto near = [](const Tensor& t, const Doubles& want) {
    const Doubles v = t.to_vector<double>();
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(v[i], want[i], 1e-9);
  };
  near(math::bessel_i0e(x), {1, .4657596077, .3085083225, .0632782799});
  near(math::bessel_i1e(x), {0, .2079104154, -.2152692892, .0624822291});
  near(math::bessel_i0(constant({1.0})), {1.2660658778});
  near(math::bessel_i1(constant({1.0})), {0.5651591040});
}

}  // namespace
}  // namespace berth::test
