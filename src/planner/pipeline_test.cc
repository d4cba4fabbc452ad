// Pipelines: closed forms, the same step op by op by the simulator of latency
// plans, memory, search and bound.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/infinity.h"
#include "planner/models.h"
#include "planner/problem_testing.h"
#include "simulate/pipeline_steps.h"

namespace berth {
namespace {

struct TrainingShape {
  int layers = 4, devices = 4, micro_batches = 8;
  double forward = 2, backward = 3;
  int64_t bytes = 0;  // of every value
  int64_t limit = 0;
  double latency = 0, rate = 1;
};

// A chain of layers, each with a gradient that also reads the layer's input.
PlanProblem training_chain(const TrainingShape& s) {
  testing::ProblemMaker m(PlanModel::kPipeline);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < s.devices; ++d) {
    m.device("GPU:" + std::to_string(d), gpu, s.limit);
  }
  m.links(s.latency, s.rate);
  std::vector<int> forward;
  for (int k = 0; k < s.layers; ++k) {
    const std::string name = "f" + std::to_string(k);
    forward.push_back(
        m.op(name, {s.forward},
             k > 0 ? std::vector<int>{forward.back()} : std::vector<int>{},
             s.bytes));
  }
  int last = forward.back();
  for (int k = s.layers - 1; k >= 0; --k) {
    std::vector<int> inputs = {last};
    if (forward[k] != last) inputs.push_back(forward[k]);
    last = m.op("b" + std::to_string(k), {s.backward}, inputs, s.bytes);
  }
  PlanProblem p = m.make();
  for (int k = 0; k < s.layers; ++k) p.backward[s.layers + k] = 1;
  p.pipeline.micro_batches = s.micro_batches;
  return p;
}

// Layers in equal runs on devices in turn.
PlacePlan staged(const PlanProblem& p, int layers, int stages, int devices,
                 PipelineOrder order) {
  PlacePlan plan;
  plan.order = order;
  for (int i = 0; i < p.num_ops(); ++i) {
    const int layer = i < layers ? i : 2 * layers - 1 - i;
    const int s = layer * stages / layers;
    plan.device.push_back(s % devices);
    plan.stage.push_back({s, i >= layers});
  }
  plan.sequence = order_of_ops(p);
  return plan;
}

TEST(Pipeline, GPipeAndOneForwardOneBackwardTakeTheTimesOfTheirPapers) {
  // (M + S - 1) (f + b), Huang et al. 2019.
  for (const int stages : {1, 2, 4}) {
    for (const int m : {1, 3, 8, 16}) {
      const PlanProblem p = training_chain({.layers = 4, .micro_batches = m});
      for (const auto order : {PipelineOrder::kGPipe, PipelineOrder::k1F1B}) {
        const Evaluation e = evaluate(p, staged(p, 4, stages, stages, order));
        EXPECT_DOUBLE_EQ(e.value, (m + stages - 1) * 5.0 * 4 / stages)
            << stages << " stages, " << m;
        EXPECT_TRUE(e.violations.empty());
      }
    }
  }
}

TEST(Pipeline, InterleavedStagesMakeTheBubbleSmaller) {
  // (M + (S - 1) / v) (f + b), Narayanan et al. 2021; f and b of a device.
  for (const int v : {2, 4}) {
    for (const int m : {4, 8, 16}) {
      const PlanProblem p = training_chain({.layers = 16, .micro_batches = m});
      const Evaluation e =
          evaluate(p, staged(p, 16, 4 * v, 4, PipelineOrder::kInterleaved));
      EXPECT_DOUBLE_EQ(e.value, (m + 3.0 / v) * 5 * 4) << v << ", " << m;
    }
  }
}

TEST(Pipeline, KeepsAsManyMicroBatchesAsItsOrderSays) {
  const PlanProblem p = training_chain({.bytes = 10});
  const Evaluation g = evaluate(p, staged(p, 4, 4, 4, PipelineOrder::kGPipe));
  const Evaluation f = evaluate(p, staged(p, 4, 4, 4, PipelineOrder::k1F1B));
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(g.stages[s].in_flight, 8);
    EXPECT_EQ(f.stages[s].in_flight, 4 - s);
  }
  EXPECT_GT(g.devices[0].bytes, f.devices[0].bytes);
  EXPECT_GE(g.devices[0].bytes, 80);
}

TEST(Pipeline, RefusesInterleavedStagesThatWaitForEachOther) {
  PlanProblem p = training_chain({.layers = 8, .micro_batches = 6});
  const Evaluation e =
      evaluate(p, staged(p, 8, 8, 4, PipelineOrder::kInterleaved));
  if (e.violations.empty()) {
    EXPECT_TRUE(std::isfinite(e.value));
    return;
  }
  EXPECT_NE(e.violations[0].find("multiple"), std::string::npos);
}

TEST(Pipeline, RefusesStagesThatReadWhatComesLater) {
  const PlanProblem p = training_chain({});
  PlacePlan plan = staged(p, 4, 4, 4, PipelineOrder::k1F1B);
  std::swap(plan.stage[0], plan.stage[2]);
  const Evaluation e = evaluate(p, plan);
  ASSERT_FALSE(e.violations.empty());
  EXPECT_NE(e.violations[0].find("comes later"), std::string::npos);
}

// Micro-batches as ops of one graph, by hand: ops of micro-batch m are m times
// as many further on, and the order is that of the tasks.
TEST(Pipeline, IsTheStepOfAllItsMicroBatchesByTheSimulator) {
  std::mt19937 r(1);
  for (int trial = 0; trial < 60; ++trial) {
    const int layers = 2 + static_cast<int>(r() % 6);
    const int devices = 1 + static_cast<int>(r() % 3);
    const int m = 1 + static_cast<int>(r() % 5);
    PlanProblem p = training_chain({.layers = layers,
                                    .devices = devices,
                                    .micro_batches = m,
                                    .bytes = static_cast<int64_t>(r() % 9),
                                    .latency = 0.5,
                                    .rate = 2});
    for (OpTime& t : p.costs.times) t.us = 1 + static_cast<double>(r() % 7);
    const int stages = std::min(devices, layers);
    const PlacePlan plan =
        staged(p, layers, stages, devices,
               r() % 2 ? PipelineOrder::kGPipe : PipelineOrder::k1F1B);
    const Evaluation e = evaluate(p, plan);
    ASSERT_TRUE(e.violations.empty());
    testing::ProblemMaker maker(PlanModel::kStep);
    const int gpu = maker.device_class("GPU");
    for (int d = 0; d < devices; ++d) {
      maker.device("GPU:" + std::to_string(d), gpu);
    }
    maker.links(0.5, 2);
    PlacePlan step;
    const int n = p.num_ops();
    for (int k = 0; k < m; ++k) {
      for (int i = 0; i < n; ++i) {
        std::vector<int> inputs;
        for (const int32_t v : p.graph.reads[i]) inputs.push_back(k * n + v);
        maker.op(std::to_string(k) + p.names[i], {p.costs.times[i].us}, inputs,
                 p.costs.bytes.item(i));
        step.device.push_back(plan.device[i]);
      }
    }
    // Tasks by their starts: the order that each device and engine sees.
    std::vector<TaskTime> tasks = e.tasks;
    for (const TaskTime& t : tasks) {
      for (int i = 0; i < n; ++i) {
        if (plan.stage[i] == OpStage{t.stage, t.backward}) {
          step.sequence.push_back(t.micro_batch * n + i);
        }
      }
    }
    const PlanProblem all = maker.make();
    EXPECT_DOUBLE_EQ(evaluate(all, step).value, e.value) << trial;
  }
}

PlanAnswer planned(const PlanProblem& p) {
  return plan_placement(p, {.moves = 20000, .seed = 1, .threads = 2});
}

TEST(Pipeline, FindsInterleavedStagesForAChain) {
  // On four equal devices, chunks of one layer each: 3 / 4 of a bubble.
  const PlanProblem p = training_chain({.layers = 16});
  const PlanAnswer a = planned(p);
  ASSERT_EQ(a.status, PlanStatus::kPlanned);
  EXPECT_LE(a.value, (8 + 3.0 / 4) * 20 + 1e-9);
  EXPECT_GE(a.value, a.bound.value);
  EXPECT_NEAR(a.bound.value, 8 * 20, 1e-3);
}

// The least value of all devices and stages of layers, as numbers of as many
// digits as there are layers.
double best_of_all(const PlanProblem& p, int layers) {
  const int devices = p.num_devices(), choices = layers * devices;
  double best = kInfinity;
  for (int k = 0; k < std::pow(choices, layers); ++k) {
    PlacePlan plan = staged(p, layers, 1, 1, PipelineOrder::k1F1B);
    for (int i = 0, digits = k; i < layers; ++i, digits /= choices) {
      const int d = digits % choices / layers, s = digits % choices % layers;
      plan.device[i] = plan.device[2 * layers - 1 - i] = d;
      plan.stage[i] = {s, false};
      plan.stage[2 * layers - 1 - i] = {s, true};
    }
    for (const auto order : {PipelineOrder::kGPipe, PipelineOrder::k1F1B}) {
      plan.order = order;
      const Evaluation e = evaluate(p, plan);
      if (e.violations.empty()) best = std::min(best, e.value);
    }
  }
  return best;
}

TEST(Pipeline, FindsTheBestPlanOfAFewLayers) {
  std::mt19937 r(1);
  for (int trial = 0; trial < 20; ++trial) {
    SCOPED_TRACE(trial);
    const int m = 1 + static_cast<int>(r() % 4);
    PlanProblem p = training_chain({.layers = 3,
                                    .devices = 2,
                                    .micro_batches = m,
                                    .bytes = static_cast<int64_t>(r() % 9),
                                    .limit = trial % 3 ? 0 : 80,
                                    .latency = 0.5,
                                    .rate = 2});
    for (OpTime& t : p.costs.times) t.us = 1 + static_cast<double>(r() % 7);
    for (int k = 0; k < 3; ++k) p.group[5 - k] = p.group[k];
    p.num_groups = 3;
    const PlanAnswer a = planned(p);
    const double best = best_of_all(p, 3);
    EXPECT_EQ(a.status == PlanStatus::kPlanned, std::isfinite(best));
    if (a.status != PlanStatus::kPlanned) continue;
    EXPECT_NEAR(a.value, best, 1e-9);
    EXPECT_LE(a.bound.value, best);
  }
}

TEST(Pipeline, PlansMicroBatchesThatAreNoMultipleOfTheDevices) {
  const PlanAnswer a = planned(training_chain({.micro_batches = 7}));
  EXPECT_LE(a.value, 10 * 5.0);
}

TEST(Pipeline, PlansAForwardPass) {
  PlanProblem p = training_chain({.layers = 4});
  p.backward.assign(p.backward.size(), 0);
  // Eight ops, none of them a gradient: 2 + 2 + 3 + 3 of 20 in a row.
  const PlanAnswer a = planned(p);
  EXPECT_LE(a.value, (8 + 3) * 6.0);
  EXPECT_GE(a.value, 8 * 5.0);
}

TEST(Pipeline, FindsTheOrderThatIsAskedFor) {
  PlanProblem p = training_chain({});
  for (const auto order : {PipelineOrder::kGPipe, PipelineOrder::k1F1B}) {
    p.pipeline.order = order;
    const PlanAnswer a = planned(p);
    EXPECT_EQ(a.plan.order, order);
    EXPECT_DOUBLE_EQ(a.value, 11 * 5.0);
  }
}

TEST(Pipeline, KeepsMemoryLimits) {
  // All micro-batches do not fit on a device; GPipe keeps them all.
  PlanProblem p = training_chain({.layers = 8, .bytes = 10, .limit = 110});
  const PlanAnswer a = planned(p);
  ASSERT_EQ(a.status, PlanStatus::kPlanned);
  EXPECT_TRUE(a.evaluation.violations.empty());
  for (const DeviceUse& d : a.evaluation.devices) EXPECT_LE(d.bytes, 110);
}

TEST(Pipeline, PricesOneDeviceAloneAsItsSimulationDoes) {
  // Four layers of 5 each, eight micro-batches: none waits for another.
  for (const int64_t limit : {0, 1000}) {
    const PlanProblem p = training_chain({.layers = 4, .limit = limit});
    const PlacePlan one{std::vector<int32_t>(p.names.size(), 0),
                        order_of_ops(p)};
    EXPECT_DOUBLE_EQ(evaluate(p, one).value, 160);
    const PlanAnswer a = planned(p);
    ASSERT_EQ(a.candidates.size(), 1u);
    EXPECT_DOUBLE_EQ(a.candidates[0].value, 160);
  }
}

TEST(Pipeline, TakesOneDeviceWhenNothingIsFaster) {
  // Copies take longer than everything else.
  const PlanProblem p = training_chain({.layers = 2,
                                        .micro_batches = 2,
                                        .bytes = 10,
                                        .limit = 1000,
                                        .latency = 1000});
  EXPECT_DOUBLE_EQ(planned(p).value, 20);
}

TEST(Pipeline, SumsGradientsAndUpdatesOnceAStep) {
  // f -> g -> update; the update takes 7 and waits for all micro-batches.
  testing::ProblemMaker m(PlanModel::kPipeline);
  m.device("GPU:0", m.device_class("GPU"));
  const int f = m.op("f", {2}, {}, 4), g = m.op("g", {3}, {f}, 10);
  m.op("update", {7}, {g}, 0);
  PlanProblem p = m.make();
  p.backward = {0, 1, 1};
  p.once = {0, 0, 1};
  p.pipeline.micro_batches = 5;
  PlacePlan plan{{0, 0, 0}, {0, 1, 2}, {{0, false}, {0, true}, {0, true}}};
  const Evaluation e = evaluate(p, plan);
  EXPECT_DOUBLE_EQ(e.value, 5 * 5 + 7);
  EXPECT_EQ(e.devices[0].gradients, 10);
  // The sum, a gradient and an activation.
  EXPECT_EQ(e.devices[0].bytes, 24);
}

TEST(Pipeline, GivesTheSamePlanOnAnyNumberOfThreads) {
  const PlanProblem p =
      training_chain({.layers = 12, .devices = 3, .bytes = 4, .latency = 1});
  const PlanAnswer a =
      plan_placement(p, {.moves = 5000, .seed = 3, .threads = 1});
  const PlanAnswer b =
      plan_placement(p, {.moves = 5000, .seed = 3, .threads = 3});
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.plan.device, b.plan.device);
  EXPECT_EQ(a.plan.stage, b.plan.stage);
}

}  // namespace
}  // namespace berth
