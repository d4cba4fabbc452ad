#include "distribute/automatic/layer_exchange.h"

#include <algorithm>
#include <set>

#include "distribute/pipeline/pipeline.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

using State = SplitState::Kind;
using Choice = SplitChoice::Kind;

int64_t bytes_of_spec(const OutSpec& s) {
  return s.shape.num_elements() * static_cast<int64_t>(size_of(s.dtype));
}

// The inputs that a node needs whole and that are in parts.
std::vector<ValueRef> needed_whole(const Graph& graph,
                                   const SplitStates& states, int32_t i) {
  std::vector<ValueRef> all;
  const SplitChoice& choice = states.nodes[i];
  if (choice.kind == Choice::kThrough) return all;
  const Node& n = graph[i];
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    const ValueRef v = n.inputs[k];
    const SplitState& s = states.values[v.node][v.output];
    if (s.kind == State::kWhole || graph.spec(v).dtype == resource) continue;
    const bool fits = choice.kind == Choice::kCut && s.kind == State::kSplit &&
                      choice.signature->inputs[k] == s.axis;
    if (!fits) all.push_back(v);
  }
  return all;
}

}  // namespace

LayerRules::LayerRules(const Graph& graph, int parts)
    : graph_(graph), analysis_(graph, parts, {1}, 1, false, true) {
  analysis_.start();
}

void LayerRules::set(int32_t handle, int axis) {
  analysis_.states().values[handle][0] =
      axis < 0 ? SplitState{}
               : SplitAnalysis::state_of(static_cast<int8_t>(axis));
}

bool LayerRules::visit_vocabulary(int32_t i) {
  const Node& n = graph_[i];
  const std::string& op = n.op->name();
  SplitStates& states = analysis_.states();
  const auto split_along = [&](int axis) {
    const ValueRef v = n.inputs[0];
    const SplitState& s = states.values[v.node][v.output];
    return s.kind == State::kSplit && s.axis == axis;
  };
  if (op == "GatherV2" && split_along(0) &&
      n.op->attr<int64_t>(n.attrs.get(), "axis") == 0 &&
      n.op->attr<int64_t>(n.attrs.get(), "batch_dims") == 0) {
    states.values[i][0] = {State::kPartial, 0};
    return true;
  }
  const bool entropy = op == "SoftmaxCrossEntropyWithLogits" ||
                       op == "SparseSoftmaxCrossEntropyWithLogits";
  if (!entropy) return false;
  const int last = graph_.spec(n.inputs[0]).shape.rank() - 1;
  if (!split_along(last)) return false;
  states.values[i][0] = {State::kPartial, 0};
  if (states.values[i].size() > 1) {
    states.values[i][1] = SplitAnalysis::state_of(static_cast<int8_t>(last));
  }
  return true;
}

LayerRules::Visit LayerRules::visit(int32_t i) {
  Visit r;
  SplitStates& states = analysis_.states();
  if (visit_vocabulary(i)) {
    states.nodes[i] = {Choice::kCut, nullptr, -1};
    r.divided = true;
  } else {
    for (SplitState& s : states.values[i]) s = {};
    analysis_.visit(i);
    r.divided = states.nodes[i].kind == Choice::kCut;
    for (const ValueRef& v : needed_whole(graph_, states, i)) {
      r.sent.push_back(bytes_of_spec(graph_.spec(v)));
    }
  }
  r.open =
      std::any_of(states.values[i].begin(), states.values[i].end(),
                  [](const SplitState& s) { return s.kind != State::kWhole; });
  return r;
}

std::vector<SplitLayer> exchange_of(const Graph& graph,
                                    const SplitStates& states,
                                    const std::vector<StepLayers::Place>& at,
                                    size_t num_layers, int64_t batch, int parts,
                                    const Machine& machine) {
  struct Share {
    double part = 0, all = 0;
    void add(double amount, bool divided, int n) {
      all += amount;
      part += divided ? amount / n : amount;
    }
    double value() const { return all > 0 ? part / all : 1; }
  };
  struct Shares {
    Share forward, backward, update, trained, kept;
  };
  const CostTable table = estimate_costs(graph, machine);
  std::vector<Shares> shares(num_layers);
  std::vector<SplitLayer> layers(num_layers);
  const auto users = graph.users();
  std::set<std::pair<ValueRef, bool>> sent;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& n = graph[i];
    if (at[i].layer < 0 || n.op->graph_only()) continue;
    const auto k = static_cast<size_t>(at[i].layer);
    const bool divided = states.nodes[i].kind == Choice::kCut;
    const bool forward = at[i].pass == 'F';
    Share& of = forward             ? shares[k].forward
                : at[i].pass == 'U' ? shares[k].update
                                    : shares[k].backward;
    const double us = table.time(i, 0).us - machine.class_of(0).launch_us;
    if (us < kNoKernel && us > 0) of.add(us, divided, parts);
    for (size_t o = 0; forward && o < n.outputs.size(); ++o) {
      const bool kept =
          n.op->kind() == OpKind::kCompute &&
          std::any_of(users[i].begin(), users[i].end(),
                      [&](int32_t u) { return graph[u].follows >= 0; });
      if (!kept) break;
      shares[k].kept.add(static_cast<double>(bytes_of_spec(n.outputs[o])),
                         states.values[i][o].kind == State::kSplit, parts);
    }
    if (at[i].pass == 'U') continue;
    for (const ValueRef& v : needed_whole(graph, states, i)) {
      if (!sent.insert({v, false}).second) continue;
      const double bytes = static_cast<double>(bytes_of_spec(graph.spec(v))) /
                           static_cast<double>(batch);
      (forward ? layers[k].forward_bytes : layers[k].backward_bytes) += bytes;
      ++(forward ? layers[k].forward_sums : layers[k].backward_sums);
    }
  }
  std::vector<int32_t> number;
  for (const StepLayers::Place& p : at) {
    number.push_back(p.pass == 'F' ? p.layer : -1);
  }
  const std::vector<int32_t> of = number_of_variables(graph, number);
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (!graph[i].variable.defined() || of[i] < 0) continue;
    const VariableState& v = variable_state(graph[i].variable);
    if (!v.trainable) continue;
    shares[of[i]].trained.add(static_cast<double>(v.size_bytes()),
                              v.split_axis >= 0, parts);
  }
  for (size_t k = 0; k < num_layers; ++k) {
    const Shares& s = shares[k];
    layers[k].forward = s.forward.value();
    layers[k].backward = s.backward.value();
    layers[k].update = s.update.value();
    layers[k].trained = s.trained.value();
    layers[k].kept = s.kept.value();
  }
  return layers;
}

}  // namespace berth::distribute
