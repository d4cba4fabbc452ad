#include "distribute/parameter_server/partition_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "base/where.h"
#include "berth/errors.h"
#include "function/without_branches.h"
#include "passes/pipeline.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

constexpr int kMostSweeps = 64;

[[noreturn]] void raise_uncut(const Node& n, const std::string& why,
                              const char* advice) {
  const Site site = n.sources.empty() ? Site{} : n.sources.front().site;
  throw errors::Unimplemented(fmt::format(
      "ParameterServerStrategy: {} \"{}\"{} {}; expected {}", n.op->name(),
      n.name, where_text(nullptr, site), why, advice));
}

// A scatter of rows at ids, on a variable.
bool is_row_scatter(const OpDef& op) {
  return op.name().starts_with("ResourceScatter") &&
         !op.name().starts_with("ResourceScatterNd");
}

bool along_rows(const Node& n) {
  return n.op->attr<int64_t>(n.attrs.get(), "axis") == 0 &&
         n.op->attr<int64_t>(n.attrs.get(), "batch_dims") == 0;
}

bool is_row_gather(const Node& n) {
  return n.op->name() == "GatherV2" && along_rows(n);
}
bool is_gather_grad(const Node& n) {
  return n.op->name() == "GatherGrad" && along_rows(n);
}

int64_t elements_of(const OutSpec& s) {
  int64_t n = 1;
  for (int i = 0; i < s.shape.rank(); ++i) {
    if (s.shape[i] < 0) return -1;
    n *= s.shape[i];
  }
  return n;
}

// Costs about as much as reading its operands.
bool is_light(const Node& n) {
  const OpKind kind = n.op->kind();
  if (kind != OpKind::kCompute && kind != OpKind::kAlias) return false;
  if (n.op->random() || n.op->stateful()) return false;
  if (n.op->elementwise() || kind == OpKind::kAlias) return true;
  constexpr std::string_view kOthers[] = {
      "Sum", "Mean",        "Max",       "Min",      "Prod", "All",
      "Any", "BroadcastTo", "ZerosLike", "OnesLike", "Fill"};
  const std::string& name = n.op->name();
  return is_gather_grad(n) || std::find(std::begin(kOthers), std::end(kOthers),
                                        name) != std::end(kOthers);
}

}  // namespace

ServerSplit::ServerSplit(Graph graph,
                         const std::function<Known(const Tensor&)>& known)
    : g_(std::move(graph)) {
  run_device_free_passes(g_);
  without_branches(g_, [](const Node&) { return true; });
  run_device_free_passes(g_);
  users_.resize(g_.nodes.size());
  for (int32_t i = 0; i < g_.size(); ++i) {
    for (const ValueRef& v : g_[i].inputs) users_[v.node].push_back(i);
  }
  is_output_.assign(g_.nodes.size(), false);
  for (const ValueRef& v : g_.outputs) is_output_[v.node] = true;
  find_roles();
  for (;;) {
    find_counters(known);
    find_groups(known);
    find_server_nodes();
    check_shards();
    find_needed();
    if (find_levels()) return;
    // Other writes need the values of counters after the step.
    if (!steps_counters_) {
      raise_uncut(g_[blocked_write()],
                  "is in a function that reads and writes variables in turns",
                  "fewer reads of what was just written");
    }
    steps_counters_ = false;
  }
}

bool ServerSplit::is_handle(ValueRef v) const {
  return g_.spec(v).dtype == resource;
}

void ServerSplit::find_roles() {
  const size_t n = g_.nodes.size();
  roles_.assign(n, Role::kCompute);
  variable_of_node_.assign(n, -1);
  std::map<const TensorImpl*, int> numbers;
  for (int32_t i = 0; i < g_.size(); ++i) {
    const Node& node = g_[i];
    const OpKind kind = node.op->kind();
    if (kind == OpKind::kHandle) {
      const auto [it, fresh] =
          numbers.try_emplace(node.variable.impl(), variables_.size());
      if (fresh) variables_.push_back(node.variable);
      variable_of_node_[i] = it->second;
    }
    if (kind == OpKind::kHandle || kind == OpKind::kArgument ||
        kind == OpKind::kConstant) {
      roles_[i] = Role::kSource;
      continue;
    }
    bool takes = false;
    for (const ValueRef& v : node.inputs) takes = takes || is_handle(v);
    if (!takes) continue;
    if (kind == OpKind::kControl || kind == OpKind::kCall) {
      raise_uncut(node, "takes variables into a branch or a loop",
                  "variables that are read before it and written after it");
    }
    roles_[i] = kind == OpKind::kReadVariable ? Role::kRead : Role::kEffect;
  }
}

// Counters: scalars that are not trained and are only written by assignments,
// with values derived from counters and constants.
void ServerSplit::find_counters(
    const std::function<Known(const Tensor&)>& known) {
  counter_.assign(variables_.size(), false);
  for (size_t v = 0; v < variables_.size(); ++v) {
    const VariableState& s = variable_state(variables_[v]);
    counter_[v] = s.shape.num_elements() == 1 && !s.trainable &&
                  known(variables_[v]) != Known::kSomewhere && steps_counters_;
  }
  for (bool changed = true; changed;) {
    changed = false;
    derived_.assign(g_.nodes.size(), false);
    for (int32_t i = 0; i < g_.size(); ++i) {
      const Node& n = g_[i];
      if (roles_[i] == Role::kSource) {
        derived_[i] = n.op->kind() == OpKind::kConstant;
      } else if (roles_[i] == Role::kRead) {
        derived_[i] = counter_[variable_of(n.inputs[0])];
      } else if (roles_[i] == Role::kCompute) {
        bool all = is_light(n) && elements_of(n.outputs[0]) == 1;
        for (const ValueRef& v : n.inputs) all = all && derived_[v.node];
        derived_[i] = all;
      } else {
        const bool plain = is_plain_assign(*n.op) && derived_[n.inputs[1].node];
        for (const ValueRef& v : n.inputs) {
          if (plain || !is_handle(v) || !counter_[variable_of(v)]) continue;
          counter_[variable_of(v)] = false;
          changed = true;
        }
      }
    }
  }
}

void ServerSplit::find_groups(
    const std::function<Known(const Tensor&)>& known) {
  std::vector<int> root(variables_.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int v) {
    while (root[v] != v) v = root[v];
    return v;
  };
  for (int32_t i = 0; i < g_.size(); ++i) {
    if (roles_[i] != Role::kEffect) continue;
    int first = -1;
    for (const ValueRef& v : g_[i].inputs) {
      if (!is_handle(v)) continue;
      const int r = find(variable_of(v));
      if (first < 0) first = r;
      root[std::max(first, r)] = std::min(first, r);
      first = std::min(first, r);
    }
  }
  // Numbered in order of creation, so that shards are assigned in that order.
  std::vector<int> order(variables_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return variable_state(variables_[a]).serial <
           variable_state(variables_[b]).serial;
  });
  std::map<int, int> group_of_root;
  groups_.clear();
  group_of_variable_.assign(variables_.size(), -1);
  for (const int v : order) {
    const auto [it, fresh] =
        group_of_root.try_emplace(find(v), static_cast<int>(groups_.size()));
    if (fresh) groups_.emplace_back();
    ServerGroup& group = groups_[it->second];
    group.handles.push_back(variables_[v]);
    group_of_variable_[v] = it->second;
    group.everywhere = group.everywhere || counter_[v] ||
                       known(variables_[v]) == Known::kEverywhere;
  }
}

int ServerSplit::group_of_effect(int32_t node) const {
  for (const ValueRef& v : g_[node].inputs) {
    if (is_handle(v)) return group_of_variable_[variable_of(v)];
  }
  return kWorker;
}

void ServerSplit::find_server_nodes() {
  const size_t n = g_.nodes.size();
  place_.assign(n, kWorker);
  std::vector<int> wanted(n, kWorker);  // by one group only
  for (int32_t i = g_.size(); i-- > 0;) {
    if (roles_[i] == Role::kEffect) {
      place_[i] = wanted[i] = group_of_effect(i);
      continue;
    }
    if (roles_[i] != Role::kCompute || is_output_[i] || derived_[i] ||
        users_[i].empty() || !is_light(g_[i])) {
      continue;
    }
    const int first = wanted[users_[i].front()];
    const bool one = std::all_of(users_[i].begin(), users_[i].end(),
                                 [&](int32_t u) { return wanted[u] == first; });
    if (one && first != kWorker && !groups_[first].everywhere) {
      wanted[i] = first;
    }
  }
  for (int32_t i = 0; i < g_.size(); ++i) {
    if (roles_[i] != Role::kCompute || wanted[i] == kWorker) continue;
    const Node& node = g_[i];
    bool kept = false;
    for (const ValueRef& v : node.inputs) {
      const bool reads =
          roles_[v.node] == Role::kRead &&
          group_of_variable_[variable_of(g_[v.node].inputs[0])] == wanted[i];
      const bool counts =
          derived_[v.node] && g_[v.node].op->kind() != OpKind::kConstant;
      kept = kept || reads || counts || place_[v.node] == wanted[i];
    }
    if (is_gather_grad(node)) {
      // Send rows, not the table.
      const int64_t rows = elements_of(g_.spec(node.inputs[0]));
      kept = rows < 0 || rows < elements_of(node.outputs[0]);
    }
    if (kept) place_[i] = wanted[i];
  }
}

// Whether a node of a server can run shard by shard.
bool ServerSplit::by_rows(int32_t i, std::string* why) const {
  const Node& n = g_[i];
  const bool sparse = is_row_scatter(*n.op) || is_gather_grad(n);
  const bool good =
      n.op->elementwise() || n.op->update() || is_plain_assign(*n.op) || sparse;
  if (!good)
    *why = fmt::format("{} \"{}\" needs all of it", n.op->name(), n.name);
  if (!good || !sparse) return good;
  for (const ValueRef& v : n.inputs) {
    if (is_handle(v)) continue;
    if (!derived_[v.node] && place_[v.node] == kWorker) continue;
    *why = fmt::format("{} \"{}\" takes rows that the server computes",
                       n.op->name(), n.name);
    return false;
  }
  return true;
}

void ServerSplit::check_shards() {
  for (ServerGroup& group : groups_) {
    const Shape& shape = variable_state(group.handles[0]).shape;
    if (shape.rank() == 0) group.whole_because = "it is a scalar";
    for (const Tensor& t : group.handles) {
      if (variable_state(t).shape == shape) continue;
      group.whole_because =
          fmt::format("\"{}\" has another shape", variable_state(t).name);
    }
  }
  for (int32_t i = 0; i < g_.size(); ++i) {
    if (place_[i] == kWorker) continue;
    ServerGroup& group = groups_[place_[i]];
    std::string why;
    if (group.whole_because.empty() && !by_rows(i, &why)) {
      group.whole_because = why;
    }
  }
}

// A gather of a read that only gathers use.
bool ServerSplit::reads_rows(int32_t i) const {
  const Node& n = g_[i];
  if (roles_[i] != Role::kCompute || !is_row_gather(n)) return false;
  const int32_t read = n.inputs[0].node;
  if (roles_[read] != Role::kRead || is_output_[read]) return false;
  const int group = group_of_variable_[variable_of(g_[read].inputs[0])];
  if (groups_[group].everywhere) return false;
  for (const int32_t u : users_[read]) {
    if (place_[u] == group) continue;
    const Node& user = g_[u];
    if (place_[u] != kWorker || !is_row_gather(user) ||
        user.inputs[1].node == read) {
      return false;
    }
    const int64_t ids = elements_of(g_.spec(user.inputs[1]));
    if (ids >= 0 && ids >= g_[read].outputs[0].shape[0]) return false;
  }
  return true;
}

void ServerSplit::find_needed() {
  const size_t n = g_.nodes.size();
  needed_.assign(n, false);
  pulled_.assign(n, false);
  const auto need = [&](ValueRef v) {
    if (roles_[v.node] == Role::kRead) {
      pulled_[v.node] = true;
    } else if (g_[v.node].op->kind() == OpKind::kConstant ||
               (roles_[v.node] == Role::kCompute && !on_server(v.node))) {
      needed_[v.node] = true;
    }
  };
  for (const ValueRef& v : g_.outputs) need(v);
  for (int32_t i = g_.size(); i-- > 0;) {
    const Node& node = g_[i];
    if (on_server(i)) {
      for (const ValueRef& v : node.inputs) {
        if (!is_handle(v) && !has_on_server(v, place_[i])) need(v);
      }
      continue;
    }
    if (roles_[i] != Role::kCompute) continue;
    if (node.has_effect()) needed_[i] = true;
    if (!needed_[i]) continue;
    if (reads_rows(i)) {
      need(node.inputs[1]);
      continue;
    }
    for (const ValueRef& v : node.inputs) {
      if (g_[v.node].op->kind() != OpKind::kConstant) need(v);
    }
  }
}

// Whether a part of the server at `place` computes or copies `v` itself.
bool ServerSplit::has_on_server(ValueRef v, int place) const {
  if (derived_[v.node] || place_[v.node] == place) return true;
  if (roles_[v.node] != Role::kRead) return false;
  return group_of_variable_[variable_of(g_[v.node].inputs[0])] == place;
}

// The first stage in which the worker has `v`.
int ServerSplit::ready(ValueRef v) const {
  return level_[v.node] + (on_server(v.node) ? 1 : 0);
}

std::pair<int, int32_t> ServerSplit::level_of(int32_t i) const {
  const Node& n = g_[i];
  int level = level_[i];
  int32_t cause = cause_[i];
  const auto at_least = [&](int l, int32_t because_of) {
    if (l > level) cause = because_of;
    level = std::max(level, l);
  };
  if (roles_[i] == Role::kSource) return {0, -1};
  if (on_server(i)) {
    for (const ValueRef& v : n.inputs) {
      if (is_handle(v)) continue;
      if (!has_on_server(v, place_[i])) {
        at_least(ready(v), v.node);
      } else if (place_[v.node] == place_[i]) {
        at_least(level_[v.node], v.node);
      }
    }
    for (const int32_t c : n.controls) {
      if (on_server(c)) at_least(level_[c], c);
      if (roles_[c] != Role::kRead) continue;
      // The server must not write before its nodes have the old value.
      for (const int32_t u : users_[c]) {
        if (place_[u] == place_[i]) at_least(level_[u], u);
      }
    }
    // Servers step their counters last.
    if (steps_counters_ && groups_[place_[i]].everywhere) {
      at_least(last_update_, last_update_node_);
    }
    return {level, cause};
  }
  for (const int32_t c : n.controls) {
    if (on_server(c)) at_least(level_[c] + 1, c);
  }
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    const ValueRef v = n.inputs[k];
    if (!is_handle(v)) at_least(ready(v), v.node);
  }
  if (reads_rows(i)) {
    const ValueRef ids = n.inputs[1];
    const bool given = g_[ids.node].op->kind() == OpKind::kArgument ||
                       roles_[ids.node] == Role::kRead || on_server(ids.node);
    at_least(ready(ids) + (given ? 0 : 1), ids.node);
  }
  return {level, cause};
}

// After find_levels() failed: the first write that waits for a node which waits
// for that write.
int32_t ServerSplit::blocked_write() const {
  // The highest level still rises, so its causes lead into such a cycle.
  auto at = static_cast<int32_t>(
      std::max_element(level_.begin(), level_.end()) - level_.begin());
  for (int32_t i = 0; i < g_.size() && cause_[at] >= 0; ++i) at = cause_[at];
  int32_t write = at;
  for (int32_t i = cause_[at]; i >= 0 && i != at; i = cause_[i]) {
    const bool better = roles_[write] != Role::kEffect || i < write;
    if (roles_[i] == Role::kEffect && better) write = i;
  }
  return write;
}

// Returns false if the levels do not converge.
bool ServerSplit::find_levels() {
  level_.assign(g_.nodes.size(), 0);
  cause_.assign(g_.nodes.size(), -1);
  last_update_ = num_levels_ = 0;
  last_update_node_ = -1;
  bool changed = true;
  for (int sweep = 0; changed; ++sweep) {
    changed = false;
    for (int32_t i = 0; i < g_.size(); ++i) {
      const auto [level, cause] = level_of(i);
      if (level == level_[i]) continue;
      changed = true;
      level_[i] = level;
      cause_[i] = cause;
    }
    if (sweep > kMostSweeps) return false;
    for (int32_t i = 0; i < g_.size(); ++i) {
      if (roles_[i] == Role::kEffect && level_[i] > last_update_) {
        last_update_ = level_[i];
        last_update_node_ = i;
        changed = true;
      }
    }
  }
  // At the level of its first consumer.
  for (int32_t i = g_.size(); i-- > 0;) {
    if (roles_[i] != Role::kCompute || !on_server(i)) continue;
    int first = INT32_MAX;
    for (const int32_t u : users_[i]) first = std::min(first, level_[u]);
    level_[i] = std::max(level_[i], first);
  }
  for (const int l : level_) num_levels_ = std::max(num_levels_, l + 1);
  return true;
}

}  // namespace berth::distribute
