// Compares the verifier's own rules with the planner's on random problems, and
// checks plan files with a false claim.

#include "cli/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/random_cases_testing.h"
#include "cli/verify_rules.h"
#include "planner/problem_testing.h"
#include "planner/random_load_graphs_testing.h"
#include "simulate/random_steps_testing.h"

namespace berth::cli {
namespace {

PlanProblem problem_of_step(place_tests::RandomStep s) {
  PlanProblem p;
  p.name = "random";
  p.graph = std::move(s.graph);
  p.costs = std::move(s.costs);
  p.num_groups = p.num_ops();
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    p.names.push_back("n" + std::to_string(i));
    p.allowed.push_back(~DeviceSet{0});
    p.group.push_back(i);
    p.resident_bytes.push_back(i % 3);
    p.backward.push_back(0);
  }
  return p;
}

PlanProblem random_step_problem(std::mt19937& r, int nodes) {
  return problem_of_step(place_tests::random_step(
      r, {.nodes = nodes, .devices = 1 + place_tests::pick(r, 4)}));
}

PlacePlan plan_of_step(std::mt19937& r, const PlanProblem& p) {
  return place_tests::random_plan(r, {p.graph, p.costs});
}

// Compares the planner's and the verifier's view of one plan.
void expect_same(const PlanProblem& p, const PlacePlan& plan) {
  const Evaluation e = evaluate(p, plan);
  const Recomputed r = recompute(p, plan);
  EXPECT_DOUBLE_EQ(r.value, e.value);
  ASSERT_EQ(r.bytes.size(), e.devices.size());
  for (size_t d = 0; d < r.bytes.size(); ++d) {
    EXPECT_DOUBLE_EQ(r.bytes[d], e.devices[d].bytes) << "device " << d;
  }
}

TEST(VerifyRules, ComputeStepsAndPeaksAsThePlannerDoes) {
  for (unsigned seed = 0; seed < 1500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 r(seed);
    const PlanProblem p =
        random_step_problem(r, 2 + static_cast<int>(r() % 30));
    expect_same(p, plan_of_step(r, p));
  }
}

TEST(VerifyRules, ComputeLoadsAsThePlannerDoes) {
  for (unsigned seed = 0; seed < 1500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 r(seed);
    const PlanProblem p =
        planner_tests::random_loads({.ops = 12,
                                     .by_links = seed % 2 == 0,
                                     .aliases = seed % 3 == 0,
                                     .shared = seed % 4 == 0},
                                    seed);
    PlacePlan plan;
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      plan.device.push_back(place_tests::pick(r, p.num_devices()));
    }
    expect_same(p, plan);
  }
}

// A micro-batch of random ops, some of which a step has once.
PlanProblem random_pipeline_problem(std::mt19937& r, int nodes) {
  PlanProblem p = random_step_problem(r, nodes);
  p.model = PlanModel::kPipeline;
  p.pipeline.micro_batches = 1 + static_cast<int32_t>(r() % 5);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const bool source = p.graph.kind[i] == SimulatedGraph::Kind::kSource;
    p.once.push_back(source ? p.graph.variable_bytes[i] > 0 || r() % 2 == 0
                            : r() % 9 == 0);
    p.backward[i] = r() % 3 == 0;
  }
  return p;
}

// A plan with random stages, in which most ops wait for what comes before.
PlacePlan random_stages(std::mt19937& r, const PlanProblem& p) {
  PlacePlan plan = plan_of_step(r, p);
  const int32_t stages = 1 + static_cast<int32_t>(r() % 4);
  plan.order = static_cast<PipelineOrder>(r() % 3);
  plan.stage.resize(plan.device.size());
  std::vector<int32_t> way(plan.device.size(), 0);
  for (const int32_t i : in_order(p.graph)) {
    for (const int32_t v : p.graph.reads[i]) {
      way[i] = std::max(way[i], way[p.graph.producer[v]]);
    }
    for (const int32_t c : p.graph.controls[i]) {
      way[i] = std::max(way[i], way[c]);
    }
    if (p.takes_time(i) && way[i] + 1 < 2 * stages && r() % 3 == 0) ++way[i];
    const bool backward = way[i] >= stages;
    plan.stage[i] = {backward ? 2 * stages - 1 - way[i] : way[i], backward};
  }
  if (r() % 8 == 0) plan.stage[r() % plan.stage.size()] = {};
  return plan;
}

TEST(VerifyRules, ComputePipelinesAsThePlannerDoes) {
  int endless = 0;
  for (unsigned seed = 0; seed < 1000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 r(seed);
    const PlanProblem p =
        random_pipeline_problem(r, 2 + static_cast<int>(r() % 20));
    const PlacePlan plan = random_stages(r, p);
    const Evaluation e = evaluate(p, plan);
    const bool possible = std::isfinite(e.value) && e.violations.empty();
    endless += !possible;
    if (possible) {
      expect_same(p, plan);
    } else {
      EXPECT_TRUE(std::isinf(recompute(p, plan).value));
    }
  }
  EXPECT_GT(endless, 0);  // stages that wait for each other
  EXPECT_LT(endless, 500);
}

PlanFile file_of(const PlanProblem& p, const PlanAnswer& a) {
  PlanFile f;
  f.plan = a.plan;
  f.model = p.model;
  f.status = status_name(a.status);
  f.value = a.value;
  f.bound = a.bound.value;
  f.gap = a.gap();
  for (const DeviceUse& use : a.evaluation.devices) {
    f.peak_bytes.push_back(use.bytes);
  }
  f.witness = a.bound.witness;
  return f;
}

std::string first_wrong(const PlanProblem& p, const PlanFile& f) {
  for (const Finding& found : verify(p, f)) {
    if (!found.wrong.empty()) return found.what + ": " + found.wrong;
  }
  return "";
}

// Checks a file's claims about its plan with the planner's own functions.
bool is_true(const PlanProblem& p, const PlanFile& f) {
  const Evaluation e = evaluate(p, f.plan);
  if (!e.violations.empty() || std::fabs(e.value - f.value) > 1e-9 * e.value) {
    return false;
  }
  for (size_t d = 0; d < e.devices.size(); ++d) {
    if (e.devices[d].bytes != f.peak_bytes[d]) return false;
  }
  return true;
}

PlanProblem some_problem(std::mt19937& r, unsigned kind) {
  if (kind < 2) return random_step_problem(r, 14);
  if (kind == 4) return random_pipeline_problem(r, 14);
  return planner_tests::random_loads(
      {.ops = 10, .by_links = kind == 2, .limits = true, .masks = true}, r());
}

// Changes one number of a list, a little or a lot.
void disturb(std::mt19937& r, std::vector<double>& numbers) {
  if (numbers.empty()) return;
  double& x = numbers[r() % numbers.size()];
  const double by[] = {0.5, 1.01, 2, -1, 0, 1e9};
  const double factor = by[r() % 6];
  x = x == 0 ? factor : x * factor;
}

TEST(Verify, AcceptsWhatThePlannerSaysAndRejectsWhatIsFalse) {
  int rejected = 0, accepted = 0, planned = 0;
  for (int seed = 0; seed < testing::random_cases(75); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 r(static_cast<unsigned>(seed));
    PlanProblem p = some_problem(r, seed % 5);
    if (p.model == PlanModel::kPipeline && seed % 2 == 0) {
      p.pipeline.order = PipelineOrder::k1F1B;  // as asked for
    }
    const PlanAnswer a =
        plan_placement(p, {.moves = 4000, .seed = 1, .threads = 1});
    if (a.status != PlanStatus::kPlanned) continue;
    ++planned;
    const PlanFile good = file_of(p, a);
    ASSERT_EQ(first_wrong(p, good), "");
    for (int k = 0; k < 40; ++k) {
      PlanFile f = good;
      const uint32_t what = r() % 6;
      if (what == 0) {
        f.plan.device[r() % f.plan.device.size()] =
            place_tests::pick(r, p.num_devices());
      } else if (what == 1 && f.plan.sequence.size() > 1) {
        std::swap(f.plan.sequence[r() % f.plan.sequence.size()],
                  f.plan.sequence[r() % f.plan.sequence.size()]);
      } else if (what == 2) {
        f.value *= r() % 2 ? 0.999 : 1.5;
        f.gap = f.bound > 0 ? f.value / f.bound - 1 : -1;
      } else if (what == 3) {
        disturb(r, f.peak_bytes);
      } else if (what == 4) {
        if (p.model != PlanModel::kPipeline) continue;
        f.plan.stage.resize(f.plan.device.size());  // one device: none
        // On the way through the stages and back: one further, or back.
        OpStage& s = f.plan.stage[r() % f.plan.stage.size()];
        const int32_t by = static_cast<int32_t>(r() % 3) - 1;
        const int32_t way = (s.backward ? -1 - s.stage : s.stage) + by;
        s = {way < 0 ? -1 - way : way, way < 0};
        if (r() % 3 == 0) f.plan.order = static_cast<PipelineOrder>(r() % 3);
      } else {
        f.gap = f.bound > 0 ? f.gap + 0.01 : 0.01;  // no bound: no gap
        EXPECT_NE(first_wrong(p, f), "");
        continue;
      }
      bool truth = false;
      try {
        truth = is_true(p, f);
      } catch (const std::exception&) {  // not a plan
      }
      const std::string wrong = first_wrong(p, f);
      EXPECT_EQ(wrong.empty(), truth) << what << ": " << wrong;
      ++(wrong.empty() ? accepted : rejected);
    }
  }
  EXPECT_GT(planned, testing::random_cases(30));
  EXPECT_GT(rejected, testing::random_cases(500));
  EXPECT_LT(accepted, rejected);
}

TEST(Verify, RejectsAPlanWhoseStatusSaysThatThereIsNone) {
  std::set<PlanModel> models;
  for (unsigned seed = 0; seed < 25; ++seed) {
    std::mt19937 r(seed);
    const PlanProblem p = some_problem(r, seed % 5);
    const PlanAnswer a =
        plan_placement(p, {.moves = 1000, .seed = 1, .threads = 1});
    if (a.status != PlanStatus::kPlanned) continue;
    models.insert(p.model);
    PlanFile f = file_of(p, a);
    ASSERT_EQ(first_wrong(p, f), "");
    for (const char* status : {"infeasible", "nothing found"}) {
      f.status = status;
      EXPECT_EQ(
          first_wrong(p, f),
          fmt::format("status: the file says \"{}\" and has a plan", status));
    }
  }
  EXPECT_EQ(models.size(), 3u);
}

TEST(Verify, RejectsPipelinesOfOtherMicroBatchesOrSchedules) {
  int planned = 0;
  for (unsigned seed = 4; seed < 75; seed += 5) {
    SCOPED_TRACE(seed);
    std::mt19937 r(seed);
    PlanProblem p = some_problem(r, 4);
    const PlanAnswer a =
        plan_placement(p, {.moves = 1000, .seed = 1, .threads = 1});
    if (a.status != PlanStatus::kPlanned || !(a.value > 0)) continue;
    ++planned;
    PlanFile f = file_of(p, a);
    p.pipeline.micro_batches *= 2;
    EXPECT_NE(first_wrong(p, f), "");
    p.pipeline.micro_batches /= 2;
    const int32_t stages = a.evaluation.stages.size();
    for (const auto asked : {PipelineOrder::kGPipe, PipelineOrder::k1F1B,
                             PipelineOrder::kInterleaved}) {
      p.pipeline.order = asked;
      EXPECT_EQ(first_wrong(p, f).empty(),
                stages == 1 || asked == f.plan.order);
    }
  }
  EXPECT_GT(planned, 5);
}

TEST(Verify, RejectsWitnessesOfOtherModels) {
  int bounded = 0;
  for (unsigned seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 r(seed);
    const PlanProblem p = some_problem(r, seed % 5);
    const PlanAnswer a =
        plan_placement(p, {.moves = 1000, .seed = 1, .threads = 1});
    if (a.status != PlanStatus::kPlanned || a.bound.witness.kind.empty()) {
      continue;
    }
    ++bounded;
    PlanFile f = file_of(p, a);
    // Tiny steps are searched again whatever arrays the file has.
    for (const char* kind : {"packing", "path", "windows", "search", "x"}) {
      if (kind == a.bound.witness.kind) continue;
      if (p.model == PlanModel::kStep && kind == std::string("search"))
        continue;
      f.witness.kind = kind;
      EXPECT_NE(first_wrong(p, f), "") << kind;
    }
  }
  EXPECT_GT(bounded, testing::random_cases(10));
}

TEST(Verify, RejectsBoundsAboveThePlanWhateverTheWitness) {
  int bounded = 0;
  for (int seed = 0; seed < testing::random_cases(75); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 r(static_cast<unsigned>(seed));
    const PlanProblem p = some_problem(r, seed % 5);
    const PlanAnswer a =
        plan_placement(p, {.moves = 4000, .seed = 1, .threads = 1});
    if (a.status != PlanStatus::kPlanned || a.bound.witness.kind.empty()) {
      continue;
    }
    ++bounded;
    const PlanFile good = file_of(p, a);
    for (int k = 0; k < 40; ++k) {
      // Claims to rule out a plan of another, lower value.
      PlanFile f = good;
      f.bound = f.witness.target = f.value * (1 + 0.01 * (1 + r() % 50));
      f.value = f.bound;
      f.gap = 0;
      for (uint32_t n = r() % 3; n > 0 && !f.witness.arrays.empty(); --n) {
        disturb(r, f.witness.arrays[r() % f.witness.arrays.size()].second);
      }
      for (const Finding& found : verify(p, f)) {
        if (found.what == "bound") {
          EXPECT_NE(found.wrong, "") << f.bound << " " << good.value;
        }
      }
      // Claims a bound above its own witness.
      f = good;
      f.bound = f.witness.target * 1.001;
      EXPECT_NE(first_wrong(p, f), "");
    }
  }
  EXPECT_GT(bounded, testing::random_cases(10));
}

}  // namespace
}  // namespace berth::cli
