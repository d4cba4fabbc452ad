// The planner as a whole: never worse than known plans, deterministic for a
// seed and a budget in moves, and honest when it finds nothing.

#include "planner/planner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "planner/problem_testing.h"

namespace berth {
namespace {

using testing::ProblemMaker;

// Returns 24 ops in a net on three devices of two classes.
PlanProblem some_problem(PlanModel model, uint64_t seed) {
  StreamRandom random(seed, 0);
  ProblemMaker m(model);
  const int gpu = m.device_class("GPU"), cpu = m.device_class("CPU");
  const bool touch = model != PlanModel::kStep;
  m.device("GPU:0", gpu, model == PlanModel::kStep ? 0 : 90);
  m.device("GPU:1", gpu, model == PlanModel::kStep ? 0 : 90);
  m.device("CPU", cpu, 0, CopyRule::kReceiving, true);
  m.links(1, 10);
  for (int i = 0; i < 24; ++i) {
    std::vector<int> inputs;
    for (int k = 0; i > 2 && k < 2; ++k) {
      const int input = i - 1 - static_cast<int>(random.below(3));
      if (inputs.empty() || inputs[0] != input) inputs.push_back(input);
    }
    const double us = 1 + random.below(9);
    m.op("op" + std::to_string(i), {us, 4 * us}, inputs, random.below(50),
         touch ? random.below(4) : -1);
    m.hold(i, random.below(10));
  }
  return m.make();
}

PlannerOptions in_moves(int64_t moves, int threads) {
  PlannerOptions o;
  o.moves = moves;
  o.threads = threads;
  return o;
}

constexpr PlanModel kModels[] = {PlanModel::kStep, PlanModel::kLoad};

TEST(Planner, AnswersAreNeverWorseThanAnyCandidateNorUnderTheBound) {
  for (const PlanModel model : kModels) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      PlanProblem p = some_problem(model, seed);
      // A given plan: a prefix on one device, the rest on another.
      PlanCandidate split = {"halves", {{}, order_of_ops(p)}};
      for (int i = 0; i < 24; ++i) split.plan.device.push_back(i < 12 ? 0 : 2);
      p.candidates.push_back(split);
      const PlanAnswer a = plan_placement(p, in_moves(4000, 2));
      ASSERT_EQ(a.status, PlanStatus::kPlanned);
      EXPECT_TRUE(a.evaluation.violations.empty());
      EXPECT_DOUBLE_EQ(evaluate(p, a.plan).value, a.value);
      ASSERT_EQ(a.candidates.size(), 3u);  // one GPU, the CPU, and halves
      for (const PricedCandidate& c : a.candidates) {
        if (c.violations.empty()) {
          EXPECT_LE(a.value, c.value) << c.name;
        }
      }
      EXPECT_GT(a.bound.value, 0);
      EXPECT_LE(a.bound.value, a.value * (1 + 1e-9));
    }
  }
}

TEST(Planner, RepeatsForASeedAndABudgetInMovesOnAnyNumberOfThreads) {
  for (const PlanModel model : kModels) {
    const PlanProblem p = some_problem(model, 7);
    const PlanAnswer one = plan_placement(p, in_moves(3000, 1));
    for (const int threads : {2, 5, 8}) {
      const PlanAnswer many = plan_placement(p, in_moves(3000, threads));
      EXPECT_EQ(one.plan.device, many.plan.device);
      EXPECT_EQ(one.plan.sequence, many.plan.sequence);
      EXPECT_EQ(one.value, many.value);
      EXPECT_EQ(one.bound.value, many.bound.value);
      EXPECT_EQ(one.moves, many.moves);
    }
  }
}

TEST(Planner, PlansInSecondsToo) {
  PlannerOptions o;
  o.seconds = 0.2;
  for (const PlanModel model : kModels) {
    const PlanAnswer a = plan_placement(some_problem(model, 3), o);
    EXPECT_EQ(a.status, PlanStatus::kPlanned);
    EXPECT_GT(a.moves, 0);
  }
}

TEST(Planner, SaysWhichOpsAndLimitsCannotBeKept) {
  ProblemMaker m(PlanModel::kLoad);
  const int gpu = m.device_class("GPU");
  m.device("GPU:0", gpu, 100);
  m.device("GPU:1", gpu, 100);
  for (const char* name : {"a", "b", "c"}) {
    m.hold(m.op(name, {1}, {}, 0, 1), 60);
  }
  m.hold(m.op("small", {1}, {}, 0, 1), 5);
  const PlanProblem p = m.make();
  const PlanAnswer a = plan_placement(p, in_moves(100, 1));
  EXPECT_EQ(a.status, PlanStatus::kInfeasible);
  EXPECT_EQ(a.conflict.ops, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_TRUE(a.plan.device.empty());
  EXPECT_EQ(certificate(p, a).rfind("No plan is possible: ", 0), 0u);
}

TEST(Planner, SaysSoWhenNothingIsFoundAndNothingProved) {
  const PlanProblem p = some_problem(PlanModel::kStep, 1);
  EXPECT_EQ(certificate(p, PlanAnswer()),
            "No plan was found that keeps all limits, and none was proved "
            "impossible; more effort may find one");
}

TEST(Planner, CertificatesNameValueBoundGapCoverAndEffort) {
  ProblemMaker m(PlanModel::kLoad);
  m.device("GPU:0", m.device_class("GPU"));
  PlanProblem p = m.make();
  PlanAnswer a;
  a.status = PlanStatus::kPlanned;
  EXPECT_EQ(certificate(p, a),
            "Planned load of the busiest device: 0 us; no plan is better");
  a.value = 2020;
  EXPECT_EQ(certificate(p, a),
            "Planned load of the busiest device: 2.02 ms; nothing was proved "
            "about better ones");
  a.bound.value = 2000;
  a.bound.how = "sums";
  a.in_moves = true;
  a.moves = 800;
  EXPECT_EQ(certificate(p, a),
            "Planned load of the busiest device: 2.02 ms; with these costs, "
            "links and limits no plan is under 2 ms (no plan can be more than "
            "1.0 % better; covers all placements, ops as given; proof: sums; "
            "800 moves)");
  a.in_moves = false;
  a.seconds = 0.5;
  a.bound.value = a.value;
  p.time_unit = "";
  EXPECT_EQ(certificate(p, a),
            "Planned load of the busiest device: 2020; with these costs, links "
            "and limits no plan is under 2020 (no plan is better, to six "
            "digits; covers all placements, ops as given; proof: sums; 0.5 s "
            "together)");
}

TEST(Planner, AnEmptyGraphIsPlannedAtOnce) {
  for (const PlanModel model : kModels) {
    ProblemMaker m(model);
    m.device("GPU:0", m.device_class("GPU"));
    const PlanAnswer a = plan_placement(m.make(), in_moves(100, 2));
    EXPECT_EQ(a.status, PlanStatus::kPlanned);
    EXPECT_EQ(a.value, 0);
  }
}

}  // namespace
}  // namespace berth
