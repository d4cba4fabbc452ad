// Graph: a traced function as nodes that take each other's outputs.
//
// Nodes are numbered in an order in which they could run: inputs and controls
// of a node always have smaller numbers. Passes rewrite a graph by building a
// new one (GraphBuilder) or by editing attributes, requests and inputs and
// then calling compact(). One thread at a time.

#ifndef BERTH_GRAPH_GRAPH_H_
#define BERTH_GRAPH_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "berth/site.h"
#include "berth/tensor.h"
#include "device/device_id.h"
#include "op/contract_scope.h"
#include "op/op_registry.h"

namespace berth {

// The symbol of the first unknown dimension of a signature, printed "?1";
// those after it count down. Far from the numbers that lists of ints hold
// (places counted from the end), since an element of a list may be a symbol.
inline constexpr int64_t kFirstSymbol = -(int64_t{1} << 40);

// Output `output` of node `node`; printed "n:i".
struct ValueRef {
  int32_t node = -1;
  int32_t output = 0;

  bool operator==(const ValueRef&) const = default;
  auto operator<=>(const ValueRef&) const = default;
};

// What the user wrote: every node keeps where it came from, also after passes.
struct NodeSource {
  std::string name;
  Site site;
  ContractChainRef contracts = nullptr;  // that were open
  Site asked = {};  // the device() line of the request; unknown: nobody asked
  bool operator==(const NodeSource& o) const {
    return name == o.name && site.file == o.site.file &&
           site.line == o.site.line;
  }
};

// Which part of an op on a whole batch a node computes: set by rewrites that
// split a batch over replicas. Immutable; nodes of one part may share it.
struct NodePart {
  // The shape of input 0 before the split (means divide by its count).
  Shape unsplit;
  // Where output 0 begins in the whole one, in elements (random ops).
  int64_t origin = 0;
  // The signature of op->split() by which the node was split out.
  int32_t signature = -1;
  // Whether bits must be the same on any number of replicas: then the node has
  // slices [first, first + count) of `total`; slice k of the whole batch of
  // `batch` examples begins at example batch * k / total. total 0: it need
  // not.
  int32_t first = 0, count = 0, total = 0;
  int64_t batch = 0;
  bool operator==(const NodePart&) const = default;
};

struct Node {
  std::string name;  // unique in the graph, for example "dense/MatMul_1"
  const OpDef* op = nullptr;
  AttrsRef attrs;
  std::vector<ValueRef> inputs;
  std::vector<int32_t> controls;  // run before this node; sorted, distinct
  std::vector<OutSpec> outputs;
  DeviceId requested;    // device name as asked for, "" when nobody asked
  DeviceId assigned;     // full device name once placed
  int32_t follows = -1;  // runs where this node does if it can: gradients
  // Names of the groups that must share one device; every node is in the
  // group of its own name too ("_class" in TensorFlow).
  std::vector<std::string> colocated;
  std::vector<NodeSource> sources;
  Tensor variable;          // VarHandleOp: the handle, when there is one
  int32_t replica = -1;     // of a strategy; -1: of none, or of all
  bool collective = false;  // adds up, or sends, what replicas have
  std::shared_ptr<const NodePart> part;  // null: the whole op

  // Runs for its effect even when nobody reads it.
  // (A callee may do anything.)
  bool has_effect() const {
    return op->stateful() || op->kind() == OpKind::kCall ||
           (op->kind() == OpKind::kControl && body_has_effect());
  }
  bool body_has_effect() const;  // graph/body.cc
};

// Returns the line that asked for the node's device; where nobody did, its own.
Site asked_at(const Node& node);

// The names a graph has, read from its nodes as they come. A copy begins empty.
class NameIndex {
 public:
  NameIndex() = default;
  NameIndex(const NameIndex&) {}
  NameIndex(NameIndex&&) noexcept {}
  NameIndex& operator=(const NameIndex&) {
    clear();
    return *this;
  }
  NameIndex& operator=(NameIndex&&) noexcept {
    clear();
    return *this;
  }

  void clear() {
    next_.clear();
    seen_ = 0;
  }
  // Returns "name" or "name_1", ...: one that no node has.
  std::string unique(const std::vector<Node>& nodes, const std::string& name);

 private:
  std::unordered_map<std::string, int32_t> next_;  // name -> suffix to try
  size_t seen_ = 0;                                // nodes read so far
};

class Graph {
 public:
  std::string name = "function";
  std::vector<Node> nodes;
  std::vector<int32_t> args;      // _Arg nodes in order of index
  std::vector<ValueRef> outputs;  // what the function returns

  int32_t add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<int32_t>(nodes.size()) - 1;
  }
  Node& operator[](int32_t i) { return nodes[i]; }
  const Node& operator[](int32_t i) const { return nodes[i]; }
  int32_t size() const { return static_cast<int32_t>(nodes.size()); }
  const OutSpec& spec(ValueRef v) const {
    return nodes[v.node].outputs[v.output];
  }

  // Per node, the nodes that read one of its outputs or wait for it.
  std::vector<std::vector<int32_t>> users() const;

  // Removes the nodes for which keep[i] is false and renumbers the rest.
  // Nothing that stays may refer to what goes, except controls (their own
  // controls take their place) and follows (takes the target's target, and
  // its request where the node has none).
  void compact(const std::vector<bool>& keep);

  // Gives node i the number to[i].
  void renumber(const std::vector<int32_t>& to);

  // Runs the shape rules again from the _Arg specs on. Throws
  // errors::InvalidArgument with the node's source line.
  void infer();

  // Ops that only this graph knows: declared in its text, without kernels.
  std::vector<std::shared_ptr<const OpDef>> declared_ops;

 private:
  friend std::string unique_name(const Graph& graph, const std::string& name);
  mutable NameIndex names_;
};

// Returns "name" or "name_1", ... whichever `graph` does not have yet, in
// constant time over many calls. Nodes renamed in place since the last call
// keep both names until compact().
std::string unique_name(const Graph& graph, const std::string& name);

// Throws errors::Internal unless numbering, inputs, controls, output counts
// and names are consistent (tests, and after each pass in debug runs).
void verify(const Graph& graph);

// Prints the graph text of docs/graph-format.md; parse(print(g)) == g.
std::string print(const Graph& graph);

// Throws errors::InvalidArgument "line N, column C: ..., expected ...".
Graph parse_graph(std::string_view text);

}  // namespace berth

#endif  // BERTH_GRAPH_GRAPH_H_
