#include "function/trial_compile.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "device/device_manager.h"
#include "exec/measure_plan.h"
#include "exec/region_times.h"
#include "exec/report.h"
#include "function/compile.h"
#include "function/state_homes.h"
#include "graph/body.h"
#include "op/dispatcher.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

// A compiled node names as its sources the nodes that went into it.
std::string tag_of(int32_t node) { return "#" + std::to_string(node); }

// The node of a tag; -1: not a tag.
int32_t node_of(const std::string& tag) {
  int32_t node = -1;
  if (!tag.starts_with('#')) return node;
  std::from_chars(tag.data() + 1, tag.data() + tag.size(), node);
  return node;
}

Graph tagged(const Graph& graph, const std::vector<DeviceId>& device) {
  Graph g = graph;
  HandleMap own;  // instead of variables
  for (int32_t i = 0; i < g.size(); ++i) {
    Node& n = g[i];
    n.sources = {{tag_of(i), {}}};
    n.requested.clear();
    n.assigned = device[static_cast<size_t>(i)];
    if (!n.variable.defined()) continue;
    const VariableState& v = variable_state(n.variable);
    Device& on = DeviceManager::get().lookup(n.assigned.name());
    Tensor& mine = own[n.variable.impl()];
    mine = make_unbacked_variable(on, v.name, v.dtype, v.shape);
  }
  replace_handles(g, own);
  return g;
}

}  // namespace

CompiledTrial::CompiledTrial(const Graph& graph,
                             const std::vector<DeviceId>& device,
                             const PlaceOptions& places,
                             const TrialOptions& options)
    : options_(options), num_nodes_(graph.size()) {
  const DispatchGuard outside(nullptr);
  Graph g = tagged(graph, device);
  placed_ = place_all(g, places, options.optimize, true);
  PlanOptions how;
  how.slices = options.slices;
  how.in_order = options.in_order;
  plan_ = Plan::build(std::move(g), how);
}

double CompiledTrial::predicted_us() {
  return predict_plan(*plan_, options_.may_measure).step_us;
}

int64_t CompiledTrial::peak_bytes(const std::string& device) const {
  const StepWork work = work_of(*plan_, placed_);
  for (const placement::DeviceRow& row : work.report.devices) {
    if (row.device == device) return row.peak_bytes;
  }
  return 0;
}

// The nodes that went into the compiled ones, each once, in run order.
std::vector<int32_t> CompiledTrial::nodes_of(
    const std::vector<int32_t>& compiled) const {
  std::vector<int32_t> nodes;
  for (const int32_t c : compiled) {
    std::vector<int32_t> of;
    for (const NodeSource& s : plan_->graph()[c].sources) {
      const int32_t i = node_of(s.name);
      if (i < 0 || i >= num_nodes_) continue;
      if (std::find(nodes.begin(), nodes.end(), i) == nodes.end()) {
        of.push_back(i);
      }
    }
    std::sort(of.begin(), of.end());
    of.erase(std::unique(of.begin(), of.end()), of.end());
    nodes.insert(nodes.end(), of.begin(), of.end());
  }
  return nodes;
}

void CompiledTrial::put_times(int32_t device_class, CostTable& costs) {
  const size_t classes = costs.classes.size();
  const auto time_of = [&](int32_t node) -> OpTime& {
    return costs.times[static_cast<size_t>(node) * classes +
                       static_cast<size_t>(device_class)];
  };
  std::vector<OpTime> fresh(static_cast<size_t>(num_nodes_),
                            {0, 0, CostOrigin::kNone});
  for (const RegionTime& r : region_times(*plan_, options_.may_measure)) {
    const int32_t d = costs.find(r.device);
    if (d < 0 || costs.devices[d].device_class != device_class) {
      continue;
    }
    std::vector<int32_t> nodes = nodes_of(r.nodes);
    std::erase_if(nodes, [&](int32_t i) { return std::isinf(time_of(i).us); });
    double sum = 0;
    for (const int32_t i : nodes) sum += time_of(i).us;
    for (const int32_t i : nodes) {
      OpTime& t = fresh[static_cast<size_t>(i)];
      const double part = sum > 0 ? time_of(i).us / sum
                                  : 1.0 / static_cast<double>(nodes.size());
      t.us += r.time.us * part;
      t.spread = std::max(t.spread, r.time.spread);
      t.origin = t.origin == CostOrigin::kNone
                     ? r.time.origin
                     : std::min(t.origin, r.time.origin);
    }
  }
  for (int32_t i = 0; i < num_nodes_; ++i) {
    const OpTime& t = fresh[static_cast<size_t>(i)];
    if (t.origin != CostOrigin::kNone) time_of(i) = t;
  }
}

std::vector<int32_t> CompiledTrial::order() {
  std::vector<int32_t> compiled;
  for (const RegionTime& r : region_times(*plan_, false)) {
    compiled.insert(compiled.end(), r.nodes.begin(), r.nodes.end());
  }
  // A node takes the position of the last compiled node it went into.
  std::reverse(compiled.begin(), compiled.end());
  std::vector<int32_t> order = nodes_of(compiled);
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace berth
