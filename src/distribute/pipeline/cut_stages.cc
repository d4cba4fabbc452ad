// Stages that nobody named: the layers of a step are cut by what they cost, and
// variables follow their layers.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "distribute/pipeline/pipeline.h"
#include "distribute/pipeline/step_layers.h"
#include "exec/measure_costs.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

bool is_read(const Node& n) { return n.op->kind() == OpKind::kReadVariable; }

// The layers of one step that have nodes of their own, and what they cost.
class Layers {
 public:
  Layers(const Graph& graph, const std::vector<std::string>& paths)
      : graph_(graph), at_(StepLayers(paths).places(graph)) {
    std::vector<int32_t> number(paths.size(), -1);
    for (const StepLayers::Place& p : at_) {
      if (p.layer >= 0) number[p.layer] = 0;
    }
    for (size_t k = 0; k < paths.size(); ++k) {
      if (number[k] < 0) continue;
      number[k] = static_cast<int32_t>(names_.size());
      names_.push_back(paths[k]);
    }
    for (StepLayers::Place& p : at_) {
      if (p.layer >= 0) p.layer = number[p.layer];
    }
  }

  const std::vector<std::string>& names() const { return names_; }

  UnitCosts costs(const Machine& machine, const std::vector<int32_t>& devices,
                  int micro_batches) const {
    const CostTable table = estimate_costs(graph_, machine);
    const size_t n = names_.size();
    UnitCosts c{std::vector(devices.size(), std::vector<double>(n, 0)),
                std::vector<int64_t>(n, 0), std::vector<int64_t>(n, 0),
                std::vector<int64_t>(n, 0)};
    std::vector<int32_t> unit;
    for (const StepLayers::Place& p : at_) unit.push_back(p.layer);
    const std::vector<int32_t> of = number_of_variables(graph_, unit);
    // A variable, its gradient, and what a micro-batch adds to that.
    const int copies = !trains() ? 1 : micro_batches > 1 ? 3 : 2;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_[i];
      if (node.variable.defined() && of[i] >= 0) {
        const VariableState& v = variable_state(node.variable);
        c.kept_bytes[of[i]] +=
            static_cast<int64_t>(v.size_bytes()) * (v.trainable ? copies : 1);
      }
      if (node.variable.defined() || unit[i] < 0) continue;
      for (size_t d = 0; d < devices.size(); ++d) {
        const double us = table.time(i, devices[d]).us;
        if (us < kNoKernel) c.us[d][unit[i]] += us;
      }
    }
    const StepLayers::Values values =
        StepLayers(names_).values(graph_, at_, [&](int32_t i) {
          int64_t bytes = 0;
          for (const int64_t b : table.bytes[i]) bytes += b;
          return bytes;
        });
    for (size_t k = 0; k < n; ++k) {
      c.passing_bytes[k] = std::llround(values.kept[k] / micro_batches);
      c.sent_bytes[k] = std::llround(values.sent[k] / micro_batches);
    }
    return c;
  }

  bool trains() const {
    return std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                       [](const Node& n) { return n.follows >= 0; });
  }

 private:
  const Graph& graph_;
  std::vector<StepLayers::Place> at_;  // by node
  std::vector<std::string> names_;     // by layer
};

}  // namespace

int32_t variable_of(const Graph& graph, ValueRef v) {
  if (is_read(graph[v.node])) v = graph[v.node].inputs[0];
  return graph[v.node].variable.defined() ? v.node : -1;
}

std::vector<int32_t> number_of_variables(const Graph& graph,
                                         const std::vector<int32_t>& number) {
  std::vector<int32_t> of(graph.nodes.size(), -1);
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& n = graph[i];
    if (n.follows >= 0 || number[i] < 0 || is_read(n) || n.op->update()) {
      continue;
    }
    for (const ValueRef& v : n.inputs) {
      const int32_t at = variable_of(graph, v);
      if (at >= 0 && (of[at] < 0 || number[i] < of[at])) of[at] = number[i];
    }
  }
  for (const Node& n : graph.nodes) {
    if (!n.op->update()) continue;
    int32_t most = -1;
    for (const ValueRef& v : n.inputs) {
      const int32_t at = variable_of(graph, v);
      if (at >= 0) most = std::max(most, of[at]);
    }
    for (const ValueRef& v : n.inputs) {
      const int32_t at = variable_of(graph, v);
      if (at >= 0 && of[at] < 0) of[at] = most;
    }
  }
  return of;
}

std::vector<StageOn> Pipeline::stages_on(bool trains) const {
  const ScheduleShape s = shape(options_.micro_batches);
  const std::vector<int> held = in_flight(actions(options_.micro_batches));
  const Machine machine = this_machine();
  const double copies = options_.micro_batches * (trains ? 2.0 : 1.0);
  std::vector<StageOn> stages;
  for (int k = 0; k < s.stages; ++k) {
    const auto d = static_cast<size_t>(s.device_of(k));
    const int per_device = s.stages / s.devices;
    Device& device = DeviceManager::get().lookup(devices_[d].name());
    const int32_t to = machine.find(devices_[d].text());
    const auto before = static_cast<size_t>(s.device_of(std::max(k - 1, 0)));
    const int32_t from = machine.find(devices_[before].text());
    const LinkCost link = machine.link(from, to);
    const bool near = from == to;
    stages.push_back(
        {static_cast<int32_t>(d),
         static_cast<int64_t>(device.allocator().info().limit_bytes) /
             per_device,
         (held[d] + per_device - 1) / per_device,
         machine.devices[static_cast<size_t>(to)].copies == CopyRule::kOverlap,
         [link, near, copies](int64_t bytes) {
           return near ? 0 : copies * link.time_us(bytes);
         }});
  }
  return stages;
}

void Pipeline::cut_stages(const Graph& graph) {
  if (!is_open()) return;
  const std::lock_guard lock(mutex_);
  const bool said =
      std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
        return n.follows < 0 && n.op->kind() == OpKind::kCompute &&
               stage_of(n) >= 0;
      });
  if (said) return;  // by device scopes, or before
  const Layers layers(graph, order_);
  const std::vector<std::string>& names = layers.names();
  const std::vector<StageOn> stages = stages_on(layers.trains());
  if (names.size() < stages.size()) {
    throw errors::InvalidArgument(
        fmt::format("PipelineStrategy{}: {} stages for a model of {} layer{} "
                    "({}); expected "
                    "at least as many layers, or fewer devices",
                    where_text(nullptr, site_), stages.size(), names.size(),
                    names.size() == 1 ? "" : "s", fmt::join(names, ", ")));
  }
  const Machine machine = this_machine();
  std::vector<int32_t> numbers;
  for (const DeviceId d : devices_) numbers.push_back(machine.find(d.text()));
  const PipelineCut cut = balanced_cut(
      layers.costs(machine, numbers, options_.micro_batches), stages);
  for (size_t s = 0; s < stages.size(); ++s) {
    const size_t end = s + 1 < stages.size()
                           ? static_cast<size_t>(cut.begin[s + 1])
                           : names.size();
    for (auto u = static_cast<size_t>(cut.begin[s]); u < end; ++u) {
      stage_of_layer_[names[u]] = static_cast<int>(s);
    }
  }
}

std::vector<int> Pipeline::device_of_variables(
    const Graph& graph, const StagePlaces& places) const {
  std::vector<int32_t> stage(graph.nodes.size(), -1);
  for (int32_t i = 0; i < graph.size(); ++i) {
    const auto it = places.find(graph[i].name);
    if (it != places.end()) stage[i] = it->second.stage;
  }
  const std::vector<int32_t> of = number_of_variables(graph, stage);
  std::vector<int> devices;
  for (const int32_t s : of) {
    devices.push_back(shape(1).device_of(std::max(s, 0)));
  }
  return devices;
}

void Pipeline::move_variables(const Graph& graph, const StagePlaces& places,
                              const void* owner) const {
  const std::vector<int> of = device_of_variables(graph, places);
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Tensor& handle = graph[i].variable;
    if (!handle.defined()) continue;
    const VariableState& v = variable_state(handle);
    Device& host = DeviceManager::get().host();
    if (v.strategy != owner || v.asked || v.device != &host ||
        v.split_axis >= 0) {
      continue;
    }
    const auto at = static_cast<size_t>(of[i]);
    Device& device = DeviceManager::get().lookup(devices_[at].name());
    if (move_variable(handle, device, owner)) continue;
    throw errors::FailedPrecondition(fmt::format(
        "PipelineStrategy{}: variable \"{}\" was to move to {}, and a plan "
        "that was made before uses it; expected the first step to be the "
        "strategy's",
        where_text(nullptr, site_), v.name, device.short_name()));
  }
}

}  // namespace berth::distribute
