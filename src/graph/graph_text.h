// GraphText: all that a graph text says, of which the Graph is one part.
//
// Outside suites describe ops, kernels, devices and measured costs in the text
// itself (docs/graph-format.md). parse_text() of a print() prints the same
// text. Values; one thread at a time.

#ifndef BERTH_GRAPH_GRAPH_TEXT_H_
#define BERTH_GRAPH_GRAPH_TEXT_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "op/callable.h"

namespace berth {

// A kernel that exists for the planner alone.
struct KernelDecl {
  std::string op;
  std::vector<std::string> device_types;  // "CPU", "GPU"
  int32_t priority = 0;
  DTypeSet dtypes = kAnyType;
};

struct DeviceDecl {
  std::string name;  // as written
};

// What was measured or estimated for one node; empty: nothing.
struct NodeCost {
  std::vector<std::pair<std::string, double>> time_us;  // per device type
  std::vector<int64_t> bytes;                           // per output
  bool empty() const { return time_us.empty() && bytes.empty(); }
};

struct GraphText {
  Graph graph;  // ops declared in the text are graph.declared_ops
  std::vector<KernelDecl> kernels;
  std::vector<DeviceDecl> devices;
  std::vector<std::shared_ptr<Callable>> functions;
  std::vector<NodeCost> costs;  // per node, or empty
};

// Prints everything; print(graph) prints a GraphText of the graph alone.
std::string print(const GraphText& text);

// Throws errors::InvalidArgument "line N: ..., expected ...". Never crashes.
GraphText parse_text(std::string_view text);

}  // namespace berth

#endif  // BERTH_GRAPH_GRAPH_TEXT_H_
