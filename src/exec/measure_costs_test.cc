// Measuring on a process with two CPU devices and two simulated GPUs. No test
// asks how long anything takes; the simulated clock is exact.

#include "exec/measure_costs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "exec/measure_machine.h"
#include "exec/measure_op.h"
#include "exec/measure_testing.h"
#include "graph/graph_text.h"
#include "graph/tracer.h"
#include "place/cost_store.h"
#include "tensor/variable_state.h"

namespace berth {
namespace {

using fresh_process::check;

Device& found(const char* name) {
  return DeviceManager::get().lookup(DeviceName::parse(name));
}

Graph parsed(const std::string& nodes) {
  return parse_graph(
      "berth-graph 1\n"
      "node x = _Arg() {index = 0, dtype = float32, shape = shape[8,16]} -> "
      "float32[8,16]\n"
      "node i = _Arg() {index = 1, dtype = int32, shape = shape[3]} -> "
      "int32[3]\n" +
      nodes);
}

std::optional<OpTime> measured(const std::string& nodes, const char* on,
                               double budget_ms = 1) {
  const Graph g = parsed(nodes);
  MeasureOptions options;
  options.op_budget_ms = budget_ms;
  return measure_op(g, g.size() - 1, found(on), options);
}

const char kTanh[] = "node y = Tanh(x:0) -> float32[8,16]\n";

TEST(MeasureOp, TheSimulatedClockIsTheDeclaredSpeed) {
  const RuntimeConfig& config = DeviceManager::get().config();
  const Graph g = parsed(
      "node y = MatMul(x:0, x:0) {transpose_b = true} -> "
      "float32[8,8]\n");
  const auto t = measure_op(g, g.size() - 1, found("/GPU:1"), {});
  ASSERT_TRUE(t);
  // 2 * 8 * 16 * 8 flops, 4 * (128 + 128 + 64) bytes, 5 us a launch.
  const double us = std::max(2048 / config.sim_flops_per_second,
                             1280 / config.sim_bytes_per_second) *
                    1e6;
  EXPECT_NEAR(t->us, 5 + us, 1e-6);
  EXPECT_EQ(t->origin, CostOrigin::kMeasured);
  EXPECT_EQ(t->spread, 0);
}

TEST(MeasureOp, MeasuresOnCpus) {
  const auto t = measured(kTanh, "/CPU:0");
  ASSERT_TRUE(t);
  EXPECT_GT(t->us, 0);
  EXPECT_TRUE(std::isfinite(t->us));
  EXPECT_GE(t->spread, 0);
}

TEST(MeasureOp, TakesIndicesThatEveryArrayHas) {
  EXPECT_TRUE(
      measured("node y = GatherV2(x:0, i:0) {axis = 0} -> "
               "float32[3,16]\n",
               "/CPU:0"));
  EXPECT_TRUE(measured("node y = FloorDiv(i:0, i:0) -> int32[3]\n", "/CPU:0"));
}

TEST(MeasureOp, NeverTouchesVariables) {
  const Variable v(constant(std::vector<float>{1, 2, 3}, {3}), {.name = "v"});
  Tracer tracer("step");
  tracer.start();
  v.assign_add(constant(std::vector<float>{1, 1, 1}, {3}));
  const Graph g = tracer.finish({});
  int writes_measured = 0;
  for (int32_t i = 0; i < g.size(); ++i) {
    if (g[i].op->has_variables()) {
      writes_measured += measure_op(g, i, found("/CPU:0"), {}).has_value();
    }
  }
  EXPECT_EQ(writes_measured, 1);
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{1, 2, 3}));
}

TEST(MeasureOp, RefusesWhatItCannotRun) {
  EXPECT_FALSE(
      measured("node y = Reshape(x:0) {shape = shape[16,8]} -> "
               "float32[16,8]\n",
               "/CPU:0"));
  const Graph unknown = parse_graph(
      "berth-graph 1\n"
      "node x = _Arg() {index = 0, dtype = float32, shape = shape[?]} -> "
      "float32[?]\n"
      "node y = Tanh(x:0) -> float32[?]\n");
  EXPECT_FALSE(measure_op(unknown, 1, found("/CPU:0"), {}));
  const Graph own = parse_graph(
      "berth-graph 1\n"
      "op Own () -> (y)\n"
      "node y = Own() -> float32[3]\n");
  EXPECT_FALSE(measure_op(own, 0, found("/CPU:0"), {}));
  const Graph huge = parse_graph(
      "berth-graph 1\n"
      "node x = _Arg() {index = 0, dtype = float32, shape = "
      "shape[1000000000]} -> float32[1000000000]\n"
      "node y = Tanh(x:0) -> float32[1000000000]\n");
  EXPECT_FALSE(measure_op(huge, 1, found("/CPU:0"), {}));
}

TEST(MeasureOp, AFailureLeavesTheDeviceAsItWas) {
  // Cholesky refuses what is not positive definite.
  const std::string bad =
      "node s = _Arg() {index = 2, dtype = float32, shape = shape[2,2]} -> "
      "float32[2,2]\n"
      "node y = Cholesky(s:0) -> float32[2,2]\n";
  for (const char* on : {"/CPU:0", "/GPU:0"}) {
    // Zeros are refused while it runs; then ones are tried.
    EXPECT_TRUE(measured("node y = FloorDiv(i:0, i:0) -> int32[3]\n", on));
    EXPECT_FALSE(measured(bad, on)) << on;
    EXPECT_TRUE(measured(kTanh, on)) << on;
  }
}

TEST(MeasureCopy, TakesTheDeclaredTimeOfALink) {
  const RuntimeConfig& config = DeviceManager::get().config();
  const auto t = measure_copy(found("/GPU:0"), found("/GPU:1"), 4096, 1);
  ASSERT_TRUE(t);
  EXPECT_NEAR(t->us, 5 + 4096e6 / config.sim_link_bytes_per_second, 1e-6);
}

TEST(FitLink, FindsLatencyAndBandwidth) {
  std::vector<std::pair<double, double>> samples;
  for (double b = 4096; b < 2e7; b *= 4) samples.emplace_back(b, 7 + b / 500);
  LinkCost l = fit_link(samples);
  EXPECT_NEAR(l.latency_us, 7, 1e-6);
  EXPECT_NEAR(l.bytes_per_us, 500, 1e-6);
  EXPECT_NEAR(l.spread, 0, 1e-6);
  EXPECT_EQ(l.origin, CostOrigin::kMeasured);
  // A line through small times that would begin below zero begins at zero.
  l = fit_link({{1000, 1}, {2000, 3}});
  EXPECT_EQ(l.latency_us, 0);
  EXPECT_GT(l.bytes_per_us, 0);
  EXPECT_GT(l.spread, 0);
  l = fit_link({{1000, 5}, {2000, 3}});  // the larger, the faster
  EXPECT_GT(l.bytes_per_us, 0);
  EXPECT_EQ(fit_link({}).origin, CostOrigin::kEstimated);
}

TEST(LargeEnough, GrowsUntilALaunchIsASmallPart) {
  std::vector<int64_t> seen;
  // A card: 5 us a launch, 100 a microsecond.
  const auto card = [&](int64_t n) {
    seen.push_back(n);
    return 5 + static_cast<double>(n) / 100;
  };
  const SizedTime t = measure_large_enough(1000, 4, 1 << 20, 100, card);
  EXPECT_EQ(seen, (std::vector<int64_t>{1000, 4000, 16000}));
  EXPECT_EQ(t.size, 16000);
  EXPECT_EQ(t.us, 165);
  // No further than it may, and never without a measurement.
  EXPECT_EQ(measure_large_enough(1000, 4, 5000, 100, card).size, 4000);
  EXPECT_EQ(measure_large_enough(1000, 4, 10, 100, card).size, 1000);
  // What cannot be measured leaves the one before.
  const auto small = [](int64_t n) { return n > 2000 ? -1.0 : 1.0; };
  EXPECT_EQ(measure_large_enough(1000, 2, 1 << 20, 100, small).size, 2000);
  EXPECT_LT(measure_large_enough(3000, 2, 1 << 20, 100, small).us, 0);
}

TEST(ThisMachine, KnowsItsDevices) {
  const Machine m = this_machine();
  const size_t n = DeviceManager::get().devices().size();
  ASSERT_EQ(m.devices.size(), n);
  ASSERT_EQ(m.links.size(), n * n);
  const int32_t cpu = m.find(found("/CPU:0").str());
  const int32_t gpu0 = m.find(found("/GPU:0").str());
  const int32_t gpu1 = m.find(found("/GPU:1").str());
  EXPECT_EQ(m.devices[cpu].copies, CopyRule::kReceiving);
  EXPECT_EQ(m.devices[gpu0].copies, CopyRule::kOverlap);
  EXPECT_EQ(m.devices[gpu0].device_class, m.devices[gpu1].device_class);
  EXPECT_NE(m.devices[gpu0].device_class, m.devices[cpu].device_class);
  EXPECT_EQ(m.class_of(gpu0).origin, CostOrigin::kDeclared);
  EXPECT_EQ(m.class_of(gpu0).flops_per_us,
            DeviceManager::get().config().sim_flops_per_second * 1e-6);
  EXPECT_EQ(m.link(cpu, gpu0).origin, CostOrigin::kDeclared);
  EXPECT_EQ(
      m.devices[gpu0].memory_limit,
      static_cast<int64_t>(DeviceManager::get().config().sim_memory_bytes));
}

Graph placed(const std::string& nodes, const char* on) {
  Graph g = parsed(nodes);
  for (Node& n : g.nodes) n.assigned = found(on).str();
  return g;
}

TEST(Costs, AreMeasuredOnceAndKept) {
  const Graph g = placed(
      "node y = Exp(x:0) -> float32[8,16]\n"
      "node z = Exp(y:0) -> float32[8,16]\n"
      "node w = Tanh(z:0) -> float32[8,16]\n",
      "/CPU:0");
  const int32_t cpu = this_machine().find(found("/CPU:0").str());
  CostTable t = kept_costs(g);
  EXPECT_EQ(t.time(2, cpu).origin, CostOrigin::kEstimated);
  int calls = 0;
  MeasureOptions options;
  options.op_budget_ms = 1;
  options.progress = [&](int, int, const std::string& what) {
    EXPECT_TRUE(what == "Exp" || what == "Tanh") << what;
    ++calls;
  };
  t = measured_costs(g, options);
  EXPECT_EQ(calls, 2);  // the same op on the same shapes is measured once
  for (const int32_t i : {2, 3, 4}) {
    EXPECT_EQ(t.time(i, cpu).origin, CostOrigin::kMeasured) << i;
  }
  EXPECT_EQ(t.time(2, cpu).us, t.time(3, cpu).us);
  EXPECT_EQ(t.time(0, cpu).us, 0);
  measured_costs(g, options);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(kept_costs(g).time(4, cpu).us, t.time(4, cpu).us);
}

TEST(Costs, OfSimulatedDevicesAreTheirDeclaredSpeeds) {
  const Graph g = placed("node y = Exp(x:0) -> float32[8,16]\n", "/GPU:0");
  MeasureOptions options;
  options.budget_s = 0;
  const CostTable t = measured_costs(g, options);
  const int32_t gpu = t.find(found("/GPU:0").str());
  const auto clock = measure_op(g, 2, found("/GPU:0"), {});
  ASSERT_TRUE(clock);
  EXPECT_NEAR(t.time(2, gpu).us, clock->us, 1e-6);
}

TEST(Costs, ABudgetOfNothingMeasuresNothing) {
  const Graph g = placed("node y = Log(x:0) -> float32[8,16]\n", "/CPU:0");
  MeasureOptions options;
  options.budget_s = 0;
  const CostTable t = measured_costs(g, options);
  EXPECT_EQ(t.time(2, t.find(found("/CPU:0").str())).origin,
            CostOrigin::kEstimated);
}

TEST(Costs, OfOpsWithoutAKernelAreInfinite) {
  Graph g = parse_graph(
      "berth-graph 1\n"
      "op Own () -> (y)\n"
      "node y = Own() -> float32[3]\n");
  g[0].assigned = found("/CPU:0").str();
  EXPECT_EQ(kept_costs(g).time(0, 0).us, kNoKernel);
}

TEST(Costs, ThreadsMayMeasureAtTheSameTime) {
  const Graph g = placed(
      "node y = Sqrt(x:0) -> float32[8,16]\n"
      "node z = MatMul(x:0, x:0) {transpose_b = true} -> "
      "float32[8,8]\n",
      "/CPU:0");
  MeasureOptions options;
  options.op_budget_ms = 1;
  std::vector<std::thread> threads;
  for (int k = 0; k < 3; ++k) {
    threads.emplace_back([&] { measured_costs(g, options); });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(kept_costs(g).time(2, 0).origin, CostOrigin::kMeasured);
}

void measure_two_cpus() {
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.workers = 1, .shared = true}, {.workers = 1, .shared = true}});
  MeasureOptions options;
  options.op_budget_ms = 1;
  const Machine m = measure_machine(true, options);
  const int32_t a = m.find(found("/CPU:0").str());
  const int32_t b = m.find(found("/CPU:1").str());
  // One runs on the calling thread, the other on one of its own.
  check(m.devices[a].device_class != m.devices[b].device_class, "two classes");
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    const LinkCost& l = m.link(from, to);
    // One memory: values are handed over.
    check(l.origin == CostOrigin::kDeclared, "a link is declared");
    check(l.latency_us + 1e6 / l.bytes_per_us < 1, "1 MB goes in under 1 us");
  }
  const Graph g = placed(kTanh, "/CPU:1");
  const CostTable t = measured_costs(g, options);
  check(t.time(2, a).origin == CostOrigin::kMeasured, "measured on CPU:0");
  check(t.time(2, b).origin == CostOrigin::kMeasured, "measured on CPU:1");
}

TEST(MeasureMachine, TellsCpusOnThreadsOfTheirOwnApart) {
  IN_A_FRESH_PROCESS(measure_two_cpus());
}

TEST(MeasureMachine, FindsRatesThatMakeSense) {
  MeasureOptions options;
  options.op_budget_ms = 2;
  int last = -1;
  options.progress = [&](int done, int of, const std::string&) {
    EXPECT_EQ(done, ++last);
    EXPECT_LT(done, of);
  };
  const Machine m = measure_machine(true, options);
  for (const DeviceClass& c : m.classes) {
    EXPECT_TRUE(std::isfinite(c.flops_per_us) && c.flops_per_us > 0) << c.name;
    EXPECT_TRUE(std::isfinite(c.bytes_per_us) && c.bytes_per_us > 0) << c.name;
    EXPECT_GE(c.launch_us, 0);
    EXPECT_NE(c.origin, CostOrigin::kEstimated);
  }
  EXPECT_EQ(this_machine().classes[0].flops_per_us, m.classes[0].flops_per_us);
}

}  // namespace
}  // namespace berth
