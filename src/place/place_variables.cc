// Variables decide for the ops that touch them.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "berth/errors.h"
#include "place/placer.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

class VariableGroups {
 public:
  explicit VariableGroups(PlacerState& state)
      : s_(state), parent_(state.graph.nodes.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    fit_.resize(parent_.size());
    anchor_.assign(parent_.size(), -1);
    member_.assign(parent_.size(), false);
  }

  void run() {
    const int32_t n = s_.graph.size();
    for (int32_t i = 0; i < n; ++i) {
      if (is_handle(i)) add_handle(i);
    }
    for (int32_t i = 0; i < n; ++i) follow_other_handle(i);
    for (int32_t i = 0; i < n; ++i) {
      const OpKind kind = s_.graph[i].op->kind();
      if (kind == OpKind::kCall || kind == OpKind::kControl) continue;
      for (const ValueRef& v : s_.graph[i].inputs) {
        if (s_.graph.spec(v).dtype != resource) continue;
        member_[i] = true;
        unite(v.node, i);
      }
    }
    for (int32_t i = 0; i < n; ++i) {
      if (member_[i]) members_of_[find(i)].push_back(i);
    }
    for (int32_t i = 0; i < n; ++i) {
      if (find(i) == i && member_[i]) place_group(members_of_[i]);
    }
  }

 private:
  int32_t find(int32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  bool is_handle(int32_t i) const {
    const Node& n = s_.graph[i];
    return n.inputs.empty() && !n.outputs.empty() &&
           n.outputs[0].dtype == resource;
  }

  // Where a handle must be: `anchor_` is the handle that decides, `fit_` the
  // devices it allows, in order of preference.
  void add_handle(int32_t i) {
    member_[i] = true;
    const Node& n = s_.graph[i];
    if (n.variable.defined()) {
      const std::string& name = variable_state(n.variable).device->str();
      const int32_t d = s_.find(name);
      if (d < 0) {
        throw errors::InvalidArgument(fmt::format(
            "{}: the variable lives on {}, which is not among the devices to "
            "place on: {}",
            s_.describe(i), name, s_.list_devices()));
      }
      fit_[i] = {d};
      anchor_[i] = i;
    } else if (!n.requested.empty()) {
      fit_[i] = s_.matches(n.requested, i);
      anchor_[i] = i;
    }
  }

  // A handle colocated with another (slots with their variable) shares its
  // group unless it has a place of its own.
  void follow_other_handle(int32_t i) {
    const int32_t c = s_.graph[i].follows;
    if (c < 0 || c == i || !is_handle(i) || !is_handle(c) || anchor_[i] >= 0) {
      return;
    }
    unite(c, i);
  }

  void unite(int32_t handle, int32_t user) {
    const int32_t a = find(handle), b = find(user);
    if (a == b) return;
    const int32_t first = std::min(a, b), second = std::max(a, b);
    parent_[second] = first;
    if (anchor_[second] < 0) return;
    if (anchor_[first] < 0) {
      anchor_[first] = anchor_[second];
      fit_[first] = std::move(fit_[second]);
      return;
    }
    std::vector<int32_t> both;
    for (int32_t d : fit_[first]) {
      if (std::find(fit_[second].begin(), fit_[second].end(), d) !=
          fit_[second].end()) {
        both.push_back(d);
      }
    }
    if (both.empty()) fail_conflict(user, first, second);
    // The narrower one is the better reason.
    if (fit_[second].size() < fit_[first].size()) {
      anchor_[first] = anchor_[second];
    }
    fit_[first] = std::move(both);
  }

  [[noreturn]] void fail_conflict(int32_t op, int32_t a, int32_t b) const {
    auto side = [&](int32_t root) {
      const int32_t h = anchor_[root];
      return fmt::format(
          "variable \"{}\" {} {}", s_.graph[h].name,
          s_.graph[h].variable.defined() ? "lives on" : "was asked for on",
          short_device(s_.devices[fit_[root][0]].full_name));
    };
    throw errors::InvalidArgument(fmt::format(
        "{} connects variables of different devices: {}, {}; expected one "
        "device: create both under the same device scope",
        s_.describe(op), side(a), side(b)));
  }

  void place_group(const std::vector<int32_t>& members) {
    const int32_t root = find(members[0]);
    std::vector<int32_t> fit = fit_[root];
    if (anchor_[root] < 0) {
      fit.resize(s_.devices.size());
      std::iota(fit.begin(), fit.end(), 0);
    }
    int32_t stuck = -1;
    for (int32_t d : fit) {
      const auto it =
          std::find_if(members.begin(), members.end(),
                       [&](int32_t m) { return !s_.can_run(m, d); });
      if (it == members.end()) return set_group(members, d);
      if (stuck < 0) stuck = *it;
    }
    const int32_t anchor = anchor_[root] >= 0 ? anchor_[root] : members[0];
    s_.fail_no_kernel(
        stuck, short_device(s_.devices[fit[0]].full_name),
        fmt::format("variable \"{}\" is there", s_.graph[anchor].name));
  }

  void set_group(const std::vector<int32_t>& members, int32_t device) {
    const int32_t anchor = anchor_[find(members[0])];
    for (int32_t m : members) {
      const bool handle = is_handle(m);
      const int32_t because = !handle ? handle_of(m) : anchor >= 0 ? anchor : m;
      s_.set(m, device,
             handle && anchor < 0 ? PlaceRule::kDefault : PlaceRule::kVariable,
             because);
      const std::string& asked = s_.graph[m].requested;
      if (asked.empty()) continue;
      const std::vector<int32_t>& fit = s_.matches(asked, m);
      if (std::find(fit.begin(), fit.end(), device) != fit.end()) continue;
      s_.placement.notes.push_back(
          {"request-ignored", m,
           fmt::format("{} was asked for on \"{}\" but touches variable "
                       "\"{}\" and runs where that lives, on {}",
                       s_.describe(m), asked, s_.graph[because].name,
                       short_device(s_.devices[device].full_name))});
    }
  }

  // The first handle that a node touches.
  int32_t handle_of(int32_t node) const {
    for (const ValueRef& v : s_.graph[node].inputs) {
      if (s_.graph.spec(v).dtype == resource) return v.node;
    }
    return node;
  }

  PlacerState& s_;
  std::vector<int32_t> parent_;
  std::vector<std::vector<int32_t>> fit_;  // at roots
  std::vector<int32_t> anchor_;            // at roots; -1: free
  std::vector<bool> member_;
  std::unordered_map<int32_t, std::vector<int32_t>> members_of_;
};

}  // namespace

void place_variables(PlacerState& state) { VariableGroups(state).run(); }

}  // namespace berth
