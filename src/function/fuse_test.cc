// Fused groups against eager execution, where each op runs its own kernel.

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "berth/device.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "berth/variable.h"
#include "ops/training.h"

namespace berth {
namespace {

std::vector<unsigned char> bytes_of(const Tensor& t) {
  if (t.dtype() == float32) {
    const auto v = t.to_vector<float>();
    std::vector<unsigned char> b(v.size() * 4);
    std::memcpy(b.data(), v.data(), b.size());
    return b;
  }
  return {};
}

// A program of elementwise ops over [rows, cols], a row, a column, a scalar.
Tensors run_program(uint32_t seed, const Tensors& in) {
  std::mt19937 engine(seed);
  const auto below = [&](size_t n) { return engine() % n; };
  Tensors values(in.begin(), in.end()), full{in[0], in[1]};
  const auto any = [&] { return values[below(values.size())]; };
  const auto add = [&](const Tensor& t) {
    values.push_back(t);
    full.push_back(t);
  };
  for (int step = 0; step < 24; ++step) {
    const Tensor x = full[below(full.size())], y = any();
    switch (below(14)) {
      case 0:
        add(x + y);
        break;
      case 1:
        add(math::tanh(x - y));
        break;
      case 2:
        add(x * 0.25 * math::tanh(y));
        break;
      case 3:
        add(nn::gelu(x));
        break;
      case 4:
        add(nn::gelu(x, {.approximate = true}));
        break;
      case 5:
        add(nn::relu(x));
        break;
      case 6:
        add(math::maximum(x, y));
        break;
      case 7:
        add(math::sigmoid(x));
        break;
      case 8:
        add(x / (math::square(y) + 1.0));
        break;
      case 9:
        add(math::cast(x > y, float32) * x);
        break;
      case 10:
        add(math::log(math::abs(x) + 0.5));
        break;
      case 11:
        add(x - math::reduce_sum(x, {.axis = std::vector<int64_t>{0}}) *
                    0.01);  // not fusible
        break;
      case 12:
        add(math::squared_difference(x, math::floor(x)));
        break;
      default:
        add(math::exp(-math::abs(x)));
        break;
    }
  }
  return {full.back(), full[full.size() / 2], full[full.size() / 3]};
}

TEST(Fuse, RandomProgramsKeepTheirBits) {
  const auto on = device("/CPU:0");
  const Tensor row =
      random::uniform({37}, {.minval = -1, .maxval = 1, .seed = 3});
  const Tensor column =
      random::uniform({16, 1}, {.minval = -1, .maxval = 1, .seed = 4});
  const Tensors in{
      random::uniform({16, 37}, {.minval = -2, .maxval = 2, .seed = 1}),
      random::uniform({16, 37}, {.minval = -2, .maxval = 2, .seed = 2}), row,
      column, constant(0.75f)};
  int fused = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    auto step = function(
        [seed](const Tensors& args) { return run_program(seed, args); });
    const Tensors want = run_program(seed, in), got = step(in);
    const std::string plan = step.text("place");
    fused += plan.find("_Fused") != std::string::npos;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(bytes_of(got[i]), bytes_of(want[i])) << i << "\n" << plan;
    }
  }
  EXPECT_GT(fused, 190);
}

TEST(Fuse, GradientsOfAChainKeepTheirBits) {
  const auto on = device("/CPU:0");
  const Tensor x =
      random::uniform({32, 20}, {.minval = -2, .maxval = 2, .seed = 1});
  const Tensor bias =
      random::uniform({20}, {.minval = -1, .maxval = 1, .seed = 2});
  const auto body = [](const Tensor& a, const Tensor& b) -> Tensors {
    GradientTape tape;
    tape.watch(a);
    tape.watch(b);
    const Tensor h = nn::gelu(nn::bias_add(a, b)) * 0.5 + a;
    const Tensor loss = math::reduce_sum(h * h);
    const Tensors g = tape.gradient(loss, {a, b});
    return {g[0], g[1]};
  };
  auto step = function(body);
  const Tensors want = body(x, bias), got = step(x, bias);
  EXPECT_EQ(bytes_of(got[0]), bytes_of(want[0]));
  EXPECT_NE(step.text("place").find("_Fused"), std::string::npos);
}

TEST(MergeUpdates, ManySmallVariablesChangeAsOneByOne) {
  const auto on = device("/CPU:0");
  struct Parameter {
    Variable w, m, v;
    Tensor grad;
  };
  Tensors start;
  for (int64_t i = 1; i <= 5; ++i) {
    start.push_back(random::uniform({i, 7}, {.minval = -1, .maxval = 1}));
  }
  const auto make = [&] {
    std::vector<Parameter> all;
    for (const Tensor& t : start) {
      all.push_back({Variable(t), Variable(zeros_like(t)),
                     Variable(zeros_like(t)), t * 0.5});
    }
    return all;
  };
  const auto update = [](const std::vector<Parameter>& all) {
    const training::AdamScalars s{constant(0.9f),  constant(0.99f),
                                  constant(0.01f), constant(0.9f),
                                  constant(0.99f), constant(1e-7f)};
    for (const Parameter& p : all) {
      training::apply_adam(p.w.handle(), p.m.handle(), p.v.handle(), s, p.grad,
                           true);
    }
  };
  const auto want = make(), got = make();
  update(want);
  auto step = function([&](const Tensor& x) {
    update(got);
    return x;
  });
  step(constant(1.0f));
  EXPECT_NE(step.text("place").find("_MultiApply"), std::string::npos);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(bytes_of(got[i].w.value()), bytes_of(want[i].w.value())) << i;
    EXPECT_EQ(bytes_of(got[i].v.value()), bytes_of(want[i].v.value())) << i;
  }
}

// The processor's kernels of expressions have no loops of 16 bits.
TEST(Fuse, LeavesHalvesOnTheCpuAlone) {
  const auto on = device("/CPU:0");
  const auto body = [](const Tensor& x) {
    return math::tanh(nn::relu(x * x - x) + 0.25);
  };
  for (const DType dtype : {bfloat16, float16}) {
    const Tensor x = math::cast(
        random::uniform({32, 20}, {.minval = -2, .maxval = 2, .seed = 3}),
        dtype);
    auto step = function(body);
    const Tensor got = step(x);
    EXPECT_EQ(bytes_of(math::cast(got, float32)),
              bytes_of(math::cast(body(x), float32)));
    EXPECT_EQ(step.text("place").find("_Fused"), std::string::npos);
  }
}

}  // namespace
}  // namespace berth
