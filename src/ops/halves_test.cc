// bfloat16 and float16 through the ops of layers: summed in float32, rounded
// once; what belongs to a norm's channels is float32.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "berth/berth.h"
#include "ops/op_call.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

class Halves : public ::testing::TestWithParam<DType> {
 protected:
  static Tensor ones_of(const Shape& shape) { return ones(shape, GetParam()); }
  // The numbers of float32 as they are in 16 bits, and back.
  static Tensor narrow(const Tensor& x) { return math::cast(x, GetParam()); }
  static std::vector<float> floats(const Tensor& x) {
    return math::cast(x, float32).to_vector<float>();
  }
  // [shape]: -2, -1.99, ..., again and again.
  static Tensor some(const Shape& shape) {
    std::vector<float> v(static_cast<size_t>(shape.num_elements()));
    for (size_t i = 0; i < v.size(); ++i) {
      v[i] = static_cast<float>(i * 7 % 401) / 100 - 2;
    }
    return narrow(constant(v, shape));
  }
};

INSTANTIATE_TEST_SUITE_P(Types, Halves, ::testing::Values(bfloat16, float16),
                         [](const auto& info) {
                           return std::string(name_of(info.param));
                         });

// Were these summed in 16 bits, bfloat16 would stop at 256 and float16 at 2048.
TEST_P(Halves, LongSumsAreExact) {
  const Tensor image = ones_of({1, 3, 3, 512}),
               filter = ones_of({3, 3, 512, 2});
  EXPECT_EQ(floats(nn::conv2d(image, filter, {.padding = "VALID"})),
            (std::vector<float>{4608, 4608}));
  EXPECT_EQ(floats(nn::avg_pool2d(ones_of({1, 64, 64, 1}),
                                  {.ksize = {64}, .strides = {64}})),
            std::vector<float>{1});
  EXPECT_EQ(floats(math::add_n(Tensors(40, ones_of({2}) * 64.0))),
            (std::vector<float>{2560, 2560}));
  GradientTape tape;
  const Tensor bias = ones_of({1}) * 0.0;
  tape.watch(bias);
  const Tensor y = nn::bias_add(ones_of({6144, 1}), bias);
  EXPECT_EQ(floats(tape.gradient(math::reduce_sum(y), bias)),
            std::vector<float>{6144});
}

TEST_P(Halves, SoftmaxOfManyEqualLogitsSharesEqually) {
  const Tensor x = ones_of({3, 4096});
  for (const float p : floats(nn::softmax(x))) ASSERT_EQ(p, 0x1p-12f);
  const auto near = static_cast<float>(12 * std::numbers::ln2);
  const Tensor want = math::cast(constant(-near), GetParam());
  EXPECT_EQ(floats(nn::log_softmax(x))[4000], floats(want)[0]);
  const Tensor loss =
      nn::sparse_softmax_cross_entropy_with_logits(constant({0, 1, 4095}), x);
  EXPECT_EQ(floats(loss), std::vector<float>(3, -floats(want)[0]));
}

// What float32 computes, rounded once, bit for bit.
TEST_P(Halves, ResultsAreThoseOfFloat32RoundedOnce) {
  const auto wide = [](const Tensor& x) { return math::cast(x, float32); };
  const Tensor x = some({6, 9, 10, 8}), f = some({3, 3, 8, 5});
  const Tensor scale = constant({1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f});
  const auto expect_same = [&](const char* what, const Tensor& got,
                               const Tensor& want) {
    EXPECT_EQ(got.dtype(), GetParam()) << what;
    EXPECT_EQ(floats(got), floats(narrow(want))) << what;
  };
  expect_same("conv2d", nn::conv2d(x, f), nn::conv2d(wide(x), wide(f)));
  expect_same("max_pool", nn::max_pool2d(x, {.ksize = {2}, .strides = {2}}),
              nn::max_pool2d(wide(x), {.ksize = {2}, .strides = {2}}));
  expect_same("avg_pool", nn::avg_pool2d(x, {.ksize = {3}, .strides = {2}}),
              nn::avg_pool2d(wide(x), {.ksize = {3}, .strides = {2}}));
  expect_same("softmax", nn::softmax(x), nn::softmax(wide(x)));
  expect_same("gelu", nn::gelu(x), nn::gelu(wide(x)));
  expect_same("bias_add", nn::bias_add(x, narrow(scale)),
              nn::bias_add(wide(x), scale));
  expect_same("layer_norm", nn::layer_norm(x, scale, scale),
              nn::layer_norm(wide(x), scale, scale));
  expect_same("batch_norm", nn::fused_batch_norm(x, scale, scale).y,
              nn::fused_batch_norm(wide(x), scale, scale).y);
  expect_same("group_norm", nn::group_norm(x, 2, scale, scale),
              nn::group_norm(wide(x), 2, scale, scale));
  expect_same("rms_norm", nn::rms_norm(x, scale), nn::rms_norm(wide(x), scale));
}

TEST_P(Halves, StatisticsOfNormsAreFloat32) {
  const Tensor x = some({64, 3});
  const Tensor scale = constant({1.f, 2.f, 3.f}), offset = scale * 0.0;
  const nn::FusedBatchNorm norm = nn::fused_batch_norm(x, scale, offset);
  EXPECT_EQ(norm.y.dtype(), GetParam());
  EXPECT_EQ(norm.batch_mean.dtype(), float32);
  EXPECT_EQ(norm.batch_variance.dtype(), float32);
  const auto v = floats(x), mean = norm.batch_mean.to_vector<float>();
  for (size_t c = 0; c < 3; ++c) {
    double sum = 0;
    for (size_t i = c; i < v.size(); i += 3) sum += v[i] / 64.0;
    EXPECT_NEAR(mean[c], sum, 1e-6);
  }
  GradientTape tape;
  tape.watch(x);
  tape.watch(scale);
  const Tensor y = nn::layer_norm(x, scale, offset);
  const Tensors d = tape.gradient(math::reduce_sum(y * y), {x, scale});
  EXPECT_EQ(d[0].dtype(), GetParam());
  EXPECT_EQ(d[1].dtype(), float32);
}

TEST_P(Halves, NormsTakeParametersOf16BitsToo) {
  const Tensor x = some({5, 3}), scale = constant({1.f, 2.f, 3.f});
  const Tensor k = narrow(scale);
  EXPECT_EQ(floats(nn::layer_norm(x, k, k)),
            floats(nn::layer_norm(x, scale, scale)));
  EXPECT_EQ(floats(nn::fused_batch_norm(x, k, k).y),
            floats(nn::fused_batch_norm(x, scale, scale).y));
}

TEST_P(Halves, NormsOfFloat32NameParametersOfAnotherDtype) {
  const Tensor x = ones({5, 3}), k = ones_of({3});
  expect_invalid([&] { nn::layer_norm(x, k, k); },
                 "scale is " + std::string(name_of(k.dtype())) +
                     "; expected one of float32, float64");
  const Tensor y = ones({5, 3}, float64), wide = ones({3});
  expect_invalid([&] { nn::fused_batch_norm(y, wide, wide); },
                 "x is float64 but scale is float32; expected float64");
  expect_invalid(
      [&] {
        call_many(op_named("LayerNormGrad"), {&k, &x, &wide, &wide, &wide});
      },
      "expected equal dtypes");
}

// Kernels go by blocks of rows; the error counts as the caller does.
TEST_P(Halves, AWrongLabelIsNamedWithItsRow) {
  std::vector<int32_t> labels(2000, 1);
  labels[1700] = 9;
  expect_invalid(
      [&] {
        nn::sparse_softmax_cross_entropy_with_logits(constant(labels, {2000}),
                                                     ones_of({2000, 7}))
            .to_vector<float>();
      },
      "label 9 in row 1700");
}

TEST_P(Halves, DropoutDrawsWhatFloat32Draws) {
  const AttrsRef attrs(
      {{"rate", 0.5}, {"seed", int64_t{5}}, {"op_id", int64_t{3}}});
  const Tensor x = ones_of({9001}), wide = ones({9001});
  const OpDef& op = op_named("Dropout");
  const Tensors got = call_many(op, {&x}, attrs.get());
  const Tensors want = call_many(op, {&wide}, attrs.get());
  EXPECT_EQ(got[1].to_vector<uint8_t>(), want[1].to_vector<uint8_t>());
  EXPECT_EQ(floats(got[0]), want[0].to_vector<float>());
}

}  // namespace
}  // namespace berth::test
