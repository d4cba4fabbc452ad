#include "place/what_if_moves.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "device/request_text.h"
#include "op/kernel.h"
#include "place/explain.h"
#include "place/placer.h"

namespace berth {

namespace {

using placement::Change;
using ChangeKind = Change::Kind;

// The node with this name, else the handle of the variable with this name.
int32_t node_named(const Graph& graph, const std::string& name) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph[i].name == name) return i;
  }
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (variable_name(graph[i]) == name) return i;
  }
  throw errors::InvalidArgument(
      fmt::format("there is no node \"{}\" to change", name));
}

std::string group_name(const std::string& text) {
  constexpr std::string_view kPrefix = "loc:@";
  return text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
}

void add_kernel(const OpDef& op, const std::string& type,
                PlaceOptions& options) {
  bool any = false;
  for (PlaceDevice& d : options.devices) {
    if (d.name.name().type != type) continue;
    any = true;
    d.runs = [before = d.runs, table = d.kernels, &op](const OpDef& asked,
                                                       DType dtype) {
      if (&asked == &op) return true;
      return before ? before(asked, dtype)
                    : !table || can_run(*table, asked, dtype);
    };
  }
  if (!any) {
    throw errors::InvalidArgument(
        fmt::format("no device is of type \"{}\"", type));
  }
}

// How a user would write the device: short where that is unambiguous.
std::string request_for(const DeviceTable& devices, int32_t device) {
  const DeviceName& name = devices[device].name;
  int alike = 0;
  for (int32_t d = 0; d < devices.size(); ++d) {
    alike += devices[d].name.type == name.type && devices[d].name.id == name.id;
  }
  if (alike > 1) return devices[device].id.text();
  return request_text({.type = name.type, .id = name.id});
}

// Restores the fields of nodes that changes write.
class Undo {
 public:
  Undo(Graph& graph, const std::vector<Change>& changes) : graph_(graph) {
    for (const Change& c : changes) {
      const int32_t i = node_named(graph, c.op);
      const Node& n = graph[i];
      old_.push_back({i, n.requested, n.colocated, n.variable});
    }
  }
  ~Undo() {
    for (auto it = old_.rbegin(); it != old_.rend(); ++it) {
      Node& n = graph_[it->node];
      n.requested = it->requested;
      n.colocated = std::move(it->colocated);
      n.variable = std::move(it->variable);
    }
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

 private:
  struct Old {
    int32_t node;
    DeviceId requested;
    std::vector<std::string> colocated;
    Tensor variable;
  };
  Graph& graph_;
  std::vector<Old> old_;
};

}  // namespace

void apply_change(Graph& graph, const Change& change, PlaceOptions& options) {
  Node& n = graph[node_named(graph, change.op)];
  switch (change.kind) {
    case ChangeKind::kMoveVariable:
      n.variable = Tensor();
      n.requested = change.to;
      break;
    case ChangeKind::kRequest:
      n.requested = change.to;
      break;
    case ChangeKind::kWithdrawRequest:
      n.requested.clear();
      break;
    case ChangeKind::kWithdrawGroup: {
      const auto gone = std::erase_if(n.colocated, [&](const std::string& g) {
        return group_name(g) == change.to;
      });
      if (gone == 0) {
        throw errors::InvalidArgument(fmt::format(
            "\"{}\" is not in colocation group \"{}\"", n.name, change.to));
      }
      break;
    }
    case ChangeKind::kAddKernel:
      add_kernel(*n.op, change.to, options);
      break;
  }
}

bool needs_kernel(const std::vector<Change>& changes) {
  return std::any_of(changes.begin(), changes.end(), [](const Change& c) {
    return c.kind == ChangeKind::kAddKernel;
  });
}

MoveFinder::MoveFinder(Graph& graph, const Placement& placement,
                       const PlaceOptions& options, int32_t node)
    : graph_(graph), placement_(placement), options_(options), node_(node) {}

std::optional<std::vector<Change>> MoveFinder::find(int32_t device) {
  for (Changes& guess : guesses(device)) {
    if (works(guess, device)) return minimal(std::move(guess), device);
  }
  return {};
}

bool MoveFinder::works(const Changes& changes, int32_t device) {
  const Undo undo(graph_, changes);
  PlaceOptions options = options_;
  try {
    for (const Change& c : changes) apply_change(graph_, c, options);
    Placer placer(graph_, options);
    run_rules(placer);
    return placer.device_of[placer.root(node_)] == device;
  } catch (const errors::Error&) {
    return false;
  }
}

MoveFinder::Changes MoveFinder::minimal(Changes changes, int32_t device) {
  for (size_t i = 0; i < changes.size() && changes.size() > 1;) {
    Changes less = changes;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    if (works(less, device)) {
      changes = std::move(less);
    } else {
      ++i;
    }
  }
  return changes;
}

Change MoveFinder::change(ChangeKind kind, int32_t node, std::string to) const {
  std::string name = graph_[node].name;
  if (kind == ChangeKind::kMoveVariable) {
    const std::string& called = variable_name(graph_[node]);
    bool alone = true;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      alone &= i == node ||
               (graph_[i].name != called && variable_name(graph_[i]) != called);
    }
    if (alone) name = called;
  }
  return {kind, std::move(name), std::move(to), site_of(graph_, node)};
}

// What takes the node out of its groups, and others out of the node's.
MoveFinder::Changes MoveFinder::leave_groups() {
  Changes all;
  for (const std::string& g : graph_[node_].colocated) {
    all.push_back(change(ChangeKind::kWithdrawGroup, node_, group_name(g)));
  }
  for (int32_t i = 0; i < graph_.size(); ++i) {
    for (const std::string& g : graph_[i].colocated) {
      if (i != node_ && group_name(g) == graph_[node_].name) {
        all.push_back(
            change(ChangeKind::kWithdrawGroup, i, graph_[node_].name));
      }
    }
  }
  return all;
}

MoveFinder::Changes MoveFinder::with(Changes a, const Changes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<MoveFinder::Changes> MoveFinder::guesses(int32_t device) {
  DeviceTable devices(options_);
  ConstraintSets sets(graph_, options_, devices);
  sets.connect();
  const std::string to = request_for(devices, device);
  const std::string& type = *devices[device].name.type;
  const int32_t root = sets.find(node_);
  Changes kernels, own_kernel, others;
  std::vector<const OpDef*> given;
  const auto can = [&](int32_t i) {
    return sets.kernels().of(graph_, graph_[i]).devices.has(device);
  };
  if (!can(node_))
    own_kernel.push_back(change(ChangeKind::kAddKernel, node_, type));
  for (int32_t i = 0; i < graph_.size(); ++i) {
    if (sets.find(i) != root) continue;
    const Node& n = graph_[i];
    if (!can(i) && std::find(given.begin(), given.end(), n.op) == given.end()) {
      given.push_back(n.op);
      kernels.push_back(change(ChangeKind::kAddKernel, i, type));
    }
    const bool suits = devices.mask(sets.request(i)).has(device);
    if (sets.handle(i)) {
      if (n.variable.defined() || !n.requested.empty()) {
        if (n.variable.defined() || !suits) {
          others.push_back(change(ChangeKind::kMoveVariable, i, to));
        }
      }
    } else if (!n.requested.empty() && !suits && i != node_) {
      others.push_back(change(ChangeKind::kWithdrawRequest, i, ""));
    }
  }
  const bool variable = sets.handle(node_);
  const Change ask = change(
      variable ? ChangeKind::kMoveVariable : ChangeKind::kRequest, node_, to);
  const Changes apart = leave_groups();
  std::vector<Changes> all;
  if (!own_kernel.empty()) all.push_back(own_kernel);
  all.push_back(with({ask}, own_kernel));
  if (const int32_t d = decider(); d >= 0 && d != node_) {
    const bool handle = sets.handle(d);
    const Change there = change(
        handle ? ChangeKind::kMoveVariable : ChangeKind::kRequest, d, to);
    all.push_back({there});
    all.push_back(with({there}, kernels));
  }
  all.push_back(with(others, kernels));
  all.push_back(with(with({ask}, others), kernels));
  if (!apart.empty()) {
    all.push_back(with(with({ask}, apart), own_kernel));
    all.push_back(with(with(with({ask}, apart), others), kernels));
  }
  // An empty list changes nothing, and a variable is moved only once.
  std::erase_if(all, [](const Changes& c) { return c.empty(); });
  return all;
}

// The node whose request or variable decided for the set.
int32_t MoveFinder::decider() const {
  int32_t at = node_;
  for (int hops = 0; hops < 3; ++hops) {
    const PlaceReason r = placement_.reasons[at];
    const bool joined =
        r.rule == PlaceRule::kVariable || r.rule == PlaceRule::kGroup;
    if (!joined || r.because < 0 || r.because == at) break;
    at = r.because;
  }
  return at;
}

}  // namespace berth
