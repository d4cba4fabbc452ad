// Tracer: the dispatcher that writes a graph instead of computing.
//
// While it is on the thread, every op becomes a node and its results are
// symbolic tensors. Concrete inputs are captured: variables as one VarHandleOp
// each, other tensors as Const. Effects on one variable keep program order
// through control edges. One thread.

#ifndef BERTH_GRAPH_TRACER_H_
#define BERTH_GRAPH_TRACER_H_

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "op/dispatcher.h"

namespace berth {

// While it stands, nodes that are traced on this thread have the replica and
// the part of `node` (replays); its replica holds for what it calls, too.
class TracedAs {
 public:
  explicit TracedAs(const Node& node);
  ~TracedAs();
  TracedAs(const TracedAs&) = delete;
  TracedAs& operator=(const TracedAs&) = delete;

 private:
  friend class Tracer;
  const TracedAs* const outer_;
  int32_t replica_;
  std::shared_ptr<const NodePart> part_;
};

class Tracer final : public Dispatcher {
 public:
  // With an outer tracer this traces a body (a branch, a loop): values of the
  // traces around it become arguments, listed by outer_values().
  explicit Tracer(std::string name, const Tracer* outer = nullptr);
  ~Tracer() override;

  // Adds an argument. Unknown dimensions (-1) become symbols of this trace.
  Tensor add_arg(const TensorSpec& spec);
  void start();  // begins to see ops
  void stop();

  void apply(const OpDef& op, std::span<const Tensor* const> in,
             const Attrs* attrs, std::span<Tensor> out) override;

  // Returns the value of a tensor in the graph, capturing concrete ones.
  ValueRef value_of(const Tensor& t);

  // Sets the outputs and returns the graph; the tracer is empty afterwards.
  Graph finish(std::span<const Tensor> outputs);

  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }
  // Handles of the variables captured, in order of first use.
  const std::vector<Tensor>& variables() const { return variables_; }
  // What the last arguments stand for: the values of outer traces, in order of
  // first use, after the arguments added by add_arg().
  const std::vector<Tensor>& outer_values() const { return outer_values_; }
  // How many graphs stand inside each other here: 1 outside of all bodies.
  int depth() const { return depth_; }
  // The trace around this one; null: none.
  const Tracer* outer() const { return outer_; }
  // True for the trace that made a symbolic tensor of this serial.
  bool made(uint64_t trace) const { return trace == serial_; }
  // True for the traces whose values may be used here.
  bool sees(uint64_t trace) const;

 private:
  struct Order {  // of the effects on one variable
    int32_t last_write = -1;
    std::vector<int32_t> reads;  // since then
  };
  int32_t add_node(const OpDef& op, const Attrs* attrs,
                   std::vector<ValueRef> inputs);
  ValueRef capture(const Tensor& t);
  ValueRef capture_outer(const Tensor& t);
  void order_effects(Node& node);

  const uint64_t serial_;
  const Tracer* const outer_;
  const int depth_;
  Graph graph_;
  std::unordered_map<const TensorImpl*, ValueRef> captured_;
  std::vector<Tensor> keep_;  // captured tensors: their addresses are keys
  std::map<std::pair<DType, std::string>, ValueRef> scalars_;
  std::vector<Tensor> variables_;
  std::vector<Tensor> outer_values_;
  std::unordered_map<std::string, int> names_;
  std::unordered_map<int32_t, Order> effects_;  // by VarHandleOp
  int32_t last_effect_ = -1;                    // of ops without variables
  int64_t next_symbol_ = kFirstSymbol;
};

}  // namespace berth

#endif  // BERTH_GRAPH_TRACER_H_
