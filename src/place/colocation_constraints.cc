// The constraints of a graph that connect nodes.

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "place/constraint_sets.h"

namespace berth {

namespace {

using ConstraintKind = PlaceConstraint::Kind;

bool calls_functions(const Node& n) {
  if (n.op->kind() == OpKind::kCall || n.op->kind() == OpKind::kControl) {
    return true;
  }
  if (n.attrs.get() == nullptr) return false;
  for (const auto& [name, value] : n.attrs.get()->pairs()) {
    if (std::holds_alternative<std::shared_ptr<Callable>>(value)) return true;
  }
  return false;
}

// A callee may use variables on many devices, and IdentityN passes on values
// from as many.
bool exempt_from_resource_edges(const Node& n) {
  return calls_functions(n) || n.op->name() == "IdentityN";
}

// "BatchDataset", "MapDatasetV2": ops whose only output is a dataset.
bool makes_dataset(const Node& n) {
  if (n.outputs.size() != 1 || n.outputs[0].dtype != variant) return false;
  std::string_view op = n.op->name();
  const size_t end = op.find_last_not_of("0123456789");
  if (end + 1 < op.size() && op[end] == 'V') op = op.substr(0, end);
  return op.ends_with("Dataset");
}

// "loc:@name" is TensorFlow's spelling.
std::string_view group_name(std::string_view text) {
  constexpr std::string_view kPrefix = "loc:@";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

}  // namespace

void ConstraintSets::connect_edges() {
  const bool berth = options_.policy == PlacePolicy::kBerth;
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const Node& n = graph_[i];
    bool host = false, strings = false;  // reads data that only the host has
    const bool args = !n.op->inputs().empty();
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      const ValueRef v = n.inputs[k];
      const DType type = graph_.spec(v).dtype;
      if (type == resource) {
        if (!exempt_from_resource_edges(n) && !shares_memory(v, i)) {
          unite_edge(element_of(v), i, ConstraintKind::kResourceEdge);
        }
      } else if (args && n.op->input(static_cast<int>(k)).ref) {
        unite_edge(element_of(v), i, ConstraintKind::kRefEdge);
      } else if (type == variant) {
        host = host || host_only(v);
        if (makes_dataset(n) && makes_dataset(graph_[v.node])) {
          unite_edge(element_of(v), i, ConstraintKind::kVariantEdge);
        }
      } else if (type == string_) {
        strings = true;
      }
    }
    if (host) reads_host_variants_.push_back(i);
    for (const OutSpec& s : n.outputs) strings = strings || s.dtype == string_;
    host = host || (berth && strings && !calls_functions(n));
    if (host && (!berth || devices_.hosts() != 0)) on_host_.push_back(i);
  }
}

// A slice of a variable that is requested on another device of the same memory
// (CPU devices of one process) reads and writes the variable in place.
bool ConstraintSets::shares_memory(ValueRef variable, int32_t range) {
  if (graph_[range].op->kind() != OpKind::kHandleRange) return false;
  const DeviceSet asked = devices_.mask(requests_[range]);
  if (requests_[range] == DeviceTable::kAny || asked == 0) return false;
  const Set& s = set_of(element_of(variable));
  const DeviceSet wanted = s.allowed & devices_.mask(s.requested);
  const DeviceSet places = asked | (wanted ? wanted : s.allowed);
  const std::string* memory = nullptr;
  for (int32_t d = 0; d < devices_.size(); ++d) {
    if (!places.has(d)) continue;
    const std::string& here = memories_[d];
    if (memory != nullptr && here != *memory) return false;
    memory = &here;
  }
  return memory != nullptr;
}

// A variant made from one that only the host can hold is a different one.
bool ConstraintSets::host_only(ValueRef v) const {
  return graph_[v.node].op->output_on_host(v.output) ||
         std::binary_search(reads_host_variants_.begin(),
                            reads_host_variants_.end(), v.node);
}

// Names of groups with one member: probably misspelt.
void ConstraintSets::find_lone_groups(
    const std::unordered_map<std::string_view, int32_t>& heads) {
  std::unordered_map<std::string_view, int> members;
  for (const Node& n : graph_.nodes) {
    for (const std::string& g : n.colocated) ++members[group_name(g)];
    if (heads.contains(n.name)) ++members[n.name];
  }
  for (int32_t i = 0; i < graph_.size(); ++i) {
    for (const std::string& g : graph_[i].colocated) {
      if (members[group_name(g)] == 1) lone_groups.push_back({i, i, g});
    }
  }
}

void ConstraintSets::connect_groups() {
  std::unordered_map<std::string_view, int32_t> heads;  // -1: none yet
  for (const Node& n : graph_.nodes) {
    for (const std::string& g : n.colocated) heads.emplace(group_name(g), -1);
  }
  if (heads.empty()) return;
  const auto join = [&](std::string_view name, int32_t i) {
    const auto it = heads.find(name);
    if (it == heads.end() || it->second == i) return;
    if (it->second < 0) {
      it->second = i;
      return;
    }
    const int32_t id = static_cast<int32_t>(group_names_.size());
    group_names_.emplace_back(name);
    if (unite(it->second, i, ConstraintKind::kGroup, id)) return;
    if (hard()) {
      active_requests_ = {set_of(it->second).requested, set_of(i).requested};
      link(it->second, i, ConstraintKind::kGroup, id);
      fail(i);
    }
    ignored_groups.push_back({i, it->second, group_names_.back()});
  };
  for (int32_t i = 0; i < graph_.size(); ++i) {
    for (const std::string& g : graph_[i].colocated) join(group_name(g), i);
    join(graph_[i].name, i);
  }
  find_lone_groups(heads);
}

void ConstraintSets::restrict_to_host(int32_t i) {
  Set& s = set_of(i);
  const DeviceSet left = s.allowed & devices_.hosts();
  if (left == 0) fail(i);
  s.allowed = left | (s.allowed & devices_.composites());
  if (!s.pinned || (s.pin & devices_.composites()) != 0) return;
  if ((left & devices_.mask(s.resource)) == 0) fail(i);
}

}  // namespace berth
