// Body: a graph as the callee of a control-flow op.
//
// A branch, a condition or the body of a loop. Immutable: a rewrite puts a new
// Body in its place. Variables that it uses are its VarHandleOp nodes. Calling
// it computes op by op; inside a trace that inlines it.

#ifndef BERTH_GRAPH_BODY_H_
#define BERTH_GRAPH_BODY_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "op/callable.h"

namespace berth {

// How many graphs stand inside each other at most, in a text and in a trace:
// what walks them is recursive.
inline constexpr int32_t kMaxNesting = 64;

class Body final : public Callable {
 public:
  explicit Body(Graph graph);

  const std::string& name() const override { return graph_.name; }
  const std::vector<TensorSpec>& input_specs() const override {
    return inputs_;
  }
  const std::vector<TensorSpec>& output_specs() const override {
    return outputs_;
  }
  const Graph* body() const override { return &graph_; }
  void call(std::span<const Tensor* const> in, std::span<Tensor> out) override;
  // Throws errors::Unimplemented: control-flow ops have rules of their own.
  Tensors gradient(std::span<const Tensor> in, std::span<const Tensor> out,
                   const Tensors& grads,
                   const std::vector<bool>& needed) override;

 private:
  const Graph graph_;
  std::vector<TensorSpec> inputs_, outputs_;
};

// Calls visit(attribute name, graph) for each body that the node runs.
void visit_bodies(
    const Node& node,
    const std::function<void(const std::string&, const Graph&)>& visit);

// Rewrites the bodies of a node: rewrite() gets a copy of each and says
// whether it changed it. Null inputs of a rewrite are fine: nothing happens.
void rewrite_bodies(
    Node& node, const std::function<bool(const std::string&, Graph&)>& rewrite);

// Calls change() for a copy of every node of the bodies, and of theirs.
void change_bodies(Node& node, const std::function<void(Node&)>& change);

// Gives the arguments of the node's bodies the shapes of its operands and
// infers the bodies again. Throws what the shape rules throw.
void infer_bodies(Node& node, std::span<const SpecView> in);

// Handles of the variables that the graph and the bodies in it use, each once.
std::vector<Tensor> variables_of(const Graph& graph);

// Handles of the variables that a node writes, including writes in its bodies.
std::vector<Tensor> written_by(const Graph& graph, const Node& node);

// Sets index, dtype and shape of an _Arg node.
void set_arg(Node& node, int64_t index, DType dtype, const Shape& shape);

}  // namespace berth

#endif  // BERTH_GRAPH_BODY_H_
