// Compiling concurrently with calls of plans that exist.

#include "function/compile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <semaphore>
#include <thread>

#include "berth/berth.h"
#include "function/graph_callable.h"
#include "function/graph_rewrite.h"
#include "graph/tracer.h"

namespace berth {
namespace {

// A compilation that takes until the test ends it.
class SlowRewrite final : public GraphRewrite {
 public:
  void apply(Graph&) const override {
    if (!slow) return;
    begun.release();
    ended = end.try_acquire_for(std::chrono::seconds(10));
  }
  mutable std::binary_semaphore begun{0}, end{0};
  mutable bool ended = false;  // by the test; false: timed out
  bool slow = false;
};

GraphCallable doubles(std::shared_ptr<const GraphRewrite> rewrite) {
  Tracer tracer("doubles");
  const Tensor x = tracer.add_arg({Shape({-1, 4}), float32, "x"});
  tracer.start();
  FunctionOptions options;
  options.rewrite = std::move(rewrite);
  return GraphCallable(tracer.finish({{x * 2.0}}), options);
}

float call(GraphCallable& f, int64_t rows) {
  const Tensor x = fill(Shape({rows, 4}), 3.0);
  const Tensor* in[] = {&x};
  Tensor out;
  f.call(in, {&out, 1});
  EXPECT_EQ(out.shape(), Shape({rows, 4}));
  return out.to_vector<float>().back();
}

TEST(Compile, OfOtherShapesHoldsUpNoCallOfAPlanThatExists) {
  const auto rewrite = std::make_shared<SlowRewrite>();
  GraphCallable f = doubles(rewrite);
  EXPECT_EQ(call(f, 2), 6);
  rewrite->slow = true;
  float other = 0;
  std::thread compiles([&] { other = call(f, 3); });
  rewrite->begun.acquire();
  EXPECT_EQ(call(f, 2), 6);
  f.plan_info();
  rewrite->end.release();
  compiles.join();
  EXPECT_TRUE(rewrite->ended) << "the call waited for the compilation";
  EXPECT_EQ(other, 6);
}

TEST(Compile, MakesAPlanOnceForThreadsThatWantItAtOnce) {
  const auto rewrite = std::make_shared<SlowRewrite>();
  GraphCallable f = doubles(rewrite);
  rewrite->slow = true;
  std::thread first([&] { call(f, 2); });
  rewrite->begun.acquire();
  std::thread second([&] { call(f, 2); });
  rewrite->end.release();
  first.join();
  second.join();
  EXPECT_FALSE(rewrite->begun.try_acquire()) << "compiled again";
}

}  // namespace
}  // namespace berth
