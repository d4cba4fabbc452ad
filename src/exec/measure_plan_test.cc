// Costs of plans by their regions. No test asks how long anything takes; the
// simulated clock is exact.

#include "exec/measure_plan.h"

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "exec/measure_costs.h"
#include "exec/measure_testing.h"
#include "function/graph_callable.h"
#include "graph/tracer.h"
#include "place/cost_store.h"
#include "program/program.h"

namespace berth {
namespace {

// Two layers and the update of their weights, on devices that are given.
struct Step {
  explicit Step(const char* first, const char* second, int64_t width = 64)
      : a(weights(first, width)), b(weights(second, width)) {
    const DispatchGuard outside(nullptr);
    Tracer tracer("step");
    const Tensor x = tracer.add_arg({Shape({32, width}), float32, "x"});
    tracer.start();
    Tensor loss;
    {
      GradientTape tape;
      Tensor h;
      {
        const auto on = device(first);
        h = math::tanh(linalg::matmul(x, a));
      }
      const auto on = device(second);
      loss = math::reduce_mean(math::square(linalg::matmul(h, b)));
      const Tensors grads = tape.gradient(loss, std::vector<Variable>{a, b});
      a.assign_sub(grads[0]);
      b.assign_sub(grads[1]);
    }
    Graph g = tracer.finish({{loss}});
    call = std::make_shared<GraphCallable>(std::move(g), FunctionOptions{});
    plan = call->prepare({Shape({32, width})}).plan;
  }
  static Variable weights(const char* where, int64_t width) {
    const auto on = device(where);
    return Variable(fill(Shape({width, width}), 0.01));
  }
  void run(int times) {
    const Tensor x = fill(
        a.shape()[0] == 64 ? Shape({32, 64}) : Shape({32, a.shape()[0]}), 1.0);
    const Tensor* in[] = {&x};
    for (int i = 0; i < times; ++i) {
      Tensor out;
      call->call(in, {&out, 1});
      out.item<float>();
    }
  }

  Variable a, b;
  std::shared_ptr<GraphCallable> call;
  std::shared_ptr<Plan> plan;
};

// The steps of a plan that kernels compute on core sets.
int count_regions(Plan& plan) {
  int n = 0;
  for (const PlanStep& s : plan.program().steps) {
    n += s.kind == StepKind::kKernel &&
         plan.program().devices[s.device]->pool() != nullptr;
  }
  return n;
}

TEST(MeasurePlan, MeasuresEveryRegionAndTouchesNoVariable) {
  const Step s("/CPU:0", "/CPU:0");
  const std::vector<OpTime> times = measure_regions(*s.plan, 1);
  int measured = 0;
  for (const OpTime& t : times) {
    if (t.origin == CostOrigin::kNone) continue;
    ++measured;
    EXPECT_GT(t.us, 0);
    EXPECT_EQ(t.origin, CostOrigin::kMeasured);
  }
  EXPECT_GT(measured, 0);
  EXPECT_EQ(measured, count_regions(*s.plan));
  for (const float w : s.a.value().to_vector<float>()) ASSERT_EQ(w, 0.01f);
}

TEST(MeasurePlan, ARegionStandsAtItsLastOp) {
  const Step s("/CPU:0", "/CPU:0");
  const PlanCosts c = costs_of_plan(*s.plan, true, 1);
  const Program& p = s.plan->program();
  const int32_t cpu = c.costs.find(DeviceManager::get().host().str());
  double in_order = 0;
  for (const PlanStep& step : p.steps) {
    if (step.kind != StepKind::kKernel) continue;
    int with_time = 0;
    for (int k = step.first_op; k < step.first_op + step.num_ops; ++k) {
      const double us = c.costs.time(p.ops[k].node, cpu).us;
      with_time += us > 0;
      in_order += us;
    }
    EXPECT_EQ(with_time, 1);
  }
  const PlanPrediction again = predict_plan(*s.plan, false);
  EXPECT_NEAR(again.simulation.step_us, in_order, 1e-6);
  EXPECT_GE(again.step_us, again.simulation.step_us);
}

TEST(MeasurePlan, EstimatesAreNotKnown) {
  const Step s("/CPU:0", "/CPU:0", 40), declared("/GPU:0", "/GPU:0");
  EXPECT_FALSE(costs_of_plan(*s.plan, false).known);
  EXPECT_TRUE(costs_of_plan(*s.plan, true, 1).known);
  EXPECT_TRUE(costs_of_plan(*s.plan, false).known) << "kept";
  EXPECT_TRUE(costs_of_plan(*declared.plan, true, 1).known);
}

TEST(MeasurePlan, WhatWasMeasuredIsKept) {
  const Step s("/CPU:0", "/CPU:0", 48);
  const PlanCosts first = costs_of_plan(*s.plan, true, 1);
  const PlanCosts second = costs_of_plan(*s.plan, true, 1);
  for (size_t i = 0; i < first.costs.times.size(); ++i) {
    ASSERT_EQ(first.costs.times[i].us, second.costs.times[i].us);
  }
}

TEST(MeasurePlan, KeysTellRegionsApart) {
  const Step s("/CPU:0", "/CPU:0"), same("/CPU:0", "/CPU:0"),
      wider("/CPU:0", "/CPU:0", 96);
  const Machine m = kept_costs(s.plan->graph());
  ASSERT_EQ(s.plan->program().steps.size(), same.plan->program().steps.size());
  for (size_t i = 0; i < s.plan->program().steps.size(); ++i) {
    const int at = static_cast<int>(i);
    const std::string key = region_key(*s.plan, at, m);
    EXPECT_EQ(key, region_key(*same.plan, at, m));
    if (key.empty() || i >= wider.plan->program().steps.size()) continue;
    EXPECT_NE(key, region_key(*wider.plan, at, m));
  }
}

// But for what is measured on the host, around the steps.
TEST(PredictPlan, IsTheSimulatedClock) {
  Step s("/GPU:0", "/GPU:0");
  const PlanPrediction p = predict_plan(*s.plan, true, 1);
  s.run(4);
  const placement::Report report = s.call->placement();
  ASSERT_GT(report.measured_step_us, 0);
  EXPECT_NEAR(p.simulation.step_us / report.measured_step_us, 1, 1e-6);
}

TEST(PredictPlan, SeesTransfersBetweenSimulatedDevices) {
  Step s("/GPU:0", "/GPU:1");
  const PlanPrediction p = predict_plan(*s.plan, true, 1);
  EXPECT_GT(p.simulation.transfers.size(), 1u);
  s.run(4);
  const double measured = s.call->placement().measured_step_us;
  ASSERT_GT(measured, 0);
  EXPECT_NEAR(p.simulation.step_us / measured, 1, 1e-6);
}

void predict_two_core_sets() {
  using fresh_process::check;
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.workers = 1, .shared = true}, {.workers = 1, .shared = true}});
  const Step s("/CPU:0", "/CPU:1");
  const PlanPrediction p = predict_plan(*s.plan, true, 1);
  const CostTable& costs = p.costs.costs;
  check(costs.buses.size() == 1, "one memory");
  check(costs.buses[0].bytes_per_us > 0, "that gives something");
  const int32_t a = costs.find(DeviceManager::get().host().str());
  check(a >= 0 && costs.devices[a].bus == 0, "CPU:0 is on it");
  check(p.simulation.busy_us[a] > 0, "CPU:0 works");
  check(p.step_us > p.simulation.busy_us[a], "CPU:1 works, too");
}

TEST(PredictPlan, CoreSetsShareABus) {
  IN_A_FRESH_PROCESS(predict_two_core_sets());
}

}  // namespace
}  // namespace berth
