// Gradients of both orders where dimensions are unknown, as in a trace.

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/gradient_tape.h"
#include "berth/ops/nn.h"
#include "ops/unknown_dims_testing.h"

namespace berth::test {
namespace {

TEST(UnknownDims, PassThroughGradientsOfBothOrders) {
  const Shape image{-2, 8, 8, 3}, any{-2, -3, -4, 3}, filter{3, 3, 3, 4};
  const nn::Conv2DOptions same{.strides = {2}, .padding = "SAME"};
  const auto conv = [&](const Tensors& x) {
    return nn::conv2d(x[0], x[1], same);
  };
  const auto max_pool = [](const Tensors& x) { return nn::max_pool2d(x[0]); };
  const auto avg_pool = [](const Tensors& x) { return nn::avg_pool2d(x[0]); };
  const auto norm = [](const Tensors& x) {
    return nn::fused_batch_norm(x[0], x[1], x[2]).y;
  };
  const std::vector<UnknownCase> cases = {
      {"conv", {image, filter}, conv},
      {"conv, any size", {any, filter}, conv},
      {"conv in groups",
       {{-2, -3, -4, 6}, {3, 3, 2, 6}},
       [](const Tensors& x) { return nn::conv2d(x[0], x[1]); }},
      {"conv in groups, any channels",
       {{-2, -3, -4, -6}, {3, 3, 2, 6}},
       [](const Tensors& x) { return nn::conv2d(x[0], x[1]); }},
      {"conv in groups, any filter",
       {{-2, -3, -4, 6}, {3, 3, -2, 6}},
       [](const Tensors& x) { return nn::conv2d(x[0], x[1]); }},
      {"conv, channels first",
       {{-2, 3, -3, -4}, filter},
       [](const Tensors& x) {
         return nn::conv2d(x[0], x[1], {.data_format = "NCHW"});
       }},
      {"conv of a sequence",
       {{-2, -3, 3}, {5, 3, 4}},
       [](const Tensors& x) { return nn::conv1d(x[0], x[1]); }},
      {"transposed conv",
       {{-2, 8, 8, 4}, filter},
       [&](const Tensors& x) {
         return nn::conv2d_transpose(x[0], x[1], {}, same);
       }},
      {"depthwise conv",
       {any, {3, 3, 3, 2}},
       [&](const Tensors& x) {
         return nn::depthwise_conv2d(x[0], x[1], same);
       }},
      {"max pool with argmax",
       {any},
       [](const Tensors& x) { return nn::max_pool_with_argmax(x[0]).first; }},
      {"max pool", {image}, max_pool},
      {"max pool, any size", {any}, max_pool},
      {"avg pool", {image}, avg_pool},
      {"avg pool, any size", {any}, avg_pool},
      {"batch norm", {any, {3}, {3}}, norm},
      {"bias",
       {any, {3}},
       [](const Tensors& x) { return nn::bias_add(x[0], x[1]); }},
      {"relu", {any}, [](const Tensors& x) { return nn::relu(x[0]); }},
      {"gelu", {any}, [](const Tensors& x) { return nn::gelu(x[0]); }},
      {"dropout",
       {any},
       [](const Tensors& x) { return nn::dropout(x[0], 0.5); }},
      {"dropout of channels",
       {any},
       [](const Tensors& x) {
         return nn::dropout(x[0], 0.5, {.noise_shape = {-1, 1, 1, -1}});
       }},
      {"group norm",
       {any, {3}, {3}},
       [](const Tensors& x) { return nn::group_norm(x[0], 1, x[1], x[2]); }},
      {"instance norm",
       {any, {3}, {3}},
       [](const Tensors& x) { return nn::instance_norm(x[0], x[1], x[2]); }},
      {"rms norm",
       {any, {3}},
       [](const Tensors& x) { return nn::rms_norm(x[0], x[1]); }},
      {"local response norm",
       {any},
       [](const Tensors& x) { return nn::local_response_normalization(x[0]); }},
      {"attention",
       {{-2, 4, -3, 8}, {-2, 4, -4, 8}, {-2, 4, -4, 8}, {-3, -4}},
       [](const Tensors& x) {
         return nn::scaled_dot_product_attention(
             x[0], x[1], x[2], {.mask = x[3], .is_causal = true});
       }},
      {"softmax", {any}, [](const Tensors& x) { return nn::softmax(x[0]); }},
      {"log softmax",
       {any},
       [](const Tensors& x) { return nn::log_softmax(x[0]); }},
      {"cross entropy",
       {{-2, 10}, {-2, 10}},
       [](const Tensors& x) {
         return nn::softmax_cross_entropy_with_logits(x[0], x[1]);
       }},
      {"sparse cross entropy",
       {{-2, 10}},
       [](const Tensors& x) {
         return nn::sparse_softmax_cross_entropy_with_logits(
             symbol({-2}, int32), x[0]);
       }},
      {"sparse cross entropy of sequences",
       {{-2, -3, 10}},
       [](const Tensors& x) {
         return nn::sparse_softmax_cross_entropy_with_logits(
             symbol({-2, -3}, int64), x[0]);
       }},
  };
  for (const UnknownCase& k : cases) expect_gradient_shapes(k);
}

// The filter is not watched: its gradient costs nothing.
TEST(UnknownDims, ConvGradientIsComputedOnlyForWhatIsAsked) {
  for (const int64_t height : {8, -3}) {
    ShapesOnly tracer;
    const DispatchGuard on(&tracer);
    const Tensor x = symbol({-2, height, 8, 3}), w = symbol({3, 3, 3, 4});
    GradientTape tape;
    tape.watch(x);
    const Tensor y = nn::conv2d(x, w, {.padding = "SAME"});
    EXPECT_EQ(tape.gradient(y, x).shape(), x.shape());
    EXPECT_EQ(std::count(tracer.called.begin(), tracer.called.end(),
                         "Conv2DBackpropInput"),
              1);
    EXPECT_EQ(std::count(tracer.called.begin(), tracer.called.end(),
                         "Conv2DBackpropFilter"),
              0);
  }
}

}  // namespace
}  // namespace berth::test
