#include "distribute/automatic/read_step.h"

#include <algorithm>
#include <unordered_map>

#include "distribute/automatic/chain_reader.h"
#include "exec/measure_costs.h"
#include "exec/measure_plan.h"
#include "exec/report.h"
#include "function/graph_callable.h"
#include "function/graph_rewrite.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

// The whole step on one device; keeps the graph that is placed.
class AloneRewrite final : public GraphRewrite {
 public:
  explicit AloneRewrite(DeviceId device) : device_(device) {}
  void apply(Graph& graph) const override {
    for (Node& n : graph.nodes) {
      if (!n.op->graph_only()) n.requested = device_;
    }
    graph_ = graph;
  }
  const Graph& graph() const { return graph_; }

 private:
  const DeviceId device_;
  mutable Graph graph_;
};

Device& fastest_of(const StepToRead& step, const Machine& machine) {
  Device* best = step.devices[0];
  double most = 0;
  for (size_t d = 0; d < step.devices.size(); ++d) {
    const double rate = machine.class_of(static_cast<int32_t>(d)).flops_per_us;
    if (rate <= most) continue;
    most = rate;
    best = step.devices[d];
  }
  return *best;
}

Machine machine_of_step(const StepToRead& step) {
  std::vector<std::string> names;
  for (const Device* d : step.devices) names.push_back(d->str());
  Machine machine = part_of(this_machine(), names);
  for (DeviceCost& d : machine.devices) {
    if (step.memory_bytes > 0) d.memory_limit = step.memory_bytes;
  }
  return machine;
}

// Regions of the plan belong to the layer of their first op.
void add_times(const StepToRead& step, const Graph& graph,
               const std::vector<StepLayers::Place>& at, Plan& plan,
               ChainReader& reader) {
  std::unordered_map<std::string, StepLayers::Place> places;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (at[i].layer < 0) continue;
    for (const NodeSource& s : graph[i].sources) places[s.name] = at[i];
  }
  const PlanCosts costs = costs_of_plan(plan, true);
  const Graph& g = plan.graph();
  for (const int32_t i : costs.order.sequence) {
    if (g[i].sources.empty() || g[i].op->kind() == OpKind::kTransfer) {
      continue;
    }
    const auto it = places.find(g[i].sources[0].name);
    if (it == places.end()) continue;
    const int32_t home = costs.order.device[i];
    for (size_t d = 0; d < step.devices.size(); ++d) {
      const int32_t on = costs.costs.find(step.devices[d]->str());
      double us = on < 0 ? kNoKernel : costs.costs.time(i, on).us;
      if (us == kNoKernel) us = costs.costs.time(i, home).us;
      reader.add_time(it->second, d, us);
    }
  }
}

}  // namespace

Machine part_of(const Machine& all, const std::vector<std::string>& names) {
  Machine part = all;
  part.devices.clear();
  part.host.clear();
  std::vector<int32_t> numbers;
  for (const std::string& name : names) {
    numbers.push_back(all.find(name));
    const auto at = static_cast<size_t>(numbers.back());
    part.devices.push_back(all.devices[at]);
    if (!all.host.empty()) part.host.push_back(all.host[at]);
  }
  if (all.links.size() == 1 || !all.host.empty()) return part;
  part.links.clear();
  for (const int32_t from : numbers) {
    for (const int32_t to : numbers) part.links.push_back(all.link(from, to));
  }
  return part;
}

std::vector<std::pair<Tensor, Tensor>> replace_variables(Graph& graph,
                                                         Device& home) {
  std::vector<std::pair<Tensor, Tensor>> all;
  for (Node& n : graph.nodes) {
    if (!n.variable.defined()) continue;
    const VariableState& v = variable_state(n.variable);
    Tensor other = make_unbacked_variable(home, v.name, v.dtype, v.shape);
    variable_state(other).trainable = v.trainable;
    variable_state(other).site = v.site;
    all.emplace_back(n.variable, other);
    n.variable = std::move(other);
  }
  return all;
}

ModelChain read_step(const StepToRead& step) {
  int64_t batch = 1;
  for (const Shape& s : step.shapes) {
    if (s.rank() > 0) batch = s[0];
  }
  ChainReader reader(step.paths, machine_of_step(step), batch);
  Graph graph = step.graph;
  Device& home = fastest_of(step, reader.machine());
  replace_variables(graph, home);
  auto rewrite = std::make_shared<AloneRewrite>(home.id());
  GraphCallable call(graph, {.name = graph.name, .rewrite = rewrite});
  const GraphCallable::Prepared made = call.prepare(step.shapes);
  const Graph& placed = rewrite->graph();
  const auto at = reader.layers().places(placed);
  add_times(step, placed, at, *made.plan, reader);
  double peak = 0;
  for (const placement::DeviceRow& row :
       work_of(*made.plan, *made.placed).report.devices) {
    if (row.device == home.str()) peak = static_cast<double>(row.peak_bytes);
  }
  return reader.chain(placed, at, peak);
}

}  // namespace berth::distribute
