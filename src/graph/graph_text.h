// GraphText: all that a graph text says, of which the Graph is one part.
//
// Outside suites describe ops, kernels, devices and measured costs in the text
// itself (docs/graph-format.md). parse_text() of a print() prints the same
// text. Values; one thread at a time.

#ifndef BERTH_GRAPH_GRAPH_TEXT_H_
#define BERTH_GRAPH_GRAPH_TEXT_H_

#include <memory>
#include <optional>
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
  // "CPU", "GPU", or devices of some tasks,
  // "/job:worker/task:1/device:GPU"; as written.
  std::vector<std::string> device_types;
  int32_t priority = 0;
  DTypeSet dtypes = kAnyType;
  // Inputs and outputs, by name, that this kernel has on the host.
  std::vector<std::string> host = {};
};

// Devices that are equally fast; absent numbers: those of DeviceClass in
// place/costs.h.
struct ClassDecl {
  std::string name;
  std::string type;  // of the devices
  std::optional<double> flops_per_us = {}, bytes_per_us = {}, launch_us = {};
};

struct DeviceDecl {
  std::string name;                          // as written
  std::optional<int64_t> memory_limit = {};  // bytes
  std::string device_class = {};             // "": that of its type
  // What copies keep busy: "overlap", "receiving", "both", "free"; "":
  // unsaid.
  std::string copies = {};
  std::vector<std::string> parts = {};  // of a composite device: names above
};

// How fast bytes go from one device to another. Links of one `shared` group
// carry one transfer at a time; -1: alone.
struct LinkDecl {
  std::string from, to;  // names, as written
  double latency_us = 0;
  double bytes_per_us = 1;
  int32_t shared = -1;
};

// What was measured or estimated for one node; empty: nothing.
struct NodeCost {
  // Per device type or class.
  std::vector<std::pair<std::string, double>> time_us;
  std::vector<int64_t> bytes;  // per output
  bool empty() const { return time_us.empty() && bytes.empty(); }
};

struct GraphText {
  Graph graph;             // ops declared in the text are graph.declared_ops
  std::string local_task;  // "/job:worker/task:1"; "": /job:localhost/task:0
  std::vector<std::string> type_order;  // of devices, the preferred one first
  std::vector<KernelDecl> kernels;
  std::vector<ClassDecl> classes;
  std::vector<DeviceDecl> devices;
  std::vector<LinkDecl> links;
  std::vector<std::shared_ptr<Callable>> functions;
  std::vector<NodeCost> costs;  // per node, or empty
};

// Prints everything; print(graph) prints a GraphText of the graph alone.
std::string print(const GraphText& text);

// Throws errors::InvalidArgument "line N, column C: ..., expected ...". Never
// crashes; time and memory grow with the length of the text alone.
GraphText parse_text(std::string_view text);

}  // namespace berth

#endif  // BERTH_GRAPH_GRAPH_TEXT_H_
