// Stages, their orders, and the results of searches from them: numbers worked
// out by hand, and rules that every plan keeps.

#include "planner/first_tries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "planner/all_plans_testing.h"
#include "planner/models.h"
#include "planner/problem_testing.h"

namespace berth {
namespace {

// A network of `layers` forward ops (10 us each), as many gradients (dx, 10
// us), weight gradients (dw, 10 us) and updates (1 us) on equal devices with
// copies of 1 us. In each layer the forward op, dx and update share a device.
struct Net {
  PlanProblem problem;
  std::vector<int> forward, dx, dw, update;  // per layer
};

Net make_net(int layers, int devices, PlanModel model = PlanModel::kStep) {
  testing::ProblemMaker m(model);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < devices; ++d) m.device("GPU:" + std::to_string(d), gpu);
  m.links(1, 1e9);
  Net net;
  for (int l = 0; l < layers; ++l) {
    const std::string at = std::to_string(l);
    net.forward.push_back(m.op(
        "f" + at, {10},
        l ? std::vector<int>{net.forward.back()} : std::vector<int>{}, 100));
  }
  int grad = net.forward.back();
  net.dx.resize(layers), net.dw.resize(layers), net.update.resize(layers);
  for (int l = layers - 1; l >= 0; --l) {
    const std::string at = std::to_string(l);
    std::vector<int> reads = {net.forward[l]};
    if (grad != net.forward[l]) reads.push_back(grad);
    net.dx[l] = grad = m.op("dx" + at, {10}, reads, 100);
    net.dw[l] = m.op("dw" + at, {10}, reads, 100);
    net.update[l] = m.op("u" + at, {1}, {net.dw[l]}, 0);
    m.together(net.forward[l], net.dx[l]);
    m.together(net.forward[l], net.update[l]);
  }
  net.problem = m.make();
  return net;
}

TEST(LayerKeys, PutGradientsBesideTheirLayers) {
  const Net net = make_net(8, 4);
  const StepUnits units(net.problem);
  const LayerKeys keys = layer_keys(units, LayerOrder::kFolded);
  for (int l = 0; l < 8; ++l) {
    EXPECT_EQ(keys.key[net.forward[l]], l);
    // Except for the first few, the start of the gradients is known.
    EXPECT_NEAR(keys.key[net.dx[l]], l, l < 6 ? 0 : 2) << l;
    EXPECT_NEAR(keys.key[net.dw[l]], l, l < 6 ? 0 : 2) << l;
    EXPECT_TRUE(keys.of_weight[net.dw[l]]);
    EXPECT_FALSE(keys.of_weight[net.forward[l]]);
    EXPECT_FALSE(keys.of_weight[net.update[l]]);
    if (l > 0) {
      EXPECT_FALSE(keys.of_weight[net.dx[l]]);
    }
  }
}

// Blocks of a forward op that reads the block before twice, once past the op:
// gradients read inputs of their op, sums of gradients read no forward value.
TEST(LayerKeys, FindTheForwardOpOfEveryGradient) {
  testing::ProblemMaker m(PlanModel::kStep);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < 2; ++d) m.device("GPU:" + std::to_string(d), gpu);
  m.links(1, 1e9);
  constexpr int kBlocks = 6;
  std::vector<int> op, add;
  for (int l = 0; l < kBlocks; ++l) {
    const std::vector<int> in =
        l ? std::vector<int>{add.back()} : std::vector<int>{};
    op.push_back(m.op("op" + std::to_string(l), {10}, in, 100));
    std::vector<int> both = in;
    both.push_back(op.back());
    add.push_back(m.op("add" + std::to_string(l), {1}, both, 100));
  }
  const int loss = m.op("loss", {1}, {add.back()}, 4);
  std::vector<int> of_add(kBlocks), of_op(kBlocks), weight(kBlocks);
  int grad = m.op("dloss", {1}, {loss, add.back()}, 100);
  for (int l = kBlocks - 1; l >= 0; --l) {
    const int in = l ? add[l - 1] : op[0];
    of_add[l] = m.op("dadd", {1}, {grad, in}, 100);
    of_op[l] = m.op("dop", {10}, {of_add[l], in}, 100);
    weight[l] = m.op("dw", {10}, {of_add[l], in}, 100);
    grad = m.op("sum", {1}, {of_add[l], of_op[l]}, 100);
  }
  const PlanProblem p = m.make();
  const StepUnits units(p);
  const LayerKeys keys = layer_keys(units, LayerOrder::kFolded);
  for (int l = 1; l + 1 < kBlocks; ++l) {
    EXPECT_EQ(keys.key[of_add[l]], add[l]) << l;
    EXPECT_EQ(keys.key[of_op[l]], op[l]) << l;
    EXPECT_EQ(keys.key[weight[l]], op[l]) << l;
    EXPECT_EQ(keys.key[of_op[l] + 2], add[l - 1]) << "sum " << l;
  }
}

TEST(FirstTries, VaryBordersOfStages) {
  const Net net = make_net(12, 4);
  const StepUnits units(net.problem);
  const FirstTries tries(units, true);
  StreamRandom random(1, 0);
  StageCut cut = tries.cut(0);
  const StageCut first = cut;
  ASSERT_EQ(cut.on.size(), 4u);
  std::set<std::vector<int32_t>> seen;
  for (int k = 0; k < 200; ++k) {
    tries.vary(cut, random);
    EXPECT_TRUE(std::is_sorted(cut.ends.begin(), cut.ends.end()));
    EXPECT_EQ(cut.ends.back(), first.ends.back());
    EXPECT_EQ(std::set(cut.on.begin(), cut.on.end()),
              std::set(first.on.begin(), first.on.end()));
    seen.insert(tries.devices(cut));
  }
  EXPECT_GT(seen.size(), 50u);
}

TEST(FirstTries, CutLayersIntoStagesOfEqualWork) {
  const Net net = make_net(8, 4);
  const StepUnits units(net.problem);
  const FirstTries tries(units, true);
  bool four = false, beside = false;
  for (int k = 0; k < tries.count(); ++k) {
    const std::vector<int32_t> device = tries.devices(tries.cut(k));
    if (tries.name(k) == "4 stages") {
      four = true;
      for (int l = 0; l < 8; ++l) {
        EXPECT_EQ(device[net.forward[l]], l / 2);
        EXPECT_EQ(device[net.dx[l]], l / 2);
        EXPECT_EQ(device[net.dw[l]], l / 2);
      }
    }
    if (tries.name(k) == "2 stages, weight gradients on other devices") {
      beside = true;
      for (int l = 0; l < 8; ++l) {
        EXPECT_EQ(device[net.update[l]], l / 4);
        EXPECT_EQ(device[net.dw[l]], 2 + l / 4);
      }
    }
  }
  EXPECT_TRUE(four);
  EXPECT_TRUE(beside);
}

TEST(FirstTries, ArePlansOfAnyProblem) {
  std::mt19937 r(3);
  int tried = 0;
  for (int k = 0; k < 90; ++k) {
    PlanProblem p = testing::random_step_problem(r, 12, 2 + k % 4, k % 2 == 0);
    const StepUnits units(p);
    if (std::count(units.allowed.begin(), units.allowed.end(), DeviceSet{0})) {
      continue;
    }
    const FirstTries tries(units, true);
    DeviceScheduler scheduler(units);
    for (int t = 0; t < tries.count(); ++t, ++tried) {
      PlacePlan plan{tries.devices(tries.cut(t)), {}};
      scheduler.run(tries.cut(t).order, plan);
      std::vector<std::string> wrong = evaluate(p, plan).violations;
      std::erase_if(wrong, [](const std::string& v) {
        return v.find("its limit is") != std::string::npos;
      });
      EXPECT_EQ(wrong, std::vector<std::string>()) << tries.name(t);
    }
  }
  EXPECT_GT(tried, 1000);
}

// On two devices whose ops are given: the long path first.
TEST(DeviceScheduler, TakesTheLongestPathFirst) {
  testing::ProblemMaker m(PlanModel::kStep);
  const int gpu = m.device_class("GPU");
  m.device("GPU:0", gpu), m.device("GPU:1", gpu);
  m.links(1, 1e9);
  const int idle = m.op("idle", {5}, {}, 0);
  const int first = m.op("first", {5}, {}, 8);
  const int behind = m.op("behind", {20}, {first}, 0);
  const PlanProblem p = m.make();
  const StepUnits units(p);
  DeviceScheduler scheduler(units);
  PlacePlan plan{{0, 0, 1}, {}};
  scheduler.run(DeviceScheduler::First::kPath, plan);
  EXPECT_EQ(plan.sequence, (std::vector<int32_t>{first, idle, behind}));
  EXPECT_NEAR(evaluate(p, plan).value, 26, 1e-6);  // 5, the copy 1, 20
  scheduler.run(DeviceScheduler::First::kProgram, plan);
  EXPECT_EQ(plan.sequence, (std::vector<int32_t>{idle, first, behind}));
  EXPECT_NEAR(evaluate(p, plan).value, 31, 1e-6);
}

TEST(Planner, SaysWithWhatItBeganAndIsNoWorse) {
  for (const PlanModel model : {PlanModel::kStep, PlanModel::kLoad}) {
    const Net net = make_net(30, 4, model);
    const PlanAnswer a =
        plan_placement(net.problem, {.moves = 20000, .threads = 1});
    ASSERT_EQ(a.status, PlanStatus::kPlanned);
    EXPECT_NE(a.start.name, "");
    EXPECT_LE(a.value, a.start.value);
    EXPECT_NEAR(a.improved(), 1 - a.value / a.start.value, 1e-12);
    const StepUnits units(net.problem);
    const FirstTries tries(units, true);
    DeviceScheduler scheduler(units);
    for (int t = 0; t < tries.count(); ++t) {
      PlacePlan plan{tries.devices(tries.cut(t)), {}};
      scheduler.run(tries.cut(t).order, plan);
      EXPECT_LE(a.start.value, evaluate(net.problem, plan).value + 1e-9)
          << tries.name(t);
    }
  }
}

}  // namespace
}  // namespace berth
