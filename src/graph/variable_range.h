// VariableRange: which variable a value of dtype resource is, and which of its
// elements (_VariableRange). Pure functions over graphs.

#ifndef BERTH_GRAPH_VARIABLE_RANGE_H_
#define BERTH_GRAPH_VARIABLE_RANGE_H_

#include "graph/graph.h"

namespace berth {

struct VariableRange {
  int32_t handle = -1;         // the node that is the whole variable
  int64_t begin = 0, end = 0;  // elements

  bool overlaps(const VariableRange& o) const {
    return handle == o.handle && begin < o.end && o.begin < end;
  }
  bool contains(const VariableRange& o) const {
    return handle == o.handle && begin <= o.begin && o.end <= end;
  }
};

// Returns what `v`, of dtype resource, stands for. A variable whose number of
// elements is not known is all there is.
VariableRange variable_range(const Graph& graph, ValueRef v);

// Reads and writes of ranges so far, in some order of the nodes.
class VariableAccesses {
 public:
  // Notes that `node` reads, or writes, a range; appends to `before` the
  // accesses that it must not pass: writes of common elements, and for a write
  // the reads since then. Never `node` itself.
  void add(const VariableRange& range, int32_t node, bool write,
           std::vector<int32_t>& before);

 private:
  struct Access {
    VariableRange range;
    int32_t node;
    bool write;
  };
  std::unordered_map<int32_t, std::vector<Access>> open_;  // by handle
};

}  // namespace berth

#endif  // BERTH_GRAPH_VARIABLE_RANGE_H_
