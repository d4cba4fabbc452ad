// Constraints in words, and a smallest conflicting set of them.

#include "place/conflict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "base/where.h"
#include "place/constraint_sets.h"
#include "place/failure.h"
#include "tensor/variable_state.h"

namespace berth {

std::string PlaceConflict::str() const {
  std::string s;
  for (const PlaceConstraint& c : constraints) {
    s += fmt::format("\n  {}{}", c.text, where_text(nullptr, c.site));
  }
  return s;
}

std::vector<PlaceConstraint> ConstraintSets::own_constraints(int32_t element) {
  std::vector<PlaceConstraint> own;
  const int32_t i = node_of(element);
  const Node& n = graph_[i];
  const auto add = [&](Kind kind, std::string what, DeviceSet mask,
                       std::string text) {
    own.push_back({kind, i, -1, std::move(what), mask, site_of(graph_, i),
                   std::move(text), graph_[i].name});
  };
  if (element >= graph_.size()) {
    const CallValue& v = call_values_[element - graph_.size()];
    const DeviceSet mask = v.allowed & devices_.mask(v.resource);
    const std::string what = devices_.name(v.resource).str();
    if (mask != devices_.all()) {
      add(v.pinned ? Kind::kVariable : Kind::kResource, what, mask,
          fmt::format("resource {} that call \"{}\" returns is on {}",
                      v.value.output, n.name, devices_.list(mask)));
    }
    return own;
  }
  if (!n.assigned.empty() && options_.keep_assigned) {
    const DeviceSet at = devices_.mask(devices_.parse(n.assigned));
    add(Kind::kAssigned, n.assigned.text(), at ? device_bit(at.first()) : at,
        fmt::format("\"{}\" is assigned to {}", n.name,
                    devices_.list(device_bit(at.first()))));
    return own;
  }
  const DeviceSet kernels = kernels_.of(graph_, n).devices;
  if (n.variable.defined()) {
    const DeviceSet at = sets_[i].pinned ? sets_[i].pin : 0;
    const DeviceId name = variable_state(n.variable).device->id();
    const int32_t d = devices_.find(name);
    add(Kind::kVariable, name.text(), d < 0 ? at : device_bit(d),
        fmt::format("variable \"{}\" lives on {}", variable_name(n),
                    short_device(name)));
  } else if (!n.requested.empty()) {
    const bool resource = handle(i);
    add(resource ? Kind::kResource : Kind::kRequest, n.requested.text(),
        devices_.mask(resource ? resource_of(i) : requests_[i]),
        fmt::format("{}\"{}\" was asked for on \"{}\"",
                    resource ? "variable " : n.op->name() + " ",
                    resource ? variable_name(n) : n.name, n.requested.text()));
  }
  if (kernels != devices_.all()) {
    add(Kind::kKernels, "", kernels,
        fmt::format("{} \"{}\" has a kernel for {} on {}", n.op->name(), n.name,
                    name_of(node_dtype(graph_, n)),
                    kernels ? devices_.list(kernels) + " alone" : "no device"));
  }
  if (std::binary_search(on_host_.begin(), on_host_.end(), i)) {
    add(Kind::kHost, "CPU", devices_.hosts(),
        fmt::format("{} \"{}\" holds data that only the host can", n.op->name(),
                    n.name));
  }
  return own;
}

PlaceConstraint ConstraintSets::text_of(const Link& l) const {
  PlaceConstraint c;
  c.kind = l.kind;
  c.node = node_of(l.to);
  c.other = node_of(l.from);
  c.site = site_of(graph_, c.node);
  const Node &to = graph_[c.node], &from = graph_[c.other];
  c.node_name = to.name;
  c.other_name = from.name;
  const std::string to_op = fmt::format("{} \"{}\"", to.op->name(), to.name);
  switch (l.kind) {
    case Kind::kResourceEdge:
      c.text = fmt::format("{} touches {} \"{}\"", to_op,
                           handle(c.other) ? "variable" : "the resource of",
                           handle(c.other) ? variable_name(from) : from.name);
      break;
    case Kind::kRefEdge:
      c.text = fmt::format("{} takes a reference to \"{}\"", to_op, from.name);
      break;
    case Kind::kVariantEdge:
      c.text = fmt::format("{} takes the variant of \"{}\"", to_op, from.name);
      break;
    case Kind::kGroup:
      c.what = group_names_[l.name];
      c.text = fmt::format("{} is in colocation group \"{}\" with \"{}\"",
                           to_op, c.what, from.name);
      break;
    default:
      c.text = fmt::format("call \"{}\" passes on the resource of \"{}\"",
                           to.name, from.name);
  }
  return c;
}

std::vector<PlaceConstraint> ConstraintSets::connection(int32_t a,
                                                        int32_t b) const {
  std::vector<PlaceConstraint> chain;
  if (proofs_.empty() || a == b) return chain;
  // Neighbours, as on a path; skip the route to the root.
  for (const int32_t below : {a, b}) {
    if (proofs_[below].parent != (below == a ? b : a)) continue;
    return {text_of(links_[proofs_[below].link])};
  }
  std::vector<int32_t> up_a = {a};
  std::map<int32_t, size_t> place = {{a, 0}};
  for (int32_t at = a; proofs_[at].parent >= 0;) {
    at = proofs_[at].parent;
    place.emplace(at, up_a.size());
    up_a.push_back(at);
  }
  std::vector<int32_t> up_b;
  int32_t meet = b;
  for (; !place.contains(meet); meet = proofs_[meet].parent) {
    up_b.push_back(meet);
  }
  for (size_t k = 0; k < place[meet]; ++k) {
    chain.push_back(text_of(links_[proofs_[up_a[k]].link]));
  }
  for (auto it = up_b.rbegin(); it != up_b.rend(); ++it) {
    chain.push_back(text_of(links_[proofs_[*it].link]));
  }
  return chain;
}

// Finds a minimal conflict in one set: constraints on single nodes that no
// device satisfies, by deletion; then the proof tree that connects them.
class ConflictFinder {
 public:
  using Kind = PlaceConstraint::Kind;

  ConflictFinder(ConstraintSets& sets, int32_t element)
      : s_(sets), root_(sets.find(element)) {
    for (int32_t e = 0; e < s_.num_elements(); ++e) {
      if (s_.find(e) == root_) members_.push_back(e);
    }
  }

  PlaceConflict find() {
    // Start with the most binding; leave out requests that a source overrules.
    for (int level = 0; level < 3; ++level) {
      collect(level);
      if (intersection(masks()) == 0) break;
    }
    PlaceConflict conflict;
    const std::vector<DeviceSet> core = minimal(masks());
    if (intersection(core) == 0 && !core.empty()) connect(core, &conflict);
    return conflict;
  }

 private:
  void collect(int level) {
    own_.clear();
    for (const int32_t e : members_) {
      for (PlaceConstraint& c : s_.own_constraints(e)) {
        if (c.kind == Kind::kResource && level < 1) continue;
        if (c.kind == Kind::kRequest && (level < 2 || !in_force(c.node))) {
          continue;
        }
        own_[c.mask].emplace_back(e, std::move(c));
      }
    }
  }

  bool in_force(int32_t node) const {
    for (const auto asked : s_.active_requests_) {
      if (s_.devices().compatible(s_.request(node), asked)) return true;
    }
    return false;
  }

  std::vector<DeviceSet> masks() const {
    std::vector<DeviceSet> m;
    for (const auto& [mask, list] : own_) m.push_back(mask);
    return m;
  }

  DeviceSet intersection(const std::vector<DeviceSet>& masks) const {
    DeviceSet all = s_.devices().all();
    for (const DeviceSet& m : masks) all &= m;
    return all;
  }

  // One mask, else two, else what is left after trying without each.
  std::vector<DeviceSet> minimal(std::vector<DeviceSet> m) const {
    for (const DeviceSet& a : m) {
      if (a == 0) return {a};
    }
    for (size_t i = 0; i < m.size(); ++i) {
      for (size_t j = i + 1; j < m.size(); ++j) {
        if ((m[i] & m[j]) == 0) return {m[i], m[j]};
      }
    }
    // Drop first what leaves many devices.
    std::stable_sort(m.begin(), m.end(), [](DeviceSet a, DeviceSet b) {
      return a.count() > b.count();
    });
    for (size_t i = 0; i < m.size();) {
      std::vector<DeviceSet> less = m;
      less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
      if (intersection(less) == 0) {
        m = std::move(less);
      } else {
        ++i;
      }
    }
    return m;
  }

  // Grows a tree from the holders of the first mask to one of each other.
  void connect(const std::vector<DeviceSet>& core, PlaceConflict* conflict) {
    for (const int32_t e : members_) {
      const ConstraintSets::Proof& p =
          s_.proofs_.empty() ? ConstraintSets::Proof{} : s_.proofs_[e];
      if (p.parent < 0) continue;
      next_[e].push_back(p.parent);
      next_[p.parent].push_back(e);
    }
    std::vector<int32_t> from;
    if (core.size() == 2) {
      // Take the nearest pair of holders.
      for (const auto& [e, c] : own_[core[0]]) from.push_back(e);
    } else {
      from.push_back(own_[core[0]].front().first);
    }
    std::set<int32_t> tree(from.begin(), from.end());
    std::vector<PlaceConstraint> binary;
    for (size_t k = 1; k < core.size(); ++k) {
      const std::vector<int32_t> path = nearest(tree, core[k]);
      if (k == 1) {
        tree = {path.front()};
        add_own(path.front(), core[0], conflict);
      }
      for (size_t p = 1; p < path.size(); ++p) {
        for (PlaceConstraint& c : s_.connection(path[p - 1], path[p])) {
          conflict->constraints.push_back(std::move(c));
        }
      }
      add_own(path.back(), core[k], conflict);
      tree.insert(path.begin(), path.end());
    }
    if (core.size() == 1) add_own(from.front(), core[0], conflict);
    for (PlaceConstraint& c : conflict->constraints) {
      c.mask = c.binary() ? ~DeviceSet{0} : s_.devices().as_given(c.mask);
    }
  }

  void add_own(int32_t element, DeviceSet mask, PlaceConflict* conflict) {
    for (const auto& [e, c] : own_[mask]) {
      if (e != element) continue;
      conflict->constraints.push_back(c);
      return;
    }
  }

  // The path from the tree to the nearest element with `mask`.
  std::vector<int32_t> nearest(const std::set<int32_t>& tree, DeviceSet mask) {
    std::set<int32_t> goals;
    for (const auto& [e, c] : own_[mask]) goals.insert(e);
    std::map<int32_t, int32_t> came;
    std::queue<int32_t> open;
    for (const int32_t t : tree) {
      came[t] = -1;
      open.push(t);
    }
    while (!open.empty()) {
      const int32_t at = open.front();
      open.pop();
      if (goals.contains(at)) {
        std::vector<int32_t> path;
        for (int32_t p = at; p >= 0; p = came[p]) path.push_back(p);
        std::reverse(path.begin(), path.end());
        return path;
      }
      for (const int32_t e : next_[at]) {
        if (came.emplace(e, at).second) open.push(e);
      }
    }
    return {*tree.begin()};
  }

  ConstraintSets& s_;
  const int32_t root_;
  std::vector<int32_t> members_;
  // Constraints on single elements, by the devices they allow.
  std::map<DeviceSet, std::vector<std::pair<int32_t, PlaceConstraint>>> own_;
  std::map<int32_t, std::vector<int32_t>> next_;  // proof tree
};

void ConstraintSets::fail(int32_t i) {
  if (active_requests_.empty()) active_requests_.push_back(set_of(i).requested);
  const PlaceConflict conflict = ConflictFinder(*this, i).find();
  throw_conflict(*this, i, conflict);
}

}  // namespace berth
