// berth plan --parallel: how to divide a training step over devices.

#include <fmt/format.h>

#include <chrono>

#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/plan_input.h"
#include "distribute/automatic/choose_plan.h"
#include "distribute/automatic/read_step.h"
#include "simulate/simulate.h"

namespace berth::cli {

namespace {

constexpr size_t kMostDevices = 1024;

// As an AutoStrategy without a list: accelerators, else CPUs.
std::vector<std::string> devices_to_use(const Machine& machine) {
  std::vector<std::string> all, accelerators;
  for (const DeviceCost& d : machine.devices) {
    const auto& type = machine.classes[d.device_class].type;
    all.push_back(d.name);
    if (type != "CPU") accelerators.push_back(d.name);
  }
  if (!accelerators.empty()) all = std::move(accelerators);
  if (all.size() <= kMostDevices) return all;
  throw UsageError(fmt::format("--parallel: {} devices; expected at most {}",
                               all.size(), kMostDevices));
}

// What the step holds at its peak if the first device runs all of it.
double peak_on_one(const Graph& graph, CostTable costs) {
  costs.devices.resize(1);
  costs.links.resize(1);
  costs.host.clear();
  for (OpTime& t : costs.times) {
    if (t.us == kNoKernel) t.us = 0;
  }
  PlacePlan plan;
  plan.device.assign(graph.nodes.size(), 0);
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (takes_time(graph[i])) plan.sequence.push_back(i);
  }
  const Simulation s = simulate(SimulatedGraph(graph), costs, plan);
  return static_cast<double>(s.peak_bytes[0]);
}

}  // namespace

distribute::ParallelPlan parallel_plan(const PlanInputOptions& o) {
  const auto start = std::chrono::steady_clock::now();
  PricedGraph priced = read_priced_graph(o);
  distribute::GraphToRead step{priced.input->text.graph,
                               std::move(priced.costs)};
  static_cast<Machine&>(step.costs) =
      distribute::part_of(step.costs, devices_to_use(step.costs));
  try {
    step.peak_bytes = peak_on_one(step.graph, step.costs);
    distribute::ParallelPlan plan = distribute::best_plan(
        distribute::read_graph(step), {}, "berth plan --parallel");
    plan.search_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    return plan;
  } catch (const errors::InvalidArgument& e) {
    throw UsageError(fmt::format("{}: {}", o.file, e.what()));
  }
}

}  // namespace berth::cli
