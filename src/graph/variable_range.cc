#include "graph/variable_range.h"

#include <limits>

namespace berth {

VariableRange variable_range(const Graph& graph, ValueRef v) {
  static const OpDef& op = op_named("_VariableRange");
  VariableRange r;
  const int64_t n = graph.spec(v).shape.num_elements();
  r.end = n < 0 ? std::numeric_limits<int64_t>::max() : n;
  r.handle = v.node;
  while (graph[r.handle].op == &op) {
    const Node& range = graph[r.handle];
    const auto begin = op.attr<int64_t>(range.attrs.get(), "begin");
    r.begin += begin;
    r.end += begin;
    r.handle = range.inputs[0].node;
  }
  return r;
}

void VariableAccesses::add(const VariableRange& range, int32_t node, bool write,
                           std::vector<int32_t>& before) {
  std::vector<Access>& list = open_[range.handle];
  for (const Access& a : list) {
    if ((write || a.write) && a.node != node && a.range.overlaps(range)) {
      before.push_back(a.node);
    }
  }
  // A later access that meets covered ones needs only this write.
  if (write) {
    std::erase_if(list,
                  [&](const Access& a) { return range.contains(a.range); });
  }
  list.push_back({range, node, write});
}

}  // namespace berth
