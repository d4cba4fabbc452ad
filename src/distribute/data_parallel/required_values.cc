#include "distribute/data_parallel/required_values.h"

#include "device/memory_space.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

using State = SplitState::Kind;
using Choice = SplitChoice::Kind;

MemorySet bit(int memory) { return MemorySet{1} << memory; }

}  // namespace

int place_of_variable(const Node& handle, const SplitPlaces& places) {
  const std::vector<DeviceId>& devices = places.memories[0].devices;
  DeviceId home = handle.assigned;
  if (handle.variable.defined()) {
    home = variable_state(handle.variable).device->id();
  }
  if (home.empty()) return 0;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (devices[d] == home) return static_cast<int>(d);
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    if (memory_of(devices[d]) == memory_of(home)) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

SplitNeeds::SplitNeeds(const Graph& graph, const SplitStates& states,
                       const SplitPlaces& places)
    : graph_(graph), states_(states), places_(places) {
  for (size_t before = 1, after = 0; before != after;) {
    const auto count = [&] {
      size_t n = 0;
      for (const auto& [handle, set] : variables_) {
        n += static_cast<size_t>(__builtin_popcountll(set));
      }
      return n;
    };
    before = count();
    walk();
    after = count();
  }
}

int SplitNeeds::copy_of(int32_t handle, int memory) const {
  if (places_.central()) return places_.home;
  const int at = place_of_variable(graph_[handle], places_);
  // Created outside the scope, on another device: there is one copy.
  if (at < 0) return 0;
  const auto name = [&](int m) {
    return memory_of(places_.memories[m].devices[static_cast<size_t>(at)]);
  };
  for (int m = 0; m < memory; ++m) {
    if (name(m) == name(memory)) return m;
  }
  return memory;
}

bool SplitNeeds::written_apart(const Node& n) const {
  if (n.op->kind() != OpKind::kControl || !n.has_effect()) return false;
  for (size_t m = 0; m < places_.memories.size(); ++m) {
    int first = -1;
    for (const ValueRef& v : n.inputs) {
      if (graph_[v.node].op->kind() != OpKind::kHandle) continue;
      const int copy = copy_of(v.node, static_cast<int>(m));
      if (first < 0) first = copy;
      if (copy != first) return true;
    }
  }
  return false;
}

MemorySet SplitNeeds::of_parts() const {
  MemorySet set = 0;
  for (size_t r = 0; r < places_.examples.size(); ++r) {
    const int memory = places_.memory_of[r];
    if (places_.examples[r].rows > 0 && memory >= 0) set |= bit(memory);
  }
  return set;
}

MemorySet SplitNeeds::made_at(int32_t i) const {
  const Node& n = graph_[i];
  MemorySet set = 0;
  for (const MemorySet s : values_[i]) set |= s;
  if (n.op->kind() == OpKind::kReadVariable) {
    MemorySet copies = 0;
    for (size_t m = 0; m < places_.memories.size(); ++m) {
      if (set & bit(static_cast<int>(m))) {
        copies |= bit(copy_of(n.inputs[0].node, static_cast<int>(m)));
      }
    }
    return copies;
  }
  if (!n.has_effect()) return set;
  MemorySet effects = 0;
  for (const ValueRef& v : n.inputs) {
    const auto it = variables_.find(v.node);
    if (it != variables_.end()) effects |= it->second;
  }
  return effects != 0 ? effects : bit(places_.home);
}

void SplitNeeds::walk() {
  values_.assign(graph_.nodes.size(), {});
  nodes_.assign(graph_.nodes.size(), 0);
  for (int32_t i = 0; i < graph_.size(); ++i) {
    values_[i].assign(graph_[i].outputs.size(), 0);
  }
  for (const ValueRef& v : graph_.outputs) want(v, bit(places_.home));
  const MemorySet parts = of_parts();
  for (int32_t i = graph_.size() - 1; i >= 0; --i) {
    const Node& n = graph_[i];
    const SplitChoice& choice = states_.nodes[i];
    if (choice.kind == Choice::kThrough) continue;
    if (choice.kind == Choice::kCut) {
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const ValueRef v = n.inputs[k];
        const SplitState& state = states_.values[v.node][v.output];
        const bool as_is = state.kind == State::kSplit &&
                           choice.signature->inputs[k] == state.axis;
        if (!as_is) want(v, parts);
      }
      continue;
    }
    nodes_[i] = made_at(i);
    for (const ValueRef& v : n.inputs) want(v, nodes_[i]);
    if (n.op->kind() != OpKind::kHandle) continue;
    MemorySet& copies = variables_[i];
    for (size_t m = 0; m < places_.memories.size(); ++m) {
      if (values_[i][0] & bit(static_cast<int>(m))) {
        copies |= bit(copy_of(i, static_cast<int>(m)));
      }
    }
    // The home is always written: the user holds it.
    copies |= bit(places_.central() ? places_.home : 0);
  }
}

}  // namespace berth::distribute
