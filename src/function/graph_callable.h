// GraphCallable: a traced graph that can be called, inlined and differentiated.
//
// Calls with symbolic tensors inline the graph; other calls run a Plan, one per
// set of shapes; the 16 most recently used are kept. Thread-safe.

#ifndef BERTH_FUNCTION_GRAPH_CALLABLE_H_
#define BERTH_FUNCTION_GRAPH_CALLABLE_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "berth/function.h"
#include "exec/plan.h"
#include "function/compile.h"
#include "graph/graph.h"
#include "op/callable.h"
#include "place/contracts.h"
#include "place/costs.h"
#include "place/placed.h"
#include "tensor/host_reads.h"

namespace berth {

class GraphCallable;

// The gradient of a taped function, and where its arguments come from.
struct Backward {
  enum class From { kInput, kOutput, kGrad };
  struct Source {
    From from;
    int index;  // of the input, output or gradient
  };

  std::shared_ptr<GraphCallable> function;
  std::vector<Source> args;
  std::vector<int> result_of_input;  // -1: no gradient
  size_t num_outputs = 0;            // the rest are saved values
};

class GraphCallable final : public Callable {
 public:
  // `graph` as traced. Optimises it unless the options say otherwise.
  GraphCallable(Graph graph, const FunctionOptions& options);
  ~GraphCallable() override;

  const std::string& name() const override { return graph_.name; }
  const std::vector<TensorSpec>& input_specs() const override {
    return input_specs_;
  }
  const std::vector<TensorSpec>& output_specs() const override {
    return output_specs_;
  }
  // Inputs beyond the graph's arguments (variable handles that a tape should
  // see) are allowed and ignored.
  void call(std::span<const Tensor* const> in, std::span<Tensor> out) override;
  Tensors gradient(std::span<const Tensor> in, std::span<const Tensor> out,
                   const Tensors& grads,
                   const std::vector<bool>& needed) override;

  // The variant for calls under a tape: its outputs are the graph's, followed
  // by the values that the gradient needs. Built once.
  std::shared_ptr<GraphCallable> taped();
  // Handles of the graph's variables.
  const std::vector<Tensor>& variables() const { return variables_; }
  // What a call with arguments of these shapes would run. Kept as if it had.
  struct Prepared {
    std::shared_ptr<Plan> plan;
    const PlacedGraph* placed = nullptr;
    std::shared_ptr<const void> owner;
  };
  Prepared prepare(const std::vector<Shape>& shapes);
  // As traced: what may be differentiated. (Optimising removes StopGradient and
  // replaces a product with 0 by a constant.)
  const Graph& traced() const { return traced_; }
  size_t num_args() const { return graph_.args.size(); }

  // How often each plan and each body in it ran, which decides what their
  // random ops draw: by shapes of arguments, including the variant for tapes
  // and its gradient. Includes plans that were dropped or are yet to be made.
  using RunCounts = std::map<std::string, std::vector<uint64_t>>;
  RunCounts run_counts() const;
  // Plans, made or not, continue from these counts; without one, from 0.
  void set_run_counts(RunCounts counts);

  struct Stages {
    std::string traced, optimized, placed, plan;
  };
  // For the plan used last. Throws errors::FailedPrecondition before a call.
  Stages stages() const;
  FunctionPlanInfo plan_info() const;
  // Whether a plan was made for a call.
  bool has_run() const;
  // Describe the plan used last, else that of the last call under a tape. Throw
  // errors::FailedPrecondition before a call (placement.cc).
  placement::Report placement();
  // The reports of all plans, most recently used first; then those of the plans
  // for calls under a tape, and of the gradients of these.
  std::vector<placement::Report> placements();
  // Throws errors::NotFound, with the nearest names, for an op that does not
  // exist.
  placement::Explanation explain(const std::string& op);

  // Throws errors::InvalidArgument, with the nearest names, when a contract of
  // the options, or a block of contracts in the graph, names an op that is not
  // in the graph as traced.
  void check_contract_names() const;

 private:
  struct Compiled {
    std::vector<Shape> shapes;
    uint64_t rewrite_key = 0;  // that of options.rewrite at compile time
    uint64_t policy_key = 0;   // of the policy: policy_key()
    std::string certificate;   // the planner's; "": placed by rules
    CostTable planned_costs;   // of the placed graph, if planned
    std::shared_ptr<std::atomic<uint64_t>> steps;  // for these shapes
    std::shared_ptr<BodySteps> body_steps;
    std::shared_ptr<Plan> plan;
    std::unique_ptr<TaskParts> parts;  // other tasks' parts; null: none
    PlacedGraph placed;
    double seconds = 0;
    // Whether the options or blocks in the graph have contracts.
    bool has_contracts = false;
    bool counts_turns = false;  // bodies move bytes and have limits on them
    std::mutex mutex;           // guards what follows
    // Devices of the arguments for which the contracts were checked.
    std::vector<const Device*> checked;
    bool checked_once = false;
    double recorded_us = -1;  // measured time, recorded beside its prediction
    // Runs, and those after which their thread read values of devices.
    std::atomic<int64_t> runs{0}, read{0}, reads_seen{0};
    std::atomic<const Device*> read_from{nullptr};

    void note_reads() {
      const ReadsOfThread& reads = host_reads();
      if (reads.count != reads_seen.exchange(reads.count) && runs > 0) {
        ++read;
        read_from = reads.last;
      }
      ++runs;
    }
    void run(std::span<const Tensor* const> in, std::span<Tensor> out) {
      note_reads();
      if (parts) return parts->run(*plan, in, out);
      plan->run(in, out);
    }
  };
  // Starts the counters of a new plan; the caller holds mutex_.
  void start_counts(Compiled& c) const;
  // The entries whose name begins with `prefix`, without the prefix.
  static constexpr const char* kTaped = "taped ";
  static constexpr const char* kGradient = "gradient ";
  static RunCounts part_of(const RunCounts& all, const std::string& prefix);
  // Compiles for given argument shapes, or returns the existing plan.
  std::shared_ptr<Compiled> compiled_for(std::span<const Tensor* const> in);
  // Returns the plan that fits now, or null; `use` makes it the most recently
  // used.
  template <class Fits>
  std::shared_ptr<Compiled> find_plan(const Fits& shapes_fit, bool use);
  // Adds a plan as the most recently used, or after that one.
  void keep(std::shared_ptr<Compiled> c, bool use);
  std::shared_ptr<Compiled> last() const;
  // placement.cc
  // What all tasks do; see exec/report.h.
  static StepWork work(Compiled& c, std::span<const Tensor* const> next = {},
                       const std::vector<int64_t>* since = nullptr);
  placement::Report report(Compiled& c) const;
  static void record(Compiled& c, const placement::Report& report);
  // The variant for tapes if only it was called; else null.
  std::shared_ptr<GraphCallable> used_variant();
  void note_contracts(Compiled& c) const;
  [[noreturn]] void fail_not_found(const Compiled& c,
                                   const std::string& op) const;
  void check_before(Compiled& c, std::span<const Tensor* const> in) const;
  void check_after(Compiled& c, std::span<const Tensor* const> in,
                   const std::vector<int64_t>& bodies) const;
  void check_open(Compiled& c, std::span<const Tensor* const> in,
                  const ContractChain* open) const;
  void check_work(const StepWork& work) const;
  void run_checked(Compiled& c, std::span<const Tensor* const> in,
                   std::span<Tensor> out, const ContractChainRef& open) const;
  // How to compute the gradient of taped outputs: a second function.
  // `argument_on`: full names of the devices that hold them; empty: unknown.
  std::shared_ptr<Compiled> compile(
      const std::vector<Shape>& shapes,
      const std::vector<std::string>& argument_on) const;
  // Plans with different keys are different plans. The policy's has soft
  // placement on or off in it.
  uint64_t rewrite_key() const;
  uint64_t policy_key() const;

  FunctionOptions options_;
  std::vector<ParsedContract> contracts_;  // of the options
  int ops_traced_ = 0;
  const Graph traced_;
  Graph graph_;  // optimised
  std::vector<TensorSpec> input_specs_, output_specs_;
  std::vector<Tensor> variables_;
  std::unique_ptr<Backward> backward_;  // of taped variants

  mutable std::mutex
      compile_mutex_;         // held while compiling; taken before mutex_
  mutable std::mutex mutex_;  // guards what follows; not held while compiling
  std::list<std::shared_ptr<Compiled>> plans_;  // most recently used first
  std::shared_ptr<GraphCallable> taped_;
  mutable RunCounts counts_;  // of plans that do not exist (yet)
};

}  // namespace berth

#endif  // BERTH_FUNCTION_GRAPH_CALLABLE_H_
