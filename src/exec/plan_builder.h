// PlanBuilder: fills in a Plan::Impl from a placed, partitioned graph.

#ifndef BERTH_EXEC_PLAN_BUILDER_H_
#define BERTH_EXEC_PLAN_BUILDER_H_

#include <map>
#include <vector>

#include "exec/plan_impl.h"

namespace berth {

class PlanBuilder {
 public:
  explicit PlanBuilder(Plan::Impl& plan) : p_(plan), graph_(plan.graph) {}
  void build();

 private:
  // A value of the graph: where its bytes are.
  struct Value {
    int buffer = -1;
    size_t offset = 0;
  };
  Value& value(ValueRef v) { return values_[v.node][v.output]; }
  const OutSpec& spec(ValueRef v) const { return graph_.spec(v); }
  size_t bytes_of(const OutSpec& s) const {
    return static_cast<size_t>(s.shape.num_elements()) * size_of(s.dtype);
  }

  void check_shapes() const;
  void check_moves(const Node& transfer) const;
  int device_index(const std::string& name);
  void add_sources();  // arguments, constants, variables
  void add_steps();    // kernels bound, values given to buffers
  void add_kernel(PlanStep& step, const Node& node, int32_t at);
  void add_control(PlanStep& step, const Node& node, int32_t at);
  void give_outputs(PlanStep& step, const Node& node, int32_t at);
  int in_place_buffer(const PlanStep& step, const Node& node, int output,
                      int32_t at) const;
  void add_outputs();
  void add_lives();
  void add_arenas();
  void add_operands();  // views and calls, cut into parts
  bool cut(PlanStep& step, const Node& node);
  void add_call(const PlanStep& step, const Node& node,
                const SplitSignature* split, int part, int parts);
  void count();
  int new_buffer(Where where, int device, size_t bytes, int index = 0);
  void use(int buffer, int32_t step) { uses_[buffer].push_back(step); }

  Plan::Impl& p_;
  const Graph& graph_;
  std::vector<std::vector<Value>> values_;
  std::vector<std::vector<int32_t>> uses_;  // by buffer: steps
  std::vector<int32_t> last_read_;          // by root value of an arena buffer
  std::map<std::string, int> device_of_name_;
  std::vector<int32_t> step_of_node_;
};

}  // namespace berth

#endif  // BERTH_EXEC_PLAN_BUILDER_H_
