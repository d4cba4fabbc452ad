// Metrics: values, weights, names.

#include <gtest/gtest.h>

#include "berth/berth.h"

namespace berth::keras {
namespace {

// The largest of each row stands at 0 and at 2.
Tensor guesses() {
  return constant({{0.7f, 0.2f, 0.1f}, {0.25f, 0.25f, 0.5f}});
}

TEST(Metrics, AccuracyChoosesByShapes) {
  const Metric sparse = "accuracy";
  sparse.update_state(constant({0, 2}), guesses());
  EXPECT_DOUBLE_EQ(sparse.result(), 1);
  sparse.update_state(constant({1, 2}), guesses());
  EXPECT_DOUBLE_EQ(sparse.result(), 0.75);
  sparse.reset_state();
  EXPECT_DOUBLE_EQ(sparse.result(), 0);
  const Metric one_hot = "accuracy";
  one_hot.update_state(constant({{0, 1, 0}, {0, 0, 1}}), guesses());
  EXPECT_DOUBLE_EQ(one_hot.result(), 0.5);
  const Metric binary = "accuracy";
  binary.update_state(constant({0, 1, 1, 1}),
                      constant({{0.1f}, {0.9f}, {0.2f}, {0.6f}}));
  EXPECT_DOUBLE_EQ(binary.result(), 0.75);
}

TEST(Metrics, MeanCountsValuesNotBatches) {
  const Metric mean = metrics::Mean();
  mean.update_state(constant({1.f, 2.f, 3.f}));
  mean.update_state(constant(10.f));
  EXPECT_DOUBLE_EQ(mean.result(), 4);
  EXPECT_THROW(mean.update_state(constant(1.f), constant(1.f)),
               errors::InvalidArgument);
}

TEST(Metrics, StateIsMadeOutsideATrace) {
  const Metric mean = metrics::Mean();
  auto f = function([&](const Tensor& x) { mean.update_state(x); });
  f(constant({1.f, 2.f}));
  f(constant({3.f, 4.f}));
  EXPECT_DOUBLE_EQ(mean.result(), 2.5);
  EXPECT_EQ(f.num_traces(), 1);
}

}  // namespace
}  // namespace berth::keras
