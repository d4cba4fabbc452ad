// Forwarding: values that take the place of others while a pass walks a graph.
//
// A pass visits the nodes in order, calls visit(i) to see its operands as
// they are by now, and may then forward node i. finish() removes what was
// forwarded. One thread.

#ifndef BERTH_PASSES_FORWARD_H_
#define BERTH_PASSES_FORWARD_H_

#include <vector>

#include "graph/graph.h"

namespace berth {

// A node keeps at most so many sources, so that merging stays linear.
inline constexpr size_t kMaxSources = 32;

// Appends the sources that `to` does not have yet.
void add_sources(Node& to, const std::vector<NodeSource>& sources);

// True when the shapes are the same whatever their unknown dimensions are.
bool same_shape(const Shape& a, const Shape& b);

class Forwarding {
 public:
  explicit Forwarding(Graph& graph)
      : graph_(graph),
        value_(graph.nodes.size()),
        is_output_(graph.nodes.size(), false) {
    for (const ValueRef v : graph.outputs) is_output_[v.node] = true;
  }

  // Replaces what was forwarded in the inputs, controls and colocation of i.
  void visit(int32_t i);

  // Readers of the only output of `from` read `to`, a value above it.
  void forward(int32_t from, ValueRef to);
  // Readers of all outputs of `from` read those of `to`.
  void merge(int32_t from, int32_t to);
  // False when the node's own place is visible or it orders others: then it
  // must stay although `to` has the same value.
  bool may_forward(int32_t from, ValueRef to) const;

  // Removes the forwarded nodes. The object is of no use afterwards.
  void finish();

 private:
  struct Target {
    int32_t node = -1;
    int32_t output = -1;  // -1: the same
  };
  ValueRef resolve(ValueRef v) const;

  Graph& graph_;
  std::vector<Target> value_;
  std::vector<bool> is_output_;
  bool any_ = false;
};

}  // namespace berth

#endif  // BERTH_PASSES_FORWARD_H_
