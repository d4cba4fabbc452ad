#include "simulate/check_plan.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "berth/errors.h"
#include "place/device_set.h"
#include "simulate/step_model.h"

namespace berth {

namespace {

using Kind = SimulatedGraph::Kind;

[[noreturn]] void fail(const std::string& what) {
  throw errors::InvalidArgument("simulate: " + what);
}

std::string describe(const SimulatedGraph& graph,
                     std::span<const std::string> names, int32_t node) {
  if (!names.empty()) return fmt::format("\"{}\"", names[node]);
  if (!graph.graph) return fmt::format("op {}", node);
  const Node& n = (*graph.graph)[node];
  return fmt::format("{} \"{}\"", n.op->name(), n.name);
}

// Returns the positions of ops in the plan's sequence; -1: takes no time.
std::vector<int32_t> positions_of(const SimulatedGraph& graph,
                                  const PlacePlan& plan,
                                  std::span<const std::string> names) {
  const int32_t n = graph.num_nodes();
  std::vector<int32_t> position(graph.kind.size(), -1);
  const auto check = [&](bool good, int32_t node, const char* what) {
    if (!good) fail(describe(graph, names, node) + what);
  };
  for (size_t k = 0; k < plan.sequence.size(); ++k) {
    const int32_t i = plan.sequence[k];
    if (i < 0 || i >= n) {
      fail(fmt::format("the sequence has node {}; expected 0 to {}", i, n - 1));
    }
    check(graph.kind[i] == Kind::kOp, i,
          " stands in the sequence, and takes no time; expected ops that take "
          "time");
    check(position[i] < 0, i, " stands twice in the sequence; expected once");
    position[i] = static_cast<int32_t>(k);
  }
  for (int32_t i = 0; i < n; ++i) {
    check(graph.kind[i] != Kind::kOp || position[i] >= 0, i,
          " is missing in the sequence; expected every op once");
  }
  return position;
}

bool has_all_links(const Machine& m) {
  const size_t ends = m.host.empty() ? m.devices.size() : m.num_hosts;
  return (m.host.empty() || m.host.size() == m.devices.size()) &&
         (m.links.size() == 1 || m.links.size() == ends * ends);
}

}  // namespace

void check_costs(const SimulatedGraph& graph, const CostTable& costs) {
  const auto n = static_cast<size_t>(graph.num_nodes());
  const size_t devices = costs.devices.size();
  const size_t times = n * costs.classes.size();
  if (costs.times.size() != times ||
      costs.bytes.num_items() != static_cast<int32_t>(graph.producer.size()) ||
      !has_all_links(costs) ||
      (!costs.workspace.empty() && costs.workspace.size() != times) ||
      (!costs.bus_bytes.empty() && costs.bus_bytes.size() != n)) {
    fail("the costs are those of another graph or machine");
  }
  if (devices > kMaxPlaceDevices) {
    fail(fmt::format("{} devices; expected at most {}", devices,
                     kMaxPlaceDevices));
  }
  for (const DeviceCost& d : costs.devices) {
    if (d.device_class < 0 ||
        static_cast<size_t>(d.device_class) >= costs.classes.size()) {
      fail(fmt::format("{} is of class {}; expected 0 to {}", d.name,
                       d.device_class, costs.classes.size() - 1));
    }
    if (d.bus >= 0 && static_cast<size_t>(d.bus) >= costs.buses.size()) {
      fail(fmt::format("{} is on bus {}; expected 0 to {}, or -1", d.name,
                       d.bus, costs.buses.size() - 1));
    }
  }
}

void check_devices(const SimulatedGraph& graph, size_t num_devices,
                   const PlacePlan& plan, std::span<const std::string> names) {
  const auto n = static_cast<size_t>(graph.num_nodes());
  if (plan.device.size() != n) {
    fail(
        fmt::format("a plan of {} nodes for a graph of {}; expected one "
                    "device each",
                    plan.device.size(), n));
  }
  for (int32_t i = 0; i < graph.num_nodes(); ++i) {
    const int32_t d = plan.device[i];
    if (d >= 0 && static_cast<size_t>(d) < num_devices) continue;
    fail(fmt::format("{} is on device {}; expected 0 to {}",
                     describe(graph, names, i), d, num_devices - 1));
  }
}

void check_sequence(const SimulatedGraph& graph, size_t num_devices,
                    const PlacePlan& plan, std::span<const int32_t> order,
                    std::span<const std::string> names) {
  check_devices(graph, num_devices, plan, names);
  std::vector<int32_t> position = positions_of(graph, plan, names);
  for (const int32_t i : order) {
    int32_t last = -1;
    for_each_before(graph, i,
                    [&](int32_t b) { last = std::max(last, position[b]); });
    if (graph.kind[i] != Kind::kOp) {
      // An alias has the position of the last op that it waits for.
      position[i] = last;
    } else if (last > position[i]) {
      fail(
          fmt::format("{} stands in front of {}, which it needs; expected a "
                      "sequence in which inputs come first",
                      describe(graph, names, i),
                      describe(graph, names, plan.sequence[last])));
    }
  }
}

void check_kernels(const SimulatedGraph& graph, const CostTable& costs,
                   const PlacePlan& plan) {
  for (const int32_t i : plan.sequence) {
    const double us = costs.time(i, plan.device[i]).us;
    if (std::isfinite(us) && us >= 0) continue;
    fail(fmt::format("{} is on {}, which has no kernel for it",
                     describe(graph, {}, i),
                     costs.devices[static_cast<size_t>(plan.device[i])].name));
  }
}

}  // namespace berth
