#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "distribute/automatic/chain_reader.h"
#include "distribute/automatic/read_step.h"
#include "distribute/pipeline/pipeline.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

[[noreturn]] void not_a_step(const Graph& g, const std::string& why) {
  throw errors::InvalidArgument(fmt::format(
      "graph \"{}\" cannot be divided by layers: {}; expected the training "
      "step of a model, as its save_graph() writes it",
      g.name, why));
}

std::string scope_of(const std::string& name) {
  const size_t end = name.rfind('/');
  return end == name.npos ? "" : name.substr(0, end);
}

// The layers in whose calls ops were traced, in the order of their calls: a
// layer that has ops of its own begins before those that it calls.
std::vector<std::string> paths_of(const Graph& g) {
  std::vector<std::string> order;
  std::set<std::string> all, seen;
  const auto forward = [](const Node& n) {
    return n.follows < 0 && !n.op->graph_only();
  };
  for (const Node& n : g.nodes) {
    if (forward(n)) all.insert(scope_of(n.name));
  }
  for (const Node& n : g.nodes) {
    if (!forward(n)) continue;
    std::vector<std::string> outer;
    for (std::string p = scope_of(n.name); !p.empty(); p = scope_of(p)) {
      if (all.contains(p) && !seen.contains(p)) outer.push_back(p);
    }
    for (; !outer.empty(); outer.pop_back()) {
      seen.insert(outer.back());
      order.push_back(outer.back());
    }
  }
  if (order.empty()) {
    not_a_step(g, "no op has the name of a layer, such as \"dense/MatMul\"");
  }
  return order;
}

// Gives handles variables that have no memory.
void bind_variables(Graph& g) {
  Device& host = DeviceManager::get().host();
  for (Node& n : g.nodes) {
    if (n.variable.defined() || n.outputs.size() != 1) continue;
    const OutSpec& s = n.outputs[0];
    const bool handle = n.op->kind() == OpKind::kHandle;
    const bool argument = n.op->kind() == OpKind::kArgument;
    if (!handle && !(argument && s.dtype == resource)) continue;
    if (s.variable == DType::kInvalid || s.variable == resource ||
        !s.shape.is_fully_defined()) {
      not_a_step(g, fmt::format("the variable of {} has no shape", n.name));
    }
    const std::string name =
        handle ? n.op->attr<std::string>(n.attrs.get(), "shared_name") : n.name;
    n.variable = make_unbacked_variable(host, name, s.variable, s.shape);
    variable_state(n.variable).trainable = false;
  }
}

// Variables that the forward pass reads and the end of the step writes.
bool find_trained(const Graph& g, const std::vector<StepLayers::Place>& at) {
  std::set<int32_t> read;
  bool any = false;
  for (int32_t i = 0; i < g.size(); ++i) {
    const Node& n = g[i];
    for (const ValueRef& v : n.inputs) {
      const bool handle = g[v.node].variable.defined();
      if (at[i].pass == 'F' && n.follows < 0 && at[i].layer >= 0) {
        const int32_t w = variable_of(g, v);
        if (w >= 0 && (!handle || n.op->kind() == OpKind::kCompute)) {
          read.insert(w);
        }
      }
      if (at[i].pass != 'U' || !handle || !read.contains(v.node)) continue;
      variable_state(g[v.node].variable).trainable = true;
      any = true;
    }
  }
  return any;
}

int64_t examples_of(const Graph& g) {
  int64_t batch = 0;
  for (const Node& n : g.nodes) {
    for (const OutSpec& s : n.outputs) {
      if (s.dtype != resource && !s.shape.is_fully_defined()) {
        not_a_step(g, fmt::format("the shape of {} is {}, for any batch; "
                                  "train on a batch of known size first",
                                  n.name, s.shape.str()));
      }
    }
    if (n.op->kind() != OpKind::kArgument) continue;
    const OutSpec& s = n.outputs[0];
    if (s.dtype != resource && s.shape.rank() > 0) batch = s.shape[0];
  }
  if (batch < 1) not_a_step(g, "no argument is a batch of examples");
  return batch;
}

}  // namespace

ModelChain read_graph(const GraphToRead& step) {
  Graph g = step.graph;
  const int64_t batch = examples_of(g);
  bind_variables(g);
  const Machine& machine = step.costs;
  ChainReader reader(paths_of(g), machine, batch);
  const std::vector<StepLayers::Place> at = reader.layers().places(g);
  if (!find_trained(g, at)) {
    not_a_step(g, "no variable is read by a layer and updated by a gradient");
  }
  for (int32_t i = 0; i < g.size(); ++i) {
    if (at[i].layer < 0 || g[i].op->graph_only()) continue;
    for (size_t d = 0; d < machine.devices.size(); ++d) {
      reader.add_time(at[i], d, step.costs.time(i, static_cast<int32_t>(d)).us);
    }
  }
  return reader.chain(g, at, step.peak_bytes);
}

}  // namespace berth::distribute
