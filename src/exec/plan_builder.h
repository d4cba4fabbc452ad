// PlanBuilder: makes the Program of a placed, partitioned and scheduled graph.

#ifndef BERTH_EXEC_PLAN_BUILDER_H_
#define BERTH_EXEC_PLAN_BUILDER_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "eager/kernel_cache.h"
#include "exec/memory_plan.h"
#include "exec/plan.h"
#include "exec/regions.h"
#include "exec/run_locks.h"
#include "graph/node_part.h"
#include "place/costs.h"
#include "program/program_run.h"

namespace berth {

struct BuiltPlan {
  std::unique_ptr<PartBinder> binder;  // owns the kernels of parts
  std::unique_ptr<const Program> program;
  PlanVariables variables;
  WrittenByOps writes;
  PlanInfo info;
};

class PlanBuilder {
 public:
  // What is built refers to the graph. The steps of `schedule` become those of
  // the program.
  PlanBuilder(const Graph& graph, Schedule& schedule,
              const PlanOptions& options)
      : graph_(graph), schedule_(schedule), options_(options) {}
  // Once. Throws what Plan::build throws.
  BuiltPlan build();

 private:
  // A value of the graph: where its bytes are. With a slot, every slice of a
  // region has its part in memory of its own.
  struct Value {
    int buffer = -1;
    size_t offset = 0;
    int slot = -1;
    bool rows = false;  // of a longer value, which begin within it
  };
  // Memory of the slices of one region, alive from member `begin` until just
  // before member `end`.
  struct Slot {
    int step = -1;
    ArenaBuffer at;
  };
  // How the members of a region so far touch a buffer: each only the parts that
  // a dense cut of `length` elements into `slices` gives; -1: not so.
  struct Touched {
    int64_t length = -1;
    const NodePart* slices = nullptr;
  };
  static constexpr int kNoUse = -1, kSeveral = -2;
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

  // What an op of a forked step costs on one core of its device.
  double core_us(const PlanStep& step, const Cost& cost);
  void check_shapes() const;
  void check_moves(const Node& transfer) const;
  int device_index(DeviceId name);
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
  void add_written();
  void order_locks();
  void count();
  void drop_wait();

  // Parts that forked work on a device is split into.
  int slices_on(Device& device) const {
    return options_.slices ? options_.slices : default_slices(device);
  }
  // Parts of a node that is computed whole. One that has slices of a batch is
  // itself a slice, on any device.
  int slices_of(const Node& node, Device& device) const {
    return has_slices(node.part.get()) ? 1 : slices_on(device);
  }

  // plan_memory.cc
  void add_outputs_of(PlanStep& step, int32_t at, int op);
  bool is_private(ValueRef v, int32_t at) const;
  bool in_place(const PlanStep& step, int32_t at, int op, Value* result);
  void touch(const PlanOp& op, ValueRef v, int8_t axis);
  bool same_borders(const PlanOp& op, int buffer, const Shape& shape,
                    int8_t axis) const;
  int new_slot(int32_t at, size_t bytes, int member);
  void add_slices_memory(PlanStep& step, int32_t at);
  void add_control(PlanStep& step, PlanOp& op, int32_t at);
  void add_outputs();
  void add_arenas();
  int new_buffer(Where where, int device, size_t bytes, int index = 0);
  void use(int buffer, int32_t step);

  // plan_calls.cc
  void add_calls();
  void add_call(const PlanStep& step, int op, int part);
  void add_operand(const PlanStep& step, const Node& node, const Value& v,
                   const OutSpec& s, int8_t axis, int part);
  void add_sums(PlanStep& step);
  void patch_operands();

  const Graph& graph_;
  Schedule& schedule_;
  const PlanOptions& options_;
  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  Program& p_ = *program_;
  BuiltPlan built_;
  PlanVariables& variables_ = built_.variables;
  const OpDef& hand_over_op_ = op_named("_HandOver");
  const OpDef& rows_op_ = op_named("_Rows");
  std::vector<std::vector<Value>> values_;
  std::vector<std::vector<int32_t>> users_;  // by node
  std::vector<std::vector<int32_t>> uses_;   // by buffer: steps
  std::vector<int> stream_of_;  // by buffer: of all its uses; kNoUse, kSeveral
  std::unordered_map<int, Touched> touched_;  // by buffer, in one region
  std::set<ValueRef> escaping_;               // the outputs of the graph
  std::vector<Slot> slots_;
  std::vector<int> last_read_;  // by node: the last op that reads its bytes
  std::vector<int32_t> step_of_node_;
  std::unordered_map<DeviceId, int> device_of_name_;
  std::vector<const PartKernels*> part_kernels_;   // by op; null: whole
  std::vector<std::optional<DeviceClass>> rates_;  // by device
  std::map<int, int> scratch_slot_;                // by op
};

}  // namespace berth

#endif  // BERTH_EXEC_PLAN_BUILDER_H_
