// Subgraph: copies some nodes of a graph into a new one. One thread.

#ifndef BERTH_FUNCTION_SUBGRAPH_H_
#define BERTH_FUNCTION_SUBGRAPH_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace berth {

class Subgraph {
 public:
  Subgraph(const Graph& from, std::string name);

  // Makes `v` an argument of the new graph.
  void argument(ValueRef v);
  // Copies node i; what it reads must have been copied or be an argument.
  void node(int32_t i);
  void output(ValueRef v) { to_.outputs.push_back(value(v)); }
  Graph take() { return std::move(to_); }

 private:
  ValueRef value(ValueRef v) const;

  const Graph& from_;
  Graph to_;
  std::vector<int32_t> map_;
  std::map<ValueRef, int32_t> args_;
};

// True for nodes that every graph has a copy of: Const and VarHandleOp.
bool is_source(const Graph& g, int32_t node);

}  // namespace berth

#endif  // BERTH_FUNCTION_SUBGRAPH_H_
