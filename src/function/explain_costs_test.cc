// Predictions of whole steps on simulated devices, whose clocks are exact.

#include "function/explain_costs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/sim/sim.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "exec/measure_testing.h"
#include "simulate/simulate.h"

namespace berth {
namespace {

std::vector<Device*> gpus() {
  std::vector<Device*> found;
  for (Device* d : DeviceManager::get().devices()) {
    if (d->clock_us() >= 0) found.push_back(d);
  }
  return found;
}

// Brings all clocks to the same time.
double wait_for_all() {
  double latest = 0;
  for (int k = 0; k < 2; ++k) {
    for (Device* d : gpus()) {
      synchronize(d->compute_stream().record());
      synchronize(d->copy_stream().record());
      const Tensor t = constant(1.0f);
      with_device(d->str(), [&] { identity(t).item<float>(); });
      latest = std::max(latest, d->clock_us());
    }
  }
  return latest;
}

TEST(CostsOf, TheSimulatorPredictsStepsOfSimulatedDevices) {
  Tensor w1, w2, x;
  with_device("/GPU:0", [&] {
    w1 = ones({64, 256});
    x = ones({32, 64});
  });
  with_device("/GPU:1", [&] { w2 = ones({256, 256}); });
  auto step = function(
      [](const Tensor& a, const Tensor& b, const Tensor& c) {
        Tensor h, y;
        with_device("/GPU:0", [&] { h = math::tanh(matmul(a, b)); });
        with_device("/GPU:1", [&] { y = math::tanh(matmul(h, c)); });
        with_device("/GPU:0", [&] { h = math::exp(h); });
        Tensor r;
        with_device("/GPU:1", [&] { r = y + h; });
        return r;
      },
      {.name = "step"});
  step(x, w1, w2);  // compiled
  const Graph placed = parse_graph(step.text("place"));
  const CostTable costs = costs_of(placed, false);
  const SimulatedGraph graph(placed);
  const Simulation s = simulate(graph, costs, plan_of(placed, costs));
  EXPECT_EQ(s.transfers.size(), 2u);
  EXPECT_EQ(s.sent_bytes, 2 * 4 * 32 * 256);
  wait_for_all();
  const double begin = wait_for_all();
  const Tensor r = step(x, w1, w2);
  for (Device* d : gpus()) synchronize(d->compute_stream().record());
  double end = 0;
  for (Device* d : gpus()) end = std::max(end, d->clock_us());
  EXPECT_NEAR(end - begin, s.step_us, 0.01 * s.step_us)
      << step.text("place") << step.text("plan");
}

TEST(CostsOf, MeasuresWhatHasNoKernelOfItsOwnByItsParts) {
  Tensor x = ones({8, 8});
  Tensor y;
  auto step = function(
      [](const Tensor& a) {
        const auto on = device("/CPU:0");
        return nn::softplus(a) + nn::softmax(a);
      },
      {.name = "composite"});
  with_device("/CPU:0", [&] { step(x); });
  const Graph placed = parse_graph(step.text("place"));
  const CostTable costs = costs_of(placed, true);
  const int32_t cpu = costs.find(DeviceManager::get().host().str());
  for (int32_t i = 0; i < placed.size(); ++i) {
    if (placed[i].op->kind() != OpKind::kCompute) continue;
    EXPECT_EQ(costs.time(i, cpu).origin, CostOrigin::kMeasured)
        << placed[i].op->name();
  }
}

}  // namespace
}  // namespace berth
