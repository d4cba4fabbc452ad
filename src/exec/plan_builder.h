// PlanBuilder: fills in a Plan::Impl from a placed, partitioned graph.

#ifndef BERTH_EXEC_PLAN_BUILDER_H_
#define BERTH_EXEC_PLAN_BUILDER_H_

#include <map>
#include <vector>

#include "exec/plan_impl.h"
#include "exec/regions.h"

namespace berth {

class PlanBuilder {
 public:
  explicit PlanBuilder(Plan::Impl& plan) : p_(plan), graph_(plan.graph) {}
  void build();

 private:
  // A value of the graph: where its bytes are. With a slot, every slice of a
  // region has its part in memory of its own.
  struct Value {
    int buffer = -1;
    size_t offset = 0;
    int slot = -1;
  };
  // Memory of the slices of one region, alive from member `begin` until just
  // before member `end`.
  struct Slot {
    int step = -1;
    ArenaBuffer at;
  };
  // What was handed over is where its giver left it.
  Value& value(ValueRef v) {
    while (graph_[v.node].op == &hand_over_op_) v = graph_[v.node].inputs[0];
    return values_[v.node][v.output];
  }
  const OutSpec& spec(ValueRef v) const { return graph_.spec(v); }
  size_t bytes_of(const OutSpec& s) const {
    return static_cast<size_t>(s.shape.num_elements()) * size_of(s.dtype);
  }
  const Node& node_of(const PlanOp& op) const { return graph_[op.node]; }

  void check_shapes() const;
  void check_moves(const Node& transfer) const;
  int device_index(const std::string& name);
  Value at_row(Value v, const Node& node) const;
  void add_streams();
  void add_sources();  // arguments, constants, variables
  void add_regions();  // steps and their ops, in order
  void find_last_reads();
  void add_values();  // kernels bound, values given to buffers
  void add_op(PlanStep& step, int32_t at, int op);
  void bind_whole(PlanStep& step, int32_t at, PlanOp& op);
  void note_variables(const PlanOp& op);
  void add_homes();
  void order_locks();
  void count();

  // plan_memory.cc
  void add_outputs_of(PlanStep& step, int32_t at, int op);
  bool is_private(ValueRef v, int32_t at) const;
  bool in_place(const PlanStep& step, int32_t at, int op, Value* result);
  bool same_borders(const PlanStep& step, int op, int buffer,
                    const Shape& shape, int8_t axis);
  int new_slot(int32_t at, size_t bytes, int member);
  void add_slices_memory(PlanStep& step, int32_t at);
  void add_control(PlanStep& step, PlanOp& op, int32_t at);
  void add_outputs();
  void add_lives();
  void add_arenas();
  int new_buffer(Where where, int device, size_t bytes, int index = 0);
  void use(int buffer, int32_t step) { uses_[buffer].push_back(step); }

  // plan_calls.cc
  void add_calls();
  void add_call(const PlanStep& step, int op, int part);
  void add_operand(const PlanStep& step, const Node& node, const Value& v,
                   const OutSpec& s, int8_t axis, int part);
  void add_sums(PlanStep& step);
  void patch_operands();

  Plan::Impl& p_;
  const Graph& graph_;
  const OpDef& hand_over_op_ = op_named("_HandOver");
  const OpDef& rows_op_ = op_named("_Rows");
  std::vector<std::vector<Value>> values_;
  std::vector<std::vector<int32_t>> users_;  // by node
  std::vector<std::vector<int32_t>> uses_;   // by buffer: steps
  std::vector<Slot> slots_;
  std::vector<int> last_read_;  // by node: the last op that reads its bytes
  std::vector<int32_t> step_of_node_;
  std::map<std::string, int> device_of_name_;
  std::map<const PlanOp*, int> scratch_slot_;
};

}  // namespace berth

#endif  // BERTH_EXEC_PLAN_BUILDER_H_
