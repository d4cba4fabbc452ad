#include "remote/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "device/device_manager.h"
#include "graph/body.h"
#include "tensor/tensor_impl.h"

namespace berth::remote {

namespace {

bool is_local(const DeviceName& name) {
  return !name.job || *name.job == "localhost";
}

// Whether all nodes of a body are on the task of the enclosing node.
bool stays_on(const Graph& body, const DeviceName& task) {
  return std::all_of(body.nodes.begin(), body.nodes.end(), [&](const Node& n) {
    bool stays = n.assigned.empty() || (n.assigned.name().job == task.job &&
                                        n.assigned.name().task == task.task);
    visit_bodies(n, [&](const std::string&, const Graph& inner) {
      stays = stays && stays_on(inner, task);
    });
    return stays;
  });
}

class Cutter {
 public:
  Cutter(const Graph& graph, const std::string& self)
      : g_(graph), self_(self), part_(graph.nodes.size(), 0) {
    parts_.emplace_back();
  }

  std::optional<std::vector<TaskGraph>> run() {
    for (int32_t i = 0; i < g_.size(); ++i) part_[i] = part_of(g_[i]);
    if (parts_.size() == 1 || !can_cut()) return std::nullopt;
    for (int32_t i = 0; i < g_.size(); ++i) find_cuts(i);
    state_.resize(parts_.size());
    for (State& s : state_) s.at.assign(g_.nodes.size(), -1);
    for (int32_t i = 0; i < g_.size(); ++i) add(i);
    finish();
    return std::move(parts_);
  }

 private:
  // A value, or with output -1 a control, that another part needs on a device.
  struct Cut {
    int32_t node;
    int32_t output;
    int part;
    DeviceId device;  // a CPU
    auto operator<=>(const Cut&) const = default;
  };
  struct State {
    std::vector<int32_t> at;  // by node of the whole graph: here, or -1
    int32_t last_link = -1;
    std::map<Cut, int32_t> received;
  };

  int part_of(const Node& n) {
    const DeviceName& name = n.assigned.name();
    if (is_local(name)) return 0;
    const cluster::TaskId task{*name.job, name.task.value_or(0)};
    for (size_t p = 1; p < parts_.size(); ++p) {
      if (parts_[p].task == task) return static_cast<int>(p);
    }
    parts_.emplace_back().task = task;
    return static_cast<int>(parts_.size()) - 1;
  }

  bool can_cut() const {
    for (int32_t i = 0; i < g_.size(); ++i) {
      const Node& n = g_[i];
      bool can = true;
      visit_bodies(n, [&](const std::string&, const Graph& body) {
        can = can && stays_on(body, n.assigned.name());
      });
      for (const ValueRef v : n.inputs) {
        can =
            can && (part_[v.node] == part_[i] || g_.spec(v).dtype != resource);
      }
      if (!can) return false;
    }
    return true;
  }

  std::string name_of(int part) const {
    return part == 0 ? self_ : parts_[part].task->str();
  }
  DeviceId host_of(int part) const {
    if (part == 0) return "/job:localhost/replica:0/task:0/device:CPU:0";
    const cluster::TaskId& t = *parts_[part].task;
    return fmt::format("/job:{}/replica:0/task:{}/device:CPU:0", t.job,
                       t.index);
  }
  // The CPU of the part where a node's operand arrives.
  DeviceId landing(int32_t i) const {
    return g_[i].assigned.is_cpu() ? g_[i].assigned : host_of(part_[i]);
  }
  bool is_arrival(int32_t i) const {
    return g_[i].op->kind() == OpKind::kTransfer && g_[i].assigned.is_cpu() &&
           part_[g_[i].inputs[0].node] != part_[i];
  }

  void find_cuts(int32_t i) {
    const auto want = [&](int32_t node, int32_t output) {
      if (part_[node] == part_[i]) return;
      const Cut cut{node, output, part_[i], landing(i)};
      if (edges_.try_emplace(cut, static_cast<int64_t>(edges_.size())).second) {
        wanted_[node].push_back(cut);
      }
    };
    for (const ValueRef v : g_[i].inputs) want(v.node, v.output);
    for (const int32_t c : g_[i].controls) want(c, -1);
  }

  // Appends one end of an edge, after all earlier ends.
  int32_t add_link(int part, Node n) {
    State& s = state_[part];
    if (s.last_link >= 0) n.controls.push_back(s.last_link);
    std::sort(n.controls.begin(), n.controls.end());
    n.controls.erase(std::unique(n.controls.begin(), n.controls.end()),
                     n.controls.end());
    return s.last_link = parts_[part].graph.add(std::move(n));
  }

  AttrsRef link_attrs(const Cut& cut, int with, const OutSpec* spec) const {
    std::vector<Attrs::Pair> pairs = {{"link", int64_t{0}},
                                      {"edge", edges_.at(cut)},
                                      {"task", name_of(with)}};
    if (spec) {
      pairs.push_back({"dtype", spec->dtype});
      pairs.push_back({"shape", spec->shape});
    }
    return AttrsRef(std::move(pairs));
  }

  // The value sent for a control.
  static const OutSpec& signal() {
    static const OutSpec spec{int32, Shape{}, DType::kInvalid};
    return spec;
  }
  static Tensor done() {
    Tensor t = make_tensor(DeviceManager::get().host(), int32, {});
    *reinterpret_cast<int32_t*>(t.impl()->data()) = 0;
    return t;
  }
  const OutSpec& spec_of(const Cut& cut) const {
    return cut.output < 0 ? signal() : g_[cut.node].outputs[cut.output];
  }

  Node node_like(int part, const Node& origin, const char* suffix,
                 std::string_view op) const {
    Node n;
    n.name = unique_name(parts_[part].graph, origin.name + suffix);
    n.op = &op_named(op);
    n.sources = origin.sources;
    return n;
  }

  void send(const Cut& cut) {
    const Node& origin = g_[cut.node];
    const int part = part_[cut.node];
    Graph& to = parts_[part].graph;
    const int32_t here = state_[part].at[cut.node];
    ValueRef value{here, cut.output};
    DeviceId cpu = origin.assigned;
    std::vector<int32_t> controls;
    if (cut.output < 0) {
      Node c = node_like(part, origin, "/done", "Const");
      c.attrs = AttrsRef({{"value", done()}});
      c.outputs = {signal()};
      c.assigned = cpu = host_of(part);
      value = {to.add(std::move(c)), 0};
      controls = {here};
    } else if (!cpu.is_cpu()) {
      const bool there = origin.op->output_on_host(cut.output);
      cpu = host_of(part);
      if (!there) {
        Node t = node_like(part, origin, "/to_host", "_Transfer");
        t.inputs = {value};
        t.outputs = {spec_of(cut)};
        t.assigned = cpu;
        value = {to.add(std::move(t)), 0};
      }
    }
    Node n = node_like(part, origin, "/send", "_TaskSend");
    n.inputs = {value};
    n.controls = std::move(controls);
    n.attrs = link_attrs(cut, cut.part, nullptr);
    n.assigned = cpu;
    add_link(part, std::move(n));
  }

  int32_t receive(int32_t node, int32_t output, int32_t reader) {
    const int part = part_[reader];
    const Cut cut{node, output, part, landing(reader)};
    auto& received = state_[part].received;
    if (const auto it = received.find(cut); it != received.end()) {
      return it->second;
    }
    Node n = node_like(part, g_[node], "/receive", "_TaskRecv");
    n.attrs = link_attrs(cut, part_[node], &spec_of(cut));
    n.outputs = {spec_of(cut)};
    n.assigned = cut.device;
    return received[cut] = add_link(part, std::move(n));
  }

  void add(int32_t i) {
    const Node& origin = g_[i];
    const int part = part_[i];
    State& s = state_[part];
    if (is_arrival(i)) {
      s.at[i] = receive(origin.inputs[0].node, origin.inputs[0].output, i);
    } else {
      Node n = origin;
      n.follows = -1;
      for (ValueRef& v : n.inputs) {
        v = part_[v.node] == part ? ValueRef{s.at[v.node], v.output}
                                  : ValueRef{receive(v.node, v.output, i), 0};
      }
      for (int32_t& c : n.controls) {
        c = part_[c] == part ? s.at[c] : receive(c, -1, i);
      }
      std::sort(n.controls.begin(), n.controls.end());
      n.controls.erase(std::unique(n.controls.begin(), n.controls.end()),
                       n.controls.end());
      n.name = unique_name(parts_[part].graph, n.name);
      s.at[i] = parts_[part].graph.add(std::move(n));
    }
    for (const Cut& cut : wanted_[i]) send(cut);
  }

  void finish() {
    for (TaskGraph& p : parts_) {
      p.graph.name =
          p.task ? fmt::format("{}@{}", g_.name, p.task->str()) : g_.name;
      p.graph.declared_ops = g_.declared_ops;
    }
    for (size_t k = 0; k < g_.args.size(); ++k) {
      const int part = part_[g_.args[k]];
      Graph& graph = parts_[part].graph;
      const int32_t at = state_[part].at[g_.args[k]];
      const OutSpec& spec = graph[at].outputs[0];
      set_arg(graph[at], static_cast<int64_t>(graph.args.size()), spec.dtype,
              spec.shape);
      graph.args.push_back(at);
      parts_[part].args.push_back(static_cast<int>(k));
    }
    for (size_t k = 0; k < g_.outputs.size(); ++k) {
      const ValueRef v = g_.outputs[k];
      const int part = part_[v.node];
      const int32_t output = is_arrival(v.node) ? 0 : v.output;
      parts_[part].graph.outputs.push_back({state_[part].at[v.node], output});
      parts_[part].outputs.push_back(static_cast<int>(k));
    }
  }

  const Graph& g_;
  const std::string self_;
  std::vector<int> part_;  // by node
  std::vector<TaskGraph> parts_;
  std::vector<State> state_;                    // by part
  std::map<Cut, int64_t> edges_;                // edge numbers
  std::map<int32_t, std::vector<Cut>> wanted_;  // by producer
};

}  // namespace

std::optional<std::vector<TaskGraph>> split_graph(const Graph& graph,
                                                  const std::string& self) {
  return Cutter(graph, self).run();
}

std::vector<Tensor> variable_nodes(const Graph& graph) {
  std::vector<Tensor> all;
  for (const Node& n : graph.nodes) {
    if (n.op->name() == "VarHandleOp") all.push_back(n.variable);
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      for (Tensor& t : variable_nodes(body)) all.push_back(std::move(t));
    });
  }
  return all;
}

}  // namespace berth::remote
