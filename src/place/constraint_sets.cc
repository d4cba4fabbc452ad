#include "place/constraint_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/where.h"
#include "berth/errors.h"
#include "device/composite.h"
#include "device/memory_space.h"
#include "tensor/variable_state.h"

namespace berth {

std::string describe(const Graph& graph, int32_t node) {
  const Node& n = graph[node];
  return fmt::format("{} \"{}\"{}", n.op->name(), n.name,
                     where_text(nullptr, site_of(graph, node)));
}

Site site_of(const Graph& graph, int32_t node) {
  const Node& n = graph[node];
  return n.sources.empty() ? Site{} : n.sources[0].site;
}

const std::string& variable_name(const Node& node) {
  const bool known = node.op->kind() == OpKind::kHandle &&
                     !node.sources.empty() && !node.sources[0].name.empty();
  return known ? node.sources[0].name : node.name;
}

ConstraintSets::ConstraintSets(const Graph& graph, const PlaceOptions& options,
                               DeviceTable& devices)
    : graph_(graph),
      options_(options),
      devices_(devices),
      kernels_(devices),
      parent_(graph.nodes.size()),
      sets_(graph.nodes.size()),
      requests_(graph.nodes.size()) {
  std::iota(parent_.begin(), parent_.end(), 0);
  for (int32_t d = 0; d < devices.size(); ++d) {
    memories_.push_back(memory_of(devices[d].name));
  }
  for (int32_t i = 0; i < graph.size(); ++i) init(i);
}

bool ConstraintSets::handle(int32_t i) const {
  const Node& n = graph_[i];
  if (!n.inputs.empty() || n.outputs.size() != 1) return false;
  if (n.op->kind() == OpKind::kCall || n.op->kind() == OpKind::kControl) {
    return false;
  }
  return n.outputs[0].dtype == resource || n.op->output_is_ref(0);
}

// The one device that a node was assigned to, which must have a kernel for it.
DeviceSet ConstraintSets::assigned_to(int32_t i) {
  const Node& n = graph_[i];
  const DeviceSet at = devices_.mask(devices_.parse(n.assigned));
  const auto refuse = [&](const std::string& why) {
    throw errors::InvalidArgument(
        fmt::format("{}: its assigned device \"{}\" {}", describe(graph_, i),
                    n.assigned.text(), why));
  };
  if (at == 0) {
    refuse(fmt::format("does not match any device; expected one of {}",
                       devices_.list()));
  }
  if (at.count() > 1) {
    refuse(fmt::format("matches several devices: {}; expected a full name",
                       devices_.list(at)));
  }
  const DeviceSet can = kernels_.of(graph_, n).devices;
  if ((at & can) == 0) {
    refuse(fmt::format("has no kernel of {} for {}; devices that have one: {}",
                       n.op->name(), name_of(node_dtype(graph_, n)),
                       can ? devices_.list(can) : "none"));
  }
  return at;
}

void ConstraintSets::init(int32_t i) {
  const Node& n = graph_[i];
  const NodeKernels::Class& kernels = kernels_.of(graph_, n);
  Set& s = sets_[i];
  s.first = i;
  s.allowed = kernels.devices;
  s.priorities = kernels.priorities;
  const bool stays = !n.assigned.empty() && options_.keep_assigned;
  if (!n.requested.empty() && !stays) read_request(i);
  if (stays) {
    const DeviceSet at = assigned_to(i);
    s.pin = device_bit(at.first());
    if ((s.pin & devices_.composites()) == 0) s.allowed = s.pin;
    s.pinned = true;
    s.requested = devices_.only(s.pin);
  } else if (n.variable.defined()) {
    const std::string& name = variable_state(n.variable).device->str();
    const int32_t d = devices_.find(name);
    if (d < 0) {
      throw errors::InvalidArgument(fmt::format(
          "{}: the variable lives on {}, which is not among the devices to "
          "place on: {}",
          describe(graph_, i), short_device(name), devices_.list()));
    }
    s.pin = device_bit(d);
    s.allowed &= s.pin;
    s.pinned = true;
    s.resource = DeviceTable::kAny;
    s.requested = devices_.only(device_bit(d));
  } else if (const DeviceSet c = devices_.compilers();
             c != 0 && (s.requested == 0 || devices_.mask(s.requested) & ~c)) {
    // Compiler devices are used only on request.
    if (s.allowed & ~c) s.allowed &= ~c;
  }
  if (s.allowed == 0) fail(i);
}

void ConstraintSets::read_request(int32_t i) {
  const DeviceId text = graph_[i].requested;
  if (text != last_request_) {
    try {
      last_name_ = devices_.parse(text);
    } catch (const errors::InvalidArgument& e) {
      throw errors::InvalidArgument(
          fmt::format("{}: {}", describe(graph_, i), e.what()));
    }
    last_request_ = text;
  }
  const NameId id = last_name_;
  requests_[i] = id;
  sets_[i].requested = id;
  // In TensorFlow the source of an edge may still override the request.
  const bool final = options_.policy == PlacePolicy::kBerth;
  if (devices_.mask(id) == 0 && hard() && final) fail(i);
  if (handle(i)) sets_[i].resource = resource_of(i);
}

// In kBerth a request that cannot be met binds nothing except the task.
DeviceTable::NameId ConstraintSets::resource_of(int32_t i) {
  const NameId id = requests_[i];
  const bool binds = devices_.mask(id) != 0 || hard() ||
                     options_.policy == PlacePolicy::kTensorFlow;
  return binds ? id : devices_.relax(id, DeviceTable::kAny);
}

void ConstraintSets::connect() {
  connect_calls();
  connect_edges();
  if (broken_ >= 0) fail(broken_);
  connect_groups();
  for (const int32_t i : on_host_) restrict_to_host(i);
}

bool ConstraintSets::merge(const Set& a, const Set& b, Kind kind, Set* both) {
  both->allowed = a.allowed & b.allowed;
  if ((both->allowed & ~devices_.composites()) == 0 ||
      !devices_.compatible(a.resource, b.resource)) {
    return false;
  }
  both->pinned = a.pinned || b.pinned;
  both->pin = a.pinned ? a.pin : b.pin;
  if (b.pinned && both->pin != b.pin) return false;
  if (both->pinned && (both->pin & both->allowed) == 0) return false;
  both->resource = devices_.merge(a.resource, b.resource);
  // In a group, soft TensorFlow lets a variable follow an assigned node.
  const bool moves = options_.policy == PlacePolicy::kTensorFlow &&
                     kind == Kind::kGroup && !hard();
  if (both->pinned && !moves &&
      (both->pin & devices_.mask(both->resource)) == 0) {
    return false;
  }
  NameId asked;
  if (devices_.compatible(a.requested, b.requested)) {
    asked = devices_.merge(a.requested, b.requested);
  } else if (kind != Kind::kGroup) {
    asked = a.requested;  // the source of an edge wins
  } else if (hard()) {
    return false;
  } else if (options_.policy == PlacePolicy::kTensorFlow) {
    asked = devices_.merge_soft(a.requested, b.requested);
    if (asked < 0) return false;
  } else {
    if (devices_.merge_soft(a.requested, b.requested) < 0) return false;
    const bool first = a.pinned == b.pinned ? a.first < b.first : a.pinned;
    asked = first ? a.requested : b.requested;
  }
  // What is placed stays, whatever the source of an edge asked for.
  both->requested = both->pinned ? devices_.only(both->pin)
                                 : devices_.specialise(asked, both->resource);
  both->priorities =
      a.priorities == 0 && b.priorities == 0
          ? 0
          : kernels_.merge(a.priorities, b.priorities, both->allowed);
  both->first = std::min(a.first, b.first);
  both->size = a.size + b.size;
  return true;
}

bool ConstraintSets::unite(int32_t from, int32_t to, Kind kind, int32_t name) {
  const int32_t a = find(from), b = find(to);
  if (a == b) return true;
  Set both;
  if (!merge(sets_[a], sets_[b], kind, &both)) return false;
  link(from, to, kind, name);
  sets_[find(from)] = both;
  return true;
}

// Joins two sets and remembers why. The caller writes the set of the new root.
void ConstraintSets::link(int32_t from, int32_t to, Kind kind, int32_t name) {
  const int32_t a = find(from), b = find(to);
  const bool a_is_small = sets_[a].size < sets_[b].size;
  const int32_t small = a_is_small ? a : b, large = a_is_small ? b : a;
  const int32_t in_small = a_is_small ? from : to;
  proofs_.resize(sets_.size());
  root_proofs_at(in_small);
  proofs_[in_small] = {a_is_small ? to : from,
                       static_cast<int32_t>(links_.size())};
  links_.push_back({from, to, kind, name});
  parent_[small] = large;
}

// Reverses the pointers between `i` and the root of its tree.
void ConstraintSets::root_proofs_at(int32_t i) {
  Proof up = proofs_[i];
  proofs_[i] = {};
  for (int32_t child = i; up.parent >= 0;) {
    const Proof next = proofs_[up.parent];
    proofs_[up.parent] = {child, up.link};
    child = up.parent;
    up = next;
  }
}

// A handle on a composite device is a handle on each of its devices: what was
// put on one device stays there.
bool ConstraintSets::leaves_composite(int32_t from, int32_t to) {
  const DeviceSet composites = devices_.composites();
  if (composites == 0) return false;
  const Set &a = set_of(from), &b = set_of(to);
  if (a.pinned && b.pinned) {
    return (a.pin & composites) != 0 && (b.pin & composites) == 0;
  }
  const auto &of = devices_.name(a.resource).type,
             &on = devices_.name(b.resource).type;
  return of == kCompositeType && on && on != kCompositeType;
}

void ConstraintSets::unite_edge(int32_t from, int32_t to, Kind kind) {
  if (kind != Kind::kCall && leaves_composite(from, to)) return;
  if (unite(from, to, kind)) return;
  // Read the other edges too: they may make a shorter conflict.
  const int32_t a = find(from), b = find(to);
  Set both = sets_[a];
  both.allowed &= sets_[b].allowed;
  both.size += sets_[b].size;
  link(from, to, kind, -1);
  sets_[find(from)] = both;
  if (broken_ < 0) broken_ = from;
}

int32_t ConstraintSets::element_of(ValueRef v) const {
  if (first_call_value_.empty() || first_call_value_[v.node] < 0) return v.node;
  for (size_t k = static_cast<size_t>(first_call_value_[v.node]);
       k < call_values_.size() && call_values_[k].value.node == v.node; ++k) {
    if (call_values_[k].value == v) {
      return graph_.size() + static_cast<int32_t>(k);
    }
  }
  return v.node;
}

}  // namespace berth
