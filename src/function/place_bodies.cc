#include "function/place_bodies.h"

#include <algorithm>

#include "berth/debugging.h"
#include "device/device_manager.h"
#include "function/lint_graph.h"
#include "graph/body.h"
#include "op/control_flow.h"
#include "op/kernel.h"
#include "passes/fuse.h"
#include "passes/lower.h"
#include "passes/merge_updates.h"
#include "place/schedule.h"

namespace berth {

namespace {

// True when the node's device has a kernel of its own for it.
bool has_kernel(const Node& n, const Graph& g) {
  const Device& d = DeviceManager::get().lookup(DeviceName::parse(n.assigned));
  std::vector<SpecView> in;
  for (const ValueRef& v : n.inputs) in.push_back(g.spec(v).view());
  return d.kernels().supports(*n.op, kernel_dtype(in, n.outputs));
}

// True when a device has a kernel of an op that only passes make.
bool has_kernel_of(const char* op, const std::string& device) {
  const Device& d = DeviceManager::get().lookup(DeviceName::parse(device));
  return d.kernels().supports(op_named(op), float32);
}
bool can_fuse(const std::string& device) {
  return has_kernel_of("_Fused", device);
}
bool can_merge(const std::string& device) {
  return has_kernel_of("_MultiApply", device);
}

// What holds for a graph and all bodies in it.
struct How {
  const PlaceOptions& devices;
  bool optimize;
  bool on_trial;
};

void lower_and_cut(Graph& graph, const How& how, PlacedGraph& placed);

// Gives every result bytes of its own on `device`, but for the first
// `num_vars` when they are the arguments of the same numbers.
void own_results(Graph& g, const std::string& device, size_t num_vars) {
  static const OpDef& copy = op_named("DeepCopy");
  std::vector<ValueRef> taken;
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    ValueRef& out = g.outputs[i];
    if (i < num_vars && out == ValueRef{g.args[i], 0}) continue;
    ValueRef root = out;
    bool whole = true;
    while (g[root.node].op->kind() == OpKind::kAlias) {
      whole = whole && g[root.node].op->name() != "_Rows";
      root = g[root.node].inputs[0];
    }
    const OpKind kind = g[root.node].op->kind();
    const bool own = whole && kind != OpKind::kPlaceholder &&
                     kind != OpKind::kReadVariable &&
                     g[out.node].assigned == device &&
                     std::find(taken.begin(), taken.end(), root) == taken.end();
    if (own) {
      taken.push_back(root);
      continue;
    }
    Node n;
    n.op = &copy;
    n.name = unique_name(g, "result");
    n.inputs = {out};
    n.outputs = {g.spec(out)};
    n.assigned = device;
    n.sources = g[out.node].sources;
    out = {g.add(std::move(n)), 0};
  }
}

Placement place_and_report(Graph& graph, const How& how) {
  const PlaceOptions& devices = how.devices;
  Placement placement = place(graph, devices);
  if (how.on_trial) return placement;
  report_fallbacks(graph, placement, devices.soft);
  report_notes(graph, placement, devices.soft);
  if (debugging::get_log_device_placement()) log_placement(graph);
  lint_graph(graph, devices);
  return placement;
}

void place_body(Graph& body, const std::string& device, size_t num_vars,
                const How& how, PlacedGraph& placed) {
  for (const int32_t a : body.args) body[a].requested = device;
  placed.placement = place_and_report(body, how);
  placed.graph = body;
  own_results(body, device, num_vars);
  lower_and_cut(body, how, placed);
}

void lower_and_cut(Graph& graph, const How& how, PlacedGraph& placed) {
  for (Node& n : graph.nodes) {
    rewrite_bodies(n, [&](const std::string& role, Graph& body) {
      size_t num_vars = 0;
      if (role == "body") {
        num_vars =
            static_cast<size_t>(n.op->attr<int64_t>(n.attrs.get(), "num_vars"));
      }
      PlacedGraph inner;
      inner.path =
          (placed.path.empty() ? "" : placed.path + "/") + n.name + "/" + role;
      place_body(body, n.assigned, num_vars, how, inner);
      placed.bodies.push_back(std::move(inner));
      return true;
    });
  }
  lower(graph, [&](const Node& n) { return has_kernel(n, graph); });
  if (how.optimize) {
    fuse(graph, &can_fuse);
    merge_updates(graph, &can_merge);
  }
  partition(graph);
}

}  // namespace

PlacedGraph place_all(Graph& graph, const PlaceOptions& devices, bool optimize,
                      bool on_trial) {
  const How how{devices, optimize, on_trial};
  PlacedGraph placed;
  placed.placement = place_and_report(graph, how);
  placed.graph = graph;
  lower_and_cut(graph, how, placed);
  return placed;
}

}  // namespace berth
