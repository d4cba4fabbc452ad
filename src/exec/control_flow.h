// ControlStep: the step of a plan that runs an If or a While.
//
// Bodies are nested plans that work on the operands and results of the step
// where these lie. Immutable once built; runs may overlap, each takes
// instances of the nested plans. The host reads the predicate at each turn;
// on asynchronous devices it waits for it.

#ifndef BERTH_EXEC_CONTROL_FLOW_H_
#define BERTH_EXEC_CONTROL_FLOW_H_

#include <memory>
#include <mutex>
#include <vector>

#include "exec/plan.h"
#include "op/control_flow.h"
#include "program/program.h"

namespace berth {

class ControlStep final : public ControlOp {
 public:
  // Compiles the bodies of a node whose step runs on `device`; the bodies are
  // placed there with their arguments and results. Throws what Plan::build
  // throws.
  ControlStep(const Node& node, const Graph& graph, Device& device,
              const PlanOptions& options);
  ~ControlStep() override;

  // Working memory of one run on the device.
  size_t scratch_bytes() const { return scratch_bytes_; }
  bool inline_only() const;
  // The nested plans: the branches, or the condition (may be null) and body.
  Plan::Impl* first() const { return first_.get(); }
  Plan::Impl* second() const { return second_.get(); }

  void run(const KernelCall& call) const override;

 private:
  class Lists;  // of addresses, for one run
  struct Addresses {
    std::vector<std::byte*> now, next, in, out;
  };
  void build_while(const Node& node, const Graph& graph,
                   const PlanOptions& options);
  void run_if(const KernelCall& call) const;
  void run_while(const KernelCall& call) const;
  void add_captures(const KernelCall& call, Addresses& lists) const;
  void list_turn(const KernelCall& call, size_t row, Addresses& lists) const;
  void finish_while(const KernelCall& call, int64_t turns,
                    const Addresses& lists) const;
  // Work of the device in order; inline devices do it at once.
  void move(void* to, const void* from, size_t bytes) const;
  void read(void* host, const void* from, size_t bytes) const;
  void write(void* to, const void* host, size_t bytes) const;

  Device& device_;
  const Computes by_;
  std::unique_ptr<Plan::Impl> first_, second_;
  // While only.
  bool is_while_ = false;
  bool counted_ = false, reverse_ = false;
  int num_vars_ = 0, num_rows_ = 0, num_captures_ = 0, num_stacks_ = 0;
  int64_t max_iterations_ = -1;
  std::vector<bool> fixed_;         // by variable: no turn changes it
  std::vector<size_t> var_bytes_;   // by variable
  std::vector<size_t> var_offset_;  // its second place, in scratch
  std::vector<size_t> row_bytes_, stack_row_bytes_;
  size_t scratch_bytes_ = 0;
  // Lists that no run has: a warm run allocates nothing.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Addresses>> idle_;
};

// What the step of an If or a While runs.
inline const ControlStep& control_of(const PlanOp& op) {
  return static_cast<const ControlStep&>(*op.control);
}

}  // namespace berth

#endif  // BERTH_EXEC_CONTROL_FLOW_H_
