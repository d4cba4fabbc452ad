// Paths through a model, for each weight.

#include "keras/models/weight_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "keras/models/functional_config.h"
#include "keras/models/layer_state.h"
#include "keras/models/pending_weights.h"

namespace berth::keras {

namespace {

// "dense" or "dense_12" of type "Dense".
bool is_counted_name(const LayerState& s) {
  const std::string base = snake_case(s.type);
  if (!s.name.starts_with(base)) return false;
  const std::string rest = s.name.substr(base.size());
  return rest.empty() ||
         (rest.size() > 1 && rest[0] == '_' &&
          std::all_of(rest.begin() + 1, rest.end(),
                      [](unsigned char c) { return std::isdigit(c); }));
}

class PathWalk {
 public:
  void visit(LayerState& s, const std::string& prefix) {
    if (!seen_.insert(&s).second) return;
    if (!s.build.done.load(std::memory_order_acquire)) {
      paths.unbuilt.emplace_back(prefix, &s);
    }
    std::map<std::string, int> used;
    for (const auto* list : {&s.weights.trainable, &s.weights.other}) {
      for (const Variable& v : *list) {
        const std::string name = unique(weight_name(s, v), &used);
        if (!variables_.insert(v.handle().impl()).second) continue;
        paths.weights.emplace_back(prefix + name, v);
      }
    }
    const bool functional = s.type == "Model" && !s.graph.outputs.empty();
    const UsesOfLayers uses(s.graph.inputs, s.graph.outputs);
    for (const Layer& part : functional ? uses.as_reached() : s.parts) {
      LayerState& of = part.base()->state();
      const std::string name =
          is_counted_name(of) ? snake_case(of.type) : of.name;
      visit(of, prefix + unique(name, &used) + "/");
    }
  }

  WeightPaths paths;

 private:
  static std::string unique(const std::string& name,
                            std::map<std::string, int>* used) {
    int& n = (*used)[name];
    std::string given = n == 0 ? name : fmt::format("{}_{}", name, n);
    ++n;
    // "dense_1" may be the name that somebody gave.
    while (given != name && used->contains(given)) {
      given = fmt::format("{}_{}", name, n++);
    }
    if (given != name) (*used)[given] = 1;
    return given;
  }

  std::set<const LayerState*> seen_;
  std::set<const TensorImpl*> variables_;
};

}  // namespace

WeightPaths weight_paths(const Layer& root) {
  PathWalk walk;
  walk.visit(root.base()->state(), "");
  return std::move(walk.paths);
}

}  // namespace berth::keras
