// explain() names the stage that is slow, wherever its neighbours wait.

#include "data/stage_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "berth/ops/math.h"
#include "data/testing.h"

namespace berth::data {
namespace {

// An element takes a millisecond.
Tensors slowly(const Tensors& e) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return e;
}
Tensors at_once(const Tensors& e) { return e; }

std::string slow_part(const Dataset& d) {
  numbers(d);
  const auto slow = slow_stage(d.node());
  return slow ? slow->node->what() : "";
}

TEST(SlowStage, IsAMapInTheThreadThatReads) {
  const auto d = Dataset::range(60).map(slowly).batch(4);
  EXPECT_EQ(slow_part(d), "map");
  const std::string text = d.explain();
  EXPECT_TRUE(has(text, "slow stage: map (stage_times_test.cc:")) << text;
  EXPECT_TRUE(has(text, " for each of 60 elements, ")) << text;
  EXPECT_TRUE(has(text, "with num_parallel_calls")) << text;
}

TEST(SlowStage, IsNotThePrefetchWhoseReaderWaits) {
  EXPECT_EQ(slow_part(Dataset::range(60).map(slowly).batch(4).prefetch(2)),
            "map");
  EXPECT_EQ(slow_part(Dataset::range(60)
                          .map(slowly, {.num_parallel_calls = 2})
                          .prefetch(AUTOTUNE)),
            "map");
}

TEST(SlowStage, IsTheSourceThatAParallelMapWaitsFor) {
  const auto source = [] {
    return Generator([n = int64_t{0}]() mutable -> std::optional<Tensors> {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (n++ == 60) return std::nullopt;
      return Tensors{constant(n)};
    });
  };
  const auto d = Dataset::from_generator(source, {{Shape{}, int64}})
                     .map(at_once, {.num_parallel_calls = AUTOTUNE})
                     .batch(4)
                     .prefetch(2);
  EXPECT_EQ(slow_part(d), "from_generator");
  EXPECT_TRUE(has(d.explain(), "what comes before is the slower part"));
}

TEST(SlowStage, OfAParallelMapDoesNotBlameWhatComesBefore) {
  const auto d =
      Dataset::range(60).map(slowly, {.num_parallel_calls = AUTOTUNE});
  EXPECT_EQ(slow_part(d), "map");
  EXPECT_FALSE(has(d.explain(), "what comes before")) << d.explain();
}

TEST(SlowStage, IsTheFunctionOfRowsThatABatchGathers) {
  const auto d =
      Dataset::from_tensor_slices(iota({64}))
          .map_rows(
              [](const RowIn& in, RowOut& out, RowRandom&) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                out.get<int64_t>(0)[0] = in.get<int64_t>(0)[0];
              },
              {{Shape{}, int64}})
          .shuffle(64)
          .batch(16);
  EXPECT_EQ(slow_part(d), "map_rows");
}

TEST(SlowStage, IsNotNamedBeforeAnythingWasRead) {
  const auto d = Dataset::range(3).map(slowly);
  EXPECT_FALSE(slow_stage(d.node()));
  EXPECT_FALSE(has(d.explain(), "slow stage"));
}

// One in many of the cheap calls is timed, and counts for all of them.
TEST(SlowStage, CountsElementsThatItDidNotTime) {
  const auto d =
      Dataset::range(5000).filter([](const Tensors&) { return true; });
  numbers(d);
  EXPECT_NEAR(static_cast<double>(d.node().times().elements), 5000, 20);
}

}  // namespace
}  // namespace berth::data
