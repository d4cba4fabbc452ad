#include "place/placer.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "op/device_scope.h"
#include "op/kernel.h"

namespace berth {

std::string short_device(const std::string& full_name) {
  const DeviceName n = DeviceName::parse(full_name);
  std::string s = n.type.value_or("?") + ":" + std::to_string(n.id.value_or(0));
  if (n.job.value_or("localhost") == "localhost" && n.task.value_or(0) == 0) {
    return s;
  }
  return fmt::format("{}:{}/{}", n.job.value_or("localhost"),
                     n.task.value_or(0), s);
}

namespace {

DType node_dtype(const Graph& graph, const Node& node) {
  for (const ValueRef& v : node.inputs) {
    const OutSpec& s = graph.spec(v);
    if (s.dtype != resource) return s.dtype;
  }
  if (!node.outputs.empty()) return node.outputs[0].dtype;
  return node.inputs.empty() ? float32 : graph.spec(node.inputs[0]).variable;
}

}  // namespace

PlacerState::PlacerState(Graph& g, const PlaceOptions& options)
    : graph(g), arg_op(op_named("_Arg")) {
  if (options.devices.empty()) {
    throw errors::InvalidArgument(
        "place: the list of devices is empty; expected at least one");
  }
  const DeviceName local = DeviceName::parse("/job:localhost/replica:0/task:0");
  bool have_host = false;
  for (const PlaceDevice& d : options.devices) {
    DeviceName name = DeviceName::parse(d.name).merged_over(local);
    if (name.type && !name.id) name.id = 0;
    if (!name.is_complete()) {
      throw errors::InvalidArgument(fmt::format(
          "place: device \"{}\" has no type; expected a full name like "
          "\"/job:localhost/replica:0/task:0/device:GPU:0\"",
          d.name));
    }
    std::string full = name.str();
    if (find(full) >= 0) {
      throw errors::InvalidArgument(
          fmt::format("place: device \"{}\" is listed twice", full));
    }
    if (!have_host && *name.type == "CPU") {
      have_host = true;
      host = static_cast<int32_t>(devices.size());
    }
    devices.push_back({std::move(name), std::move(full), &d});
  }
  device_of.assign(graph.nodes.size(), -1);
  placement.reasons.resize(graph.nodes.size());
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph[i].follows >= graph.size()) {
      throw errors::InvalidArgument(fmt::format(
          "place: {} is colocated with node {}, but there are only {}",
          describe(i), graph[i].follows, graph.size()));
    }
  }
}

bool PlacerState::can_run(int32_t node, int32_t device) const {
  const Node& n = graph[node];
  const PlaceDevice& d = *devices[device].given;
  if (d.runs) {
    return n.op->kind() != OpKind::kCompute ||
           d.runs(*n.op, node_dtype(graph, n));
  }
  return !d.kernels || berth::can_run(*d.kernels, *n.op, node_dtype(graph, n));
}

const std::vector<int32_t>& PlacerState::matches(const std::string& request,
                                                 int32_t node) {
  const auto [it, fresh] = matches_.try_emplace(request);
  if (fresh) {
    DeviceName name;
    try {
      name = DeviceName::parse(request);
    } catch (const errors::InvalidArgument& e) {
      throw errors::InvalidArgument(
          fmt::format("{}: {}", describe(node), e.what()));
    }
    for (size_t d = 0; d < devices.size(); ++d) {
      if (name.matches(devices[d].name)) {
        it->second.push_back(static_cast<int32_t>(d));
      }
    }
  }
  if (it->second.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "{} was asked to run on \"{}\", but no such device exists; expected "
        "one of {}",
        describe(node), request, list_devices()));
  }
  return it->second;
}

int32_t PlacerState::find(const std::string& full_name) const {
  for (size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].full_name == full_name) return static_cast<int32_t>(d);
  }
  return -1;
}

void PlacerState::set(int32_t node, int32_t device, PlaceRule rule,
                      int32_t because) {
  device_of[node] = device;
  placement.reasons[node] = {rule, because};
}

bool PlacerState::try_set(int32_t node, int32_t device, PlaceRule rule,
                          int32_t because) {
  if (!can_run(node, device)) return false;
  set(node, device, rule, because);
  return true;
}

void PlacerState::obey_request(int32_t node) {
  const std::string& request = graph[node].requested;
  const std::vector<int32_t>& fit = matches(request, node);
  for (int32_t d : fit) {
    if (try_set(node, d, PlaceRule::kRequest, -1)) return;
  }
  fail_no_kernel(node, short_device(devices[fit[0]].full_name),
                 fmt::format("asked for by \"{}\"", request));
}

void PlacerState::use_default(int32_t node) {
  for (size_t d = 0; d < devices.size(); ++d) {
    if (try_set(node, static_cast<int32_t>(d), PlaceRule::kDefault, -1)) {
      return;
    }
  }
  fail_no_kernel(node, "any device", "nobody asked for one");
}

void PlacerState::note_colocation_ignored(int32_t node, int32_t with) {
  placement.notes.push_back(
      {"colocation-ignored", node,
       fmt::format("{} belongs to \"{}\" on {}, which has no kernel for it; "
                   "it runs on {}",
                   describe(node), graph[with].name,
                   short_device(devices[device_of[with]].full_name),
                   short_device(devices[device_of[node]].full_name))});
}

void PlacerState::fail_no_kernel(int32_t node, const std::string& on,
                                 const std::string& why) const {
  std::string have;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (can_run(node, static_cast<int32_t>(d))) {
      have += " " + short_device(devices[d].full_name);
    }
  }
  throw errors::Unimplemented(fmt::format(
      "{}: no kernel for {} on {} ({}); {}", describe(node),
      name_of(node_dtype(graph, graph[node])), on, why,
      have.empty() ? "no device has one; listed are " + list_devices()
                   : "these devices have one:" + have));
}

void PlacerState::fail_cycle(const std::vector<int32_t>& chain) const {
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(chain.size(), 8); ++i) {
    names += fmt::format("\"{}\" -> ", graph[chain[i]].name);
  }
  throw errors::InvalidArgument(fmt::format(
      "{} follows itself through others: {}...; expected a chain "
      "that ends",
      describe(chain[0]), names));
}

std::string PlacerState::describe(int32_t node) const {
  const Node& n = graph[node];
  return fmt::format(
      "{} \"{}\"{}", n.op->name(), n.name,
      n.sources.empty() ? "" : where_text(nullptr, n.sources[0].site));
}

std::string PlacerState::list_devices() const {
  std::string s;
  for (const Candidate& d : devices) {
    if (!s.empty()) s += ", ";
    s += d.full_name;
  }
  return s;
}

}  // namespace berth
