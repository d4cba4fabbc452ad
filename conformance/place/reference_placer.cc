#include "conformance/place/reference_placer.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "berth/errors.h"

namespace berth::conformance {

namespace {

using Priorities = std::map<std::string, int>;

int rank_of_type(const std::string& type) {
  return type == "GPU" ? 2 : type == "CPU" ? 1 : 0;
}

// Device types, the preferred one first.
std::vector<std::string> in_order(const Priorities& p) {
  std::vector<std::string> types;
  for (const auto& [type, priority] : p) types.push_back(type);
  std::stable_sort(types.begin(), types.end(),
                   [&](const std::string& a, const std::string& b) {
                     if (p.at(a) != p.at(b)) return p.at(a) > p.at(b);
                     return rank_of_type(a) > rank_of_type(b);
                   });
  return types;
}

bool has_priorities(const Priorities& p) {
  return std::any_of(p.begin(), p.end(),
                     [](const auto& entry) { return entry.second != 0; });
}

// B4.6; nothing when no type is left.
std::optional<Priorities> intersect(const Priorities& a, const Priorities& b) {
  Priorities left, right;
  for (const auto& [type, priority] : a) {
    if (!b.contains(type)) continue;
    left[type] = priority;
    right[type] = b.at(type);
  }
  if (left.empty()) return std::nullopt;
  if (!has_priorities(right)) return left;
  if (!has_priorities(left)) return right;
  if (in_order(left) == in_order(right)) return left;
  for (auto& [type, priority] : left) priority = 0;
  return left;
}

struct Set {
  std::vector<int> members;
  DeviceName resource, requested;
  Priorities types;
  int device = -1;
};

class Reference {
 public:
  Reference(const std::vector<ReferenceNode>& nodes,
            const std::vector<std::string>& devices, bool soft)
      : nodes_(nodes), full_names_(devices), soft_(soft) {
    // GPUs first, then by name as text.
    std::sort(full_names_.begin(), full_names_.end(),
              [](const std::string& a, const std::string& b) {
                const int ra = rank_of_type(*DeviceName::parse(a).type);
                const int rb = rank_of_type(*DeviceName::parse(b).type);
                return ra != rb ? ra > rb : a < b;
              });
    for (const std::string& d : full_names_) {
      names_.push_back(DeviceName::parse(d));
    }
  }

  std::vector<std::string> run() {
    for (size_t i = 0; i < nodes_.size(); ++i) begin(static_cast<int>(i));
    for (size_t i = 0; i < nodes_.size(); ++i) edges_of(static_cast<int>(i));
    for (size_t i = 0; i < nodes_.size(); ++i) groups_of(static_cast<int>(i));
    assigned_.assign(nodes_.size(), -1);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!generator(static_cast<int>(i))) first_pass(static_cast<int>(i));
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (generator(static_cast<int>(i))) second_pass(static_cast<int>(i));
    }
    std::vector<std::string> result;
    for (const int d : assigned_) result.push_back(full_names_[d]);
    return result;
  }

 private:
  bool generator(int i) const {
    const ReferenceOp& op = *nodes_[i].op;
    return op.inputs.empty() && op.output != "ref" && op.output != "two";
  }

  void begin(int i) {
    auto set = std::make_shared<Set>();
    set->members = {i};
    const ReferenceOp& op = *nodes_[i].op;
    for (const auto& [type, priority] : op.kernels) {
      const bool there =
          std::any_of(names_.begin(), names_.end(),
                      [&](const DeviceName& d) { return d.type == type; });
      if (there) set->types[type] = priority;
    }
    if (set->types.empty()) throw CannotPlace("no kernel of " + op.name);
    set->requested = DeviceName::parse(nodes_[i].request);
    const bool state = op.output == "ref" || op.output == "resource";
    if (op.inputs.empty() && state) set->resource = set->requested;
    sets_.push_back(std::move(set));
  }

  // B1.6 and B4.5: the set of both, or nothing.
  std::shared_ptr<Set> joined(const Set& a, const Set& b) const {
    auto both = std::make_shared<Set>();
    const auto types = intersect(a.types, b.types);
    if (!types) return nullptr;
    both->types = *types;
    try {
      both->resource = merge(a.resource, b.resource);
      const DeviceName asked =
          merge(a.requested, b.requested,
                soft_ ? MergeConflict::kDrop : MergeConflict::kFail);
      both->requested = both->resource.merged_over(asked);
    } catch (const errors::InvalidArgument&) {
      return nullptr;
    }
    both->members = a.members;
    both->members.insert(both->members.end(), b.members.begin(),
                         b.members.end());
    return both;
  }

  bool join(int a, int b) {
    if (sets_[a] == sets_[b]) return true;
    const std::shared_ptr<Set> both = joined(*sets_[a], *sets_[b]);
    if (!both) return false;
    for (const int m : both->members) sets_[m] = both;
    return true;
  }

  void edges_of(int i) {
    for (size_t k = 0; k < nodes_[i].inputs.size(); ++k) {
      if (nodes_[i].op->inputs[k] == "value") continue;
      const int from = nodes_[i].inputs[k];
      if (sets_[from] == sets_[i]) continue;
      if (!are_compatible(sets_[from]->resource, sets_[i]->resource)) {
        throw CannotPlace("resources of different devices");
      }
      if (!are_compatible(sets_[from]->requested, sets_[i]->requested)) {
        sets_[i]->requested = sets_[from]->requested;
      }
      if (!join(from, i)) throw CannotPlace("an edge");
    }
  }

  void groups_of(int i) {
    std::vector<std::string> names = nodes_[i].groups;
    names.push_back("n" + std::to_string(i));
    for (const std::string& name : names) {
      const auto [it, fresh] = heads_.emplace(name, i);
      if (!fresh && !join(it->second, i) && !soft_) throw CannotPlace(name);
    }
  }

  std::vector<int> matching(const DeviceName& request, const Set& set) const {
    std::vector<int> found;
    for (size_t d = 0; d < names_.size(); ++d) {
      if (request.matches(names_[d]) && set.types.contains(*names_[d].type)) {
        found.push_back(static_cast<int>(d));
      }
    }
    std::stable_sort(found.begin(), found.end(), [&](int a, int b) {
      return set.types.at(*names_[a].type) > set.types.at(*names_[b].type);
    });
    return found;
  }

  // B4.8
  std::vector<int> candidates(int i) const {
    const Set& set = *sets_[i];
    if (set.device >= 0) return {set.device};
    std::vector<int> found = matching(set.requested, set);
    if (!found.empty() || !soft_) return found;
    DeviceName relaxed = set.requested;
    if (!set.resource.type) relaxed.type.reset();
    if (!set.resource.id) relaxed.id.reset();
    found = matching(relaxed, set);
    if (!found.empty()) return found;
    relaxed.type.reset();
    relaxed.id.reset();
    return matching(relaxed, set);
  }

  void assign(int i, int device) {
    assigned_[i] = device;
    sets_[i]->device = device;
  }

  std::vector<int> consumers(int i) const {
    std::vector<int> users;
    for (size_t u = 0; u < nodes_.size(); ++u) {
      for (const int in : nodes_[u].inputs) {
        if (in == i) users.push_back(static_cast<int>(u));
      }
    }
    return users;
  }

  // B4.9b
  bool passes_on(int i) const {
    const ReferenceNode& n = nodes_[i];
    if (n.op->name != "Identity" || !n.request.empty()) return false;
    const std::vector<int> users = consumers(i);
    return users.size() == 1 &&
           nodes_[n.inputs[0]].request == nodes_[users[0]].request;
  }

  void first_pass(int i) {
    const std::vector<int> devices = candidates(i);
    if (devices.empty()) throw CannotPlace("no device");
    if (nodes_[i].op->metadata || passes_on(i)) {
      const int there = assigned_[nodes_[i].inputs[0]];
      if (std::count(devices.begin(), devices.end(), there) > 0) {
        return assign(i, there);
      }
    }
    assign(i, devices[0]);
  }

  void second_pass(int i) {
    const std::vector<int> devices = candidates(i);
    if (devices.empty()) throw CannotPlace("no device");
    const std::vector<int> users = consumers(i);
    int there = users.empty() ? -1 : assigned_[users[0]];
    for (const int u : users) {
      if (assigned_[u] != there) there = -1;
    }
    const bool fits = std::count(devices.begin(), devices.end(), there) > 0;
    assign(i, fits ? there : devices[0]);
  }

  const std::vector<ReferenceNode>& nodes_;
  std::vector<std::string> full_names_;
  std::vector<DeviceName> names_;
  bool soft_;
  std::vector<std::shared_ptr<Set>> sets_;
  std::map<std::string, int> heads_;
  std::vector<int> assigned_;
};

}  // namespace

std::vector<std::string> place_by_reference(
    const std::vector<ReferenceNode>& nodes,
    const std::vector<std::string>& devices, bool soft) {
  return Reference(nodes, devices, soft).run();
}

}  // namespace berth::conformance
