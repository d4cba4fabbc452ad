// Warm runs ask no system allocator: every call of malloc in this program is
// counted.

#include <gtest/gtest.h>

#include <functional>

#include "bench/count_allocations.h"
#include "berth/function.h"
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

// Wide enough for the engine's own loops; narrow ones are oneDNN's, which
// allocates inside.
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

}  // namespace
}  // namespace berth
