// Plans for growing budgets.

#include <gtest/gtest.h>

#include "planner/budget.h"
#include "planner/models.h"
#include "planner/planner.h"
#include "planner/problem_testing.h"

namespace berth {
namespace {

constexpr PlanModel kEachModel[] = {PlanModel::kStep, PlanModel::kLoad,
                                    PlanModel::kPipeline};

// 90 ops that read one or two of the six ops before them, on two fast and two
// slow devices.
PlanProblem growing_problem(PlanModel model, uint64_t seed) {
  testing::ProblemMaker m(model);
  StreamRandom random(seed, 0);
  const int fast = m.device_class("fast"), slow = m.device_class("slow");
  for (int d = 0; d < 4; ++d) {
    m.device("GPU:" + std::to_string(d), d < 2 ? fast : slow);
  }
  m.links(2, 10);
  for (int i = 0; i < 90; ++i) {
    std::vector<int> inputs;
    for (int k = 0; i > 5 && k < 2; ++k) {
      const int input = i - 1 - static_cast<int>(random.below(6));
      if (inputs.empty() || inputs[0] != input) inputs.push_back(input);
    }
    const double us = 1 + random.below(20);
    m.op("op" + std::to_string(i), {us, 1.7 * us}, inputs, random.below(90));
  }
  PlanProblem p = m.make();
  p.pipeline.micro_batches = 4;
  return p;
}

TEST(Anytime, SlowTwiceTheMovesAreNeverWorse) {
  for (const PlanModel model : kEachModel) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const PlanProblem p = growing_problem(model, seed);
      double before = std::numeric_limits<double>::infinity();
      for (const int64_t moves : {500, 1000, 2000, 4000, 8000, 16000, 32000}) {
        const PlanAnswer a =
            plan_placement(p, {.moves = moves, .seed = seed, .threads = 2});
        ASSERT_EQ(a.status, PlanStatus::kPlanned);
        EXPECT_LE(a.value, before)
            << model_name(model) << " " << seed << " " << moves;
        before = a.value;
      }
    }
  }
}

// Whatever the machine does meanwhile: more seconds are more moves unless it
// stands still. A search ends at a plan that equals the bound up to rounding,
// and the time at which the bound is proved decides which of these it is. (A
// pipeline's search evaluates those of its cuts that it estimates best: where
// the clock cuts it off decides which, so only moves promise this for it.)
TEST(Anytime, SlowMoreSecondsThatGiveTwiceTheMovesAreNeverWorse) {
  int compared = 0;
  for (const PlanModel model : {PlanModel::kStep, PlanModel::kLoad}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const PlanProblem p = growing_problem(model, seed);
      PlanAnswer before;
      for (const double seconds : {0.02, 0.1, 0.5}) {
        const PlanAnswer a =
            plan_placement(p, {.seconds = seconds, .seed = seed, .threads = 2});
        ASSERT_EQ(a.status, PlanStatus::kPlanned);
        if (before.moves > 0 && a.moves > 2 * before.moves) {
          EXPECT_LE(a.value, before.value * (1 + 1e-9))
              << model_name(model) << " " << seed << " " << seconds;
          ++compared;
        }
        before = a;
      }
    }
  }
  EXPECT_GT(compared, 0);
}

// A start of a large problem takes long, and no share of the budget is over 1
// when time is up.
TEST(Anytime, WithoutTimeOnlyTheFirstStartsAreMade) {
  for (const PlanModel model : kEachModel) {
    const PlanProblem p = growing_problem(model, 1);
    const Found found =
        rules_of(p).search(p, Budget::of_seconds(0, 2), /*seed=*/1);
    EXPECT_TRUE(found.any());
    EXPECT_LE(found.moves, 100) << model_name(model);
  }
}

TEST(Anytime, ThreadsDoNotChangeAPlanFoundInSeveralSearches) {
  for (const PlanModel model : kEachModel) {
    const PlanProblem p = growing_problem(model, 9);
    const PlanAnswer one =
        plan_placement(p, {.moves = 16000, .seed = 2, .threads = 1});
    for (const int threads : {2, 3, 8}) {
      const PlanAnswer other =
          plan_placement(p, {.moves = 16000, .seed = 2, .threads = threads});
      EXPECT_EQ(one.value, other.value) << model_name(model);
      EXPECT_EQ(one.bound.value, other.bound.value);
      EXPECT_EQ(one.moves, other.moves);
      EXPECT_EQ(one.plan.device, other.plan.device);
      EXPECT_EQ(one.plan.sequence, other.plan.sequence);
    }
  }
}

}  // namespace
}  // namespace berth
