#include "distribute/pipeline/step_layers.h"

#include <algorithm>
#include <map>

namespace berth::distribute {

namespace {

// The layer in whose call a node was traced: the innermost that is known.
int32_t layer_of(std::string path, const std::map<std::string, int32_t>& of) {
  while (!path.empty()) {
    const size_t end = path.rfind('/');
    path.resize(end == path.npos ? 0 : end);
    const auto it = of.find(path);
    if (it != of.end()) return it->second;
  }
  return -1;
}

}  // namespace

std::vector<StepLayers::Place> StepLayers::places(const Graph& step) const {
  std::map<std::string, int32_t> number;
  for (const std::string& p : paths_) {
    number.emplace(p, static_cast<int32_t>(number.size()));
  }
  std::vector<Place> at(step.nodes.size());
  for (int32_t i = 0; i < step.size(); ++i) {
    const Node& n = step[i];
    Place& here = at[i];
    if (n.op->graph_only()) continue;
    bool of_gradients = false;
    for (const ValueRef& v : n.inputs) {
      here.layer = std::max(here.layer, at[v.node].layer);
      of_gradients = of_gradients || at[v.node].pass != 'F';
    }
    if (n.follows >= 0) {
      here = {at[n.follows].layer, 'W'};
    } else if (of_gradients) {
      here.pass = 'U';
    } else {
      here.layer = std::max(here.layer, layer_of(n.name, number));
    }
    if (n.op->kind() == OpKind::kReadVariable) here.layer = -1;
  }
  const auto users = step.users();
  for (int32_t i = step.size(); i-- > 0;) {
    if (at[i].pass != 'W') continue;
    const bool waited =
        std::any_of(users[i].begin(), users[i].end(), [&](int32_t u) {
          return at[u].pass == 'I' ||
                 (at[u].pass == 'W' && at[u].layer < at[i].layer);
        });
    if (waited) at[i].pass = 'I';
  }
  return at;
}

StepLayers::Values StepLayers::values(
    const Graph& step, const std::vector<Place>& at,
    const std::function<int64_t(int32_t)>& bytes_of_node) const {
  Values v{std::vector<double>(paths_.size(), 0), {}};
  v.sent = v.kept;
  const auto users = step.users();
  for (int32_t i = 0; i < step.size(); ++i) {
    if (at[i].layer < 0 || at[i].pass != 'F' ||
        step[i].op->kind() != OpKind::kCompute) {
      continue;
    }
    const auto bytes = static_cast<double>(bytes_of_node(i));
    int32_t last = at[i].layer;
    bool kept = false;
    for (const int32_t u : users[i]) {
      kept = kept || step[u].follows >= 0;
      if (at[u].pass == 'F') last = std::max(last, at[u].layer);
    }
    if (kept) v.kept[at[i].layer] += bytes;
    for (int32_t k = at[i].layer; k < last; ++k) v.sent[k] += bytes;
  }
  return v;
}

}  // namespace berth::distribute
