#include "distribute/automatic/find_layouts.h"

#include <algorithm>
#include <map>
#include <set>

#include "distribute/automatic/layer_exchange.h"
#include "distribute/data_parallel/split_batch.h"
#include "passes/lower.h"
#include "passes/pipeline.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

constexpr int kRounds = 8;       // of taking composites apart
constexpr int32_t kFar = 1000;   // nodes after which a trial ends
constexpr double kBackward = 3;  // work of both passes over that of one
constexpr double kCheap = 0.3;   // of what links say, where memory matters

using State = SplitState::Kind;

// What a choice of axes divides and sends, from one variable on.
struct Trial {
  double us = 0;     // saved, less what is sent
  double bytes = 0;  // of variables that are divided
  bool better_than(const Trial& o) const {
    const double margin = 1e-6 + 1e-3 * std::abs(o.us);
    return us > o.us + margin || (us > o.us - margin && bytes > o.bytes);
  }
};

class LayoutWalk {
 public:
  LayoutWalk(const Graph& graph, int parts, const Machine& machine,
             LayoutAim aim)
      : graph_(graph),
        parts_(parts),
        link_(machine.link(0, machine.devices.size() > 1 ? 1 : 0)),
        dear_(aim == LayoutAim::kMemory ? kCheap : 1),
        handles_(aim == LayoutAim::kTime),
        device_(machine.class_of(0)),
        table_(estimate_costs(graph, machine)),
        users_(graph.users()),
        forward_(graph.nodes.size(), true),
        rules_(graph, parts) {
    for (int32_t i = 0; i < graph.size(); ++i) {
      const auto& inputs = graph[i].inputs;
      forward_[i] = graph[i].follows < 0 &&
                    std::all_of(inputs.begin(), inputs.end(),
                                [&](ValueRef v) { return forward_[v.node]; });
    }
  }

  void run() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!forward_[i]) continue;
      if (const int32_t w = variable_read(i); w >= 0) choose_axis(i, w);
      rules_.visit(i);
    }
  }

  std::vector<std::pair<Tensor, int>> axes() const {
    std::vector<std::pair<Tensor, int>> all;
    for (const auto& [node, axis] : axes_) {
      if (axis >= 0) all.emplace_back(graph_[node].variable, axis);
    }
    return all;
  }

  // Composites that run whole on divided values: they have no rule, but what
  // they consist of may.
  std::set<std::string> composites() const {
    std::set<std::string> names;
    for (const int32_t i : rules_.whole()) {
      const Node& n = graph_[i];
      if (n.op->kind() == OpKind::kCompute && n.op->decompose() != nullptr &&
          !n.has_effect()) {
        names.insert(n.name);
      }
    }
    return names;
  }

 private:
  // The trained variable that a node reads first; -1: none.
  int32_t variable_read(int32_t i) const {
    if (graph_[i].op->kind() != OpKind::kReadVariable) return -1;
    const int32_t w = graph_[i].inputs[0].node;
    const Tensor& v = graph_[w].variable;
    if (!v.defined() || !variable_state(v).trainable || axes_.contains(w)) {
      return -1;
    }
    return w;
  }

  void choose_axis(int32_t read, int32_t w) {
    const Shape& shape = variable_state(graph_[w].variable).shape;
    int best = -1;
    Trial most = try_axis(read, w, -1);
    const Trial whole = most;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] < parts_ || shape[axis] % parts_ != 0) continue;
      const Trial t = try_axis(read, w, axis);
      // A vector follows what it is added to; it divides nothing alone.
      if (shape.rank() == 1 && t.us < whole.us - 1e-6) continue;
      if (!t.better_than(most)) continue;
      most = t;
      best = axis;
    }
    axes_[w] = best;
    rules_.set(w, best);
  }

  // Follows a choice until everything is whole again.
  Trial try_axis(int32_t read, int32_t w, int axis) {
    rules_.set(w, axis);
    Trial t;
    if (axis >= 0) {
      t.bytes =
          static_cast<double>(variable_state(graph_[w].variable).size_bytes());
    }
    const int32_t end = std::min(graph_.size(), read + kFar);
    int32_t last = last_reader(read);
    double saved = 0, sent = 0;
    for (int32_t i = read; i < end && i <= last; ++i) {
      if (!forward_[i] || graph_[i].op->graph_only()) continue;
      const LayerRules::Visit v = rules_.visit(i);
      const double launch = handles_ ? device_.launch_us : 0;
      const double us = table_.time(i, 0).us;
      if (v.divided && us < kNoKernel) {
        saved += std::max(0.0, us - launch) * (1 - 1.0 / parts_);
      }
      for (const int64_t bytes : v.sent) {
        const double moved = 3.0 * static_cast<double>(bytes);
        const double adding = handles_ ? launch + device_.moving_us(moved) : 0;
        sent += 2 * (parts_ - 1) * (link_.time_us(bytes) + adding);
      }
      if (v.open) last = std::max(last, last_reader(i));
    }
    t.us = kBackward * saved - dear_ * sent;
    return t;
  }

  int32_t last_reader(int32_t i) const {
    int32_t last = i;
    for (const int32_t u : users_[i]) {
      if (forward_[u]) last = std::max(last, u);
    }
    return last;
  }

  const Graph& graph_;
  const int parts_;
  const LinkCost link_;
  const double dear_;
  const bool handles_;  // counts what devices do with what is sent
  const DeviceClass device_;
  const CostTable table_;
  const std::vector<std::vector<int32_t>> users_;
  std::vector<bool> forward_;  // by node: before all gradients
  LayerRules rules_;
  std::map<int32_t, int> axes_;  // by handle; -1: whole
};

// Gives what the optimizer keeps of a variable its axis; returns that.
std::vector<Tensor> divide_slots(const Graph& graph) {
  std::vector<Tensor> slots;
  for (const Node& n : graph.nodes) {
    if (n.op->update_value() < 0) continue;
    const VariableState* owner = nullptr;
    for (const ValueRef& v : n.inputs) {
      const Tensor& w = graph[v.node].variable;
      if (w.defined() && variable_state(w).trainable)
        owner = &variable_state(w);
    }
    if (owner == nullptr || owner->split_axis < 0) continue;
    for (const ValueRef& v : n.inputs) {
      const Tensor& w = graph[v.node].variable;
      if (!w.defined() || variable_state(w).trainable ||
          !(variable_state(w).shape == owner->shape)) {
        continue;
      }
      variable_state(w).split_axis = owner->split_axis;
      slots.push_back(w);
    }
  }
  return slots;
}

}  // namespace

std::vector<std::pair<Tensor, int>> find_layouts(const Graph& step, int parts,
                                                 const Machine& machine,
                                                 LayoutAim aim) {
  Graph graph = step;
  for (int round = 0;; ++round) {
    LayoutWalk walk(graph, parts, machine, aim);
    walk.run();
    const std::set<std::string> names = walk.composites();
    if (names.empty() || round == kRounds) return walk.axes();
    lower(graph, [&](const Node& n) { return !names.contains(n.name); });
    run_device_free_passes(graph);
  }
}

ChainSplit split_of(const Graph& step, const StepLayers& layers, int64_t batch,
                    int parts, const std::vector<std::pair<Tensor, int>>& axes,
                    const Machine& machine) {
  ChainSplit split{.parts = parts, .layouts = {}, .layers = {}};
  for (const auto& [variable, axis] : axes) {
    VariableState& v = variable_state(variable);
    v.split_axis = axis;
    AxisNames names(static_cast<size_t>(v.shape.rank()), "");
    names[static_cast<size_t>(axis)] = "model";
    split.layouts.emplace_back(v.name, std::move(names));
  }
  const std::vector<Tensor> slots = divide_slots(step);
  Graph graph = step;
  settle_layers(graph, parts);
  SplitAnalysis analysis(graph, parts, {1}, 1, false, true);
  split.layers = exchange_of(graph, analysis.run(), layers.places(graph),
                             layers.paths().size(), batch, parts, machine);
  for (const auto& [variable, axis] : axes) {
    variable_state(variable).split_axis = -1;
  }
  for (const Tensor& slot : slots) variable_state(slot).split_axis = -1;
  return split;
}

}  // namespace berth::distribute
