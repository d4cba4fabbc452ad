#include "distribute/run/replica_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/diagnostics.h"
#include "base/where.h"
#include "device/device_manager.h"
#include "device/memory_space.h"
#include "distribute/data_parallel/replica_placement.h"
#include "graph/body.h"
#include "tensor/mirrors.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

ReplicaPlaces::ReplicaPlaces(const SplitPlan& plan) : plan_(plan) {
  std::map<std::string, int> first;
  for (int r = 0; r < replicas(); ++r) {
    std::string memories;
    for (const DeviceId d : plan.replicas[static_cast<size_t>(r)]) {
      memories += memory_of(d) + " ";
    }
    const auto [it, fresh] = first.try_emplace(memories, r);
    first_of_.push_back(it->second);
    if (fresh) firsts_.push_back(r);
  }
}

namespace {

// Lint "strategy-scope-ignored": once per line.
void lint_request(const Node& node, DeviceId device) {
  const DeviceName& wanted = node.requested.name();
  if (wanted.matches(device.name())) return;
  const NodeSource source =
      node.sources.empty() ? NodeSource{node.name, {}} : node.sources[0];
  const std::string where = where_text(nullptr, source.site);
  report_once(
      fmt::format("{}\n{}", where, wanted.str()),
      {"strategy-scope-ignored", debugging::Severity::kLint,
       fmt::format("{}{} is asked for on {} inside run(), and is done on {} "
                   "all the same: each replica has one device of its own; for "
                   "replicas that span devices say .devices_per_replica = 2",
                   source.name, where, wanted.short_str(),
                   device.name().short_str()),
       source.site});
}

}  // namespace

// Returns the number, within replica 0, of the device of a variable of a
// strategy; -1 for variables that have no other copies.
int ReplicaPlaces::number_of_device(const Tensor& handle) const {
  const VariableState& v = variable_state(handle);
  if (v.strategy == nullptr || !plan_.central.empty()) return -1;
  const auto& home = plan_.replicas[0];
  const auto at = std::find(home.begin(), home.end(), v.device->id());
  return at == home.end() ? -1 : static_cast<int>(at - home.begin());
}

bool ReplicaPlaces::is_mirrored(const Tensor& handle) const {
  return number_of_device(handle) >= 0;
}

Tensor ReplicaPlaces::handle_for(const Tensor& handle, int replica) const {
  const VariableState& v = variable_state(handle);
  if (!v.parts.empty()) {
    return replica == 0 ? handle : v.parts[static_cast<size_t>(replica) - 1];
  }
  const int number = number_of_device(handle);
  if (number < 0) return handle;
  const auto& devices = plan_.replicas[static_cast<size_t>(replica)];
  const DeviceId there = devices[static_cast<size_t>(number)];
  return mirror_of(handle, DeviceManager::get().lookup(there.name()));
}

bool ReplicaPlaces::written_apart(const Graph& graph, const Node& node) const {
  const std::vector<Tensor> written = written_by(graph, node);
  const auto kind = [&](const Tensor& v) {
    return variable_state(v).parts.empty() ? int{is_mirrored(v)} : 2;
  };
  return node.op->kind() == OpKind::kControl &&
         std::any_of(written.begin(), written.end(), [&](const Tensor& v) {
           return kind(v) != kind(written[0]);
         });
}

int ReplicaPlaces::writer_of(const Tensor& handle) const {
  const std::string memory = memory_of(variable_state(handle).device->id());
  for (int r = 0; r < replicas(); ++r) {
    if (memory_of(device(r)) == memory) return r;
  }
  return 0;
}

DeviceId ReplicaPlaces::request_of(const Node& node, int replica) const {
  const auto& devices = plan_.replicas[static_cast<size_t>(replica)];
  const OpKind kind = node.op->kind();
  const bool reads_or_writes =
      std::any_of(node.op->inputs().begin(), node.op->inputs().end(),
                  [](const ArgDef& a) { return a.access != Access::kValue; });
  // Reads and writes run where the variable is, aliases where the input is.
  if (reads_or_writes || kind == OpKind::kReadVariable) return {};
  if (devices.size() > 1 && node.requested.empty() &&
      (node.follows >= 0 || kind == OpKind::kAlias)) {
    return {};
  }
  const DeviceId device = device_for(node.requested, devices, node);
  if (replica == 0 && devices.size() == 1) lint_request(node, device);
  return device;
}

Node ReplicaPlaces::in_replica(const Node& node, int replica) const {
  Node as = node;
  as.replica = replica;
  if (node.variable.defined()) as.variable = handle_for(node.variable, replica);
  if (!node.op->graph_only()) {
    as.requested = request_of(node, replica);
  }
  if (plan_.replicas[static_cast<size_t>(replica)].size() == 1) as.follows = -1;
  change_bodies(as, [&](Node& n) {
    if (n.variable.defined()) n.variable = handle_for(n.variable, replica);
    if (!n.requested.empty()) n.requested = request_of(n, replica);
    n.replica = replica;
  });
  return as;
}

}  // namespace berth::distribute
