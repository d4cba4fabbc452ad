// Warm runs ask no system allocator: every call of malloc in this program is
// counted.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "base/fresh_process_testing.h"
#include "bench/count_allocations.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"

namespace berth {
namespace {

// Calls of malloc by the fastest of a few warm runs: threads of a pool warm up
// when they first get work.
long warm_allocations(const std::function<Tensor(const Tensor&)>& fn,
                      const Tensor& x) {
  const auto f = function(fn, {.slices = 1});
  long least = -1;
  for (int i = 0; i < 20; ++i) {
    const long before = berth_bench::allocations();
    f(x);
    const long n = berth_bench::allocations() - before;
    if (i > 3 && (least < 0 || n < least)) least = n;
  }
  return least;
}

TEST(WarmRun, AsksNoSystemAllocator) {
  const Tensor x = math::cast(range(0, 400), float32) * 0.25;
  const auto of = [&](auto&& fn) { return warm_allocations(fn, x); };
  EXPECT_EQ(of([](const Tensor& t) {
              return unique(math::floor(t), {.max_size = 400}).y;
            }),
            0);
  EXPECT_EQ(of([](const Tensor& t) {
              return segment_sum(t, math::cast(t, int32),
                                 {.num_segments = 100});
            }),
            0);
  EXPECT_EQ(of([](const Tensor& t) { return math::cumsum(sort(-t)); }), 0);
  EXPECT_EQ(of([](const Tensor& t) {
              return math::cast(t, bfloat16) * t.shape()[0];
            }),
            0);
}

// Among 200 runs are some whose steps are timed. A worker that the system stops
// at the wrong moment still holds the memory of its run, and the next gets some
// of its own, once: so in one of the rounds nobody asks.
TEST(WarmRun, NeverAsksOneEither) {
  const Tensor x = ones({64});
  const auto f = function([](const Tensor& t) { return math::tanh(t) * t; },
                          {.slices = 1});
  for (int i = 0; i < 10; ++i) f(x);
  long least = -1;
  for (int round = 0; round < 5 && least != 0; ++round) {
    const long before = berth_bench::allocations();
    for (int i = 0; i < 200; ++i) f(x);
    const long n = berth_bench::allocations() - before;
    if (least < 0 || n < least) least = n;
  }
  EXPECT_EQ(least, 0);
}

TEST(WarmRun, OfControlFlowAsksNoSystemAllocator) {
  const Tensor x = math::cast(range(0, 400), float32);
  const auto loop = [](const Tensor& t) {
    const auto [turns, sum] =
        while_loop([](const Tensor& i, const Tensor&) { return i < 5.0; },
                   [&](const Tensor& i, const Tensor& s) {
                     return std::tuple(i + 1.0, s * 0.5 + t);
                   },
                   std::tuple(constant(0.f), t));
    return turns + sum;
  };
  EXPECT_EQ(warm_allocations(loop, x), 0);
  const auto branches = [&](const Tensor& t) {
    return cond(
        math::reduce_sum(t) < 1e9, [&] { return loop(t); }, [&] { return -t; });
  };
  EXPECT_EQ(warm_allocations(branches, x), 0);
}

// Wide enough for the engine's own loops; narrow ones are oneDNN's.
TEST(WarmRun, OfAConvolutionByOwnLoopsAsksNoSystemAllocator) {
  const Tensor x = ones({2, 8, 8, 16});
  const Tensor w = ones({3, 3, 16, 16});
  EXPECT_EQ(warm_allocations(
                [&](const Tensor& t) {
                  return nn::conv2d(t, w, {.padding = "SAME"});
                },
                x),
            0);
}

// Warm allocations of a convolution that only oneDNN has (its stride is 2) and
// of its two gradients.
struct OfConvolution {
  long forward = 0, image = 0, filter = 0;
};

OfConvolution of_strided_convolution() {
  const Tensor x = ones({2, 8, 8, 16}), dy = ones({2, 4, 4, 16});
  const Tensor w = ones({3, 3, 16, 16});
  const nn::Conv2DOptions options{.strides = {2}, .padding = "SAME"};
  const auto forward = [&](const Tensor& t) {
    return nn::conv2d(t, w, options);
  };
  // The gradient of the image does not depend on it.
  const auto image = [&](const Tensor& t) {
    return nn::conv2d_transpose(t, w, {2, 8, 8, 16}, options);
  };
  const auto filter = [&](const Tensor& t) {
    GradientTape tape;
    tape.watch(w);
    const Tensor y = nn::conv2d(t, w, options);
    return tape.gradient(y, w);
  };
  return {warm_allocations(forward, x), warm_allocations(image, dy),
          warm_allocations(filter, x)};
}

// dnnl_primitive_execute() makes a map: its table, and a node per argument.
constexpr long map_of(long arguments) { return 1 + arguments; }

// A pass executes two primitives: the convolution of three operands, whose
// loops for AVX2 allocate once more, and the filter's change of layout.
constexpr long kByOneDnn = map_of(3) + 1 + map_of(2);

void allocates_what_onednn_does() {
  setenv("BERTH_ISA", "v3", 1);
  const OfConvolution n = of_strided_convolution();
  const auto text = std::to_string(n.forward) + " " + std::to_string(n.image) +
                    " " + std::to_string(n.filter);
  const bool counted = berth_bench::allocations() > 0;
  fresh_process::check(
      !counted || (n.forward == kByOneDnn && n.image == kByOneDnn &&
                   n.filter == kByOneDnn),
      text + " allocations");
}

TEST(WarmRun, OfAConvolutionByOneDnnAllocatesWhatOneDnnDoesItself) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "counted for AVX2";
  IN_A_FRESH_PROCESS(allocates_what_onednn_does());
}

// Other loops need a few more: a scratchpad is an argument.
TEST(WarmRun, OfAConvolutionByOneDnnKeepsItsHandles) {
  const OfConvolution n = of_strided_convolution();
  EXPECT_LE(n.forward, kByOneDnn + 2);
  EXPECT_LE(n.image, kByOneDnn + 4);
  EXPECT_LE(n.filter, kByOneDnn + 4);
}

}  // namespace
}  // namespace berth
