#include "conformance/place/reference_placer.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "berth/errors.h"

namespace berth::conformance {

namespace {

using Priorities = std::map<std::string, int>;

int rank_of_type(const std::string& type) {
  return type == "GPU" ? 2 : type == "CPU" ? 1 : type == "COMPOSITE" ? -1 : 0;
}

bool composite(const DeviceName& d) { return d.type == "COMPOSITE"; }

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
  std::vector<int> members;  // nodes, then values of calls
  DeviceName resource, requested;
  std::optional<DeviceName> assigned;
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
    find_sets();
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
  void find_sets() {
    for (size_t i = 0; i < nodes_.size(); ++i) begin(static_cast<int>(i));
    for (size_t i = 0; i < nodes_.size(); ++i) call(static_cast<int>(i));
    for (size_t i = 0; i < nodes_.size(); ++i) edges_of(static_cast<int>(i));
  }

  bool generator(int i) const {
    const ReferenceOp& op = *nodes_[i].op;
    const ReferenceFunction* f = nodes_[i].callee;
    if (f != nullptr && f->results.size() != 1) return false;
    return op.inputs.empty() && op.output != "ref" && op.output != "two" &&
           nodes_[i].assigned.empty();
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
    if (!nodes_[i].assigned.empty()) {
      set->assigned = set->requested = DeviceName::parse(nodes_[i].assigned);
      if (!runs(*set, *set->assigned)) throw CannotPlace("assigned elsewhere");
      sets_.push_back(std::move(set));
      return;
    }
    set->requested = DeviceName::parse(nodes_[i].request);
    const bool state = op.output == "ref" || op.output == "resource";
    if (op.inputs.empty() && state) set->resource = set->requested;
    sets_.push_back(std::move(set));
  }

  // A composite device has values of every op that runs anywhere.
  static bool runs(const Set& set, const DeviceName& on) {
    return composite(on) || set.types.contains(*on.type);
  }

  // B4.4: what a function that returns handles says of these, and of those that
  // it takes and returns. Sets of the body have one value each out here.
  void call(int i) {
    const ReferenceFunction* f = nodes_[i].callee;
    if (f == nullptr || f->results.empty()) return;
    if (std::count(open_.begin(), open_.end(), f) > 0) {
      throw CannotPlace("recursion of " + f->name);
    }
    std::vector<ReferenceNode> body = f->nodes;
    for (size_t k = static_cast<size_t>(f->num_args); k < body.size(); ++k) {
      if (body[k].request.empty()) body[k].request = nodes_[i].request;
    }
    Reference inside(body, full_names_, soft_);
    inside.open_ = open_;
    inside.open_.push_back(f);
    inside.find_sets();
    std::map<const Set*, int> outside;
    for (size_t k = 0; k < f->results.size(); ++k) {
      const Set& s = *inside.sets_[inside.element(f->results[k])];
      auto value = std::make_shared<Set>();
      value->members = {static_cast<int>(sets_.size())};
      value->resource = value->requested = s.resource;
      for (const auto& [type, priority] : s.types) value->types[type] = 0;
      const auto [it, fresh] = outside.emplace(&s, value->members[0]);
      values_[{i, static_cast<int>(k)}] = it->second;
      if (fresh) sets_.push_back(std::move(value));
    }
    for (int a = 0; a < f->num_args; ++a) {
      const auto it = outside.find(inside.sets_[a].get());
      if (it != outside.end()) {
        resource_edge(element(nodes_[i].inputs[a]), it->second);
      }
    }
  }

  // The node that makes a value, or the value of a call by itself.
  int element(const ReferenceInput& v) const {
    const auto it = values_.find({v.node, v.output});
    return it == values_.end() ? v.node : it->second;
  }

  // B1.6 and B4.5: the set of both, or nothing.
  std::shared_ptr<Set> joined(const Set& a, const Set& b, bool group) const {
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
      if (a.assigned && b.assigned && a.assigned != b.assigned) return nullptr;
      both->assigned = a.assigned ? a.assigned : b.assigned;
      if (both->assigned) {
        // Softly a group moves a variable to what is placed.
        const bool fits = both->resource.matches(*both->assigned);
        if (!fits && !(group && soft_)) return nullptr;
        both->requested = *both->assigned;
        if (!runs(*both, *both->assigned)) return nullptr;
      }
    } catch (const errors::InvalidArgument&) {
      return nullptr;
    }
    both->members = a.members;
    both->members.insert(both->members.end(), b.members.begin(),
                         b.members.end());
    return both;
  }

  bool join(int a, int b, bool group = false) {
    if (sets_[a] == sets_[b]) return true;
    const std::shared_ptr<Set> both = joined(*sets_[a], *sets_[b], group);
    if (!both) return false;
    for (const int m : both->members) sets_[m] = both;
    return true;
  }

  void edges_of(int i) {
    for (size_t k = 0; k < nodes_[i].inputs.size(); ++k) {
      if (nodes_[i].op->inputs[k] == "value") continue;
      if (nodes_[i].callee != nullptr) continue;
      const int from = element(nodes_[i].inputs[k]);
      if (!leaves_composite(*sets_[from], *sets_[i])) resource_edge(from, i);
    }
  }

  // A handle on a composite device may be read on any one.
  static bool leaves_composite(const Set& from, const Set& to) {
    if (from.assigned && to.assigned) {
      return composite(*from.assigned) && !composite(*to.assigned);
    }
    return composite(from.resource) && to.resource.type &&
           !composite(to.resource);
  }

  void resource_edge(int from, int to) {
    if (sets_[from] == sets_[to]) return;
    if (!are_compatible(sets_[from]->resource, sets_[to]->resource)) {
      throw CannotPlace("resources of different devices");
    }
    if (!are_compatible(sets_[from]->requested, sets_[to]->requested)) {
      sets_[to]->requested = sets_[from]->requested;
    }
    if (!join(from, to)) throw CannotPlace("an edge");
  }

  void groups_of(int i) {
    std::vector<std::string> names = nodes_[i].groups;
    names.push_back("n" + std::to_string(i));
    for (const std::string& name : names) {
      const auto [it, fresh] = heads_.emplace(name, i);
      if (!fresh && !join(it->second, i, true) && !soft_) {
        throw CannotPlace(name);
      }
    }
  }

  std::vector<int> matching(const DeviceName& request, const Set& set) const {
    std::vector<int> found;
    for (size_t d = 0; d < names_.size(); ++d) {
      if (request.matches(names_[d]) && runs(set, names_[d])) {
        found.push_back(static_cast<int>(d));
      }
    }
    std::stable_sort(found.begin(), found.end(), [&](int a, int b) {
      const bool ca = composite(names_[a]), cb = composite(names_[b]);
      if (ca || cb) return !ca && cb;
      return set.types.at(*names_[a].type) > set.types.at(*names_[b].type);
    });
    return found;
  }

  // B4.8
  std::vector<int> candidates(int i) const {
    const Set& set = *sets_[i];
    if (set.device >= 0) return {set.device};
    if (set.assigned) return matching(*set.assigned, set);
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
      for (const ReferenceInput& in : nodes_[u].inputs) {
        if (in.node == i) users.push_back(static_cast<int>(u));
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
           nodes_[n.inputs[0].node].request == nodes_[users[0]].request;
  }

  void first_pass(int i) {
    const std::vector<int> devices = candidates(i);
    if (devices.empty()) throw CannotPlace("no device");
    if (nodes_[i].op->metadata || passes_on(i)) {
      const int there = assigned_[nodes_[i].inputs[0].node];
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
  std::vector<std::shared_ptr<Set>> sets_;  // of nodes and values of calls
  std::map<std::pair<int, int>, int> values_;
  std::vector<const ReferenceFunction*> open_;  // around this body
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
