#include "function/subgraph.h"

#include <algorithm>

namespace berth {

Subgraph::Subgraph(const Graph& from, std::string name) : from_(from) {
  to_.name = std::move(name);
  map_.assign(from.nodes.size(), -1);
}

void Subgraph::argument(ValueRef v) {
  static const OpDef& op = op_named("_Arg");
  const OutSpec& s = from_.spec(v);
  Node node;
  node.op = &op;
  node.name = "arg_" + std::to_string(to_.args.size());
  node.attrs = AttrsRef({{"index", static_cast<int64_t>(to_.args.size())},
                         {"dtype", s.dtype},
                         {"shape", s.shape}});
  node.outputs = {s};
  node.sources = from_[v.node].sources;
  node.requested = from_[v.node].requested;
  to_.args.push_back(to_.add(std::move(node)));
  args_.try_emplace(v, to_.args.back());
}

void Subgraph::node(int32_t i) {
  Node copy = from_[i];
  for (ValueRef& v : copy.inputs) v = value(v);
  std::vector<int32_t> controls;
  for (int32_t c : copy.controls) {
    if (map_[c] >= 0) controls.push_back(map_[c]);
  }
  std::sort(controls.begin(), controls.end());
  copy.controls = std::move(controls);
  if (copy.follows >= 0) {
    // The forward op is in another graph: its request stands for it.
    if (map_[copy.follows] < 0 && copy.requested.empty()) {
      int32_t c = copy.follows;
      while (c >= 0 && from_[c].requested.empty()) c = from_[c].follows;
      if (c >= 0) copy.requested = from_[c].requested;
    }
    copy.follows = map_[copy.follows];
  }
  map_[i] = to_.add(std::move(copy));
}

ValueRef Subgraph::value(ValueRef v) const {
  const auto arg = args_.find(v);
  if (arg != args_.end()) return {arg->second, 0};
  return {map_[v.node], v.output};
}

bool is_source(const Graph& g, int32_t n) {
  const std::string& op = g[n].op->name();
  return op == "Const" || op == "VarHandleOp";
}

}  // namespace berth
