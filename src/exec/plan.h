// Plan: the compiled form of a graph for known shapes and devices.
//
// A list of regions per device in a fixed order, with kernels bound, memory
// planned and waits known. Building checks everything;
// running looks nothing up and calls no system allocator when warm.
// Thread-safe: runs may overlap; each takes an instance (arena and views) of
// its own. Runs that write a common variable exclude each other.

#ifndef BERTH_EXEC_PLAN_H_
#define BERTH_EXEC_PLAN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exec/slicing_rule.h"
#include "graph/graph.h"
#include "place/schedule.h"

namespace berth {

struct Program;

// Counters of the bodies of loops and branches, in the order in which their
// plans are made.
struct BodySteps {
  std::vector<std::shared_ptr<std::atomic<uint64_t>>> counters;
  size_t next = 0;

  std::shared_ptr<std::atomic<uint64_t>> take() {
    if (next == counters.size()) {
      counters.push_back(std::make_shared<std::atomic<uint64_t>>(0));
    }
    return counters[next++];
  }
};

struct PlanOptions {
  // Parts per forked region; results depend on it alone. 0: the number of
  // cores of the device.
  int slices = 0;
  // Threads that a region may use; 0: all of the device's.
  int workers = 0;
  // Work of /CPU:0 goes to that device's own thread, so that several CPU
  // devices compute at once. Set by build(): the plan uses more than one.
  bool host_threads = false;
  // A run ends, or throws errors::DeadlineExceeded, within so many seconds;
  // runs of asynchronous devices then return when they have ended. 0: no limit.
  double timeout_seconds = 0;
  // The order of the graph is a plan's: every device runs its ops in it.
  // Neighbours may still become a region.
  bool in_order = false;
  // Which ops are split, besides those that have slices.
  SlicingRule slicing_rule = {};
  // Counts the runs for random ops; null: the plan's own. Plans of one step on
  // other devices share it, so that the numbers go on.
  std::shared_ptr<std::atomic<uint64_t>> steps = nullptr;
  // The counts of the bodies of its loops and branches.
  std::shared_ptr<BodySteps> body_steps = nullptr;
  // Makes runs ignore wait .second of step .first, or final wait .second of
  // stream -.first - 1 (tests of the waits themselves).
  std::optional<std::pair<int, int>> dropped_wait = std::nullopt;
};

// Figures for people and benches.
struct PlanInfo {
  int ops_traced = 0;
  int ops = 0;      // after optimisation, without constants and arguments
  int regions = 0;  // instructions of the plan
  int transfers = 0;
  int waits = 0;
  size_t copied_bytes = 0;  // between devices, per run
  size_t arena_bytes = 0;   // all devices
  size_t bound_bytes = 0;   // liveness bound of the same buffers
  size_t output_bytes = 0;  // blocks that escape, per run
  std::vector<std::pair<std::string, size_t>> arena_by_device;
};

class Plan {
 public:
  // Compiles a placed and partitioned graph whose shapes are all known.
  // Throws errors::Unimplemented (no kernel), errors::InvalidArgument (unknown
  // shape), errors::ResourceExhausted, each with the node and its line.
  static std::unique_ptr<Plan> build(Graph graph, const PlanOptions& options);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Runs once.
  //   in   one per graph.args, with the dtypes and shapes of the graph; copied
  //        to the argument's device when elsewhere.
  //   out  one per graph.outputs; on asynchronous devices still on their way.
  // Throws what a kernel throws and errors::DeadlineExceeded (variables that
  // the run writes are then torn), and errors::FailedPrecondition when a
  // variable it reads is torn.
  void run(std::span<const Tensor* const> in, std::span<Tensor> out);

  const PlanInfo& info() const;
  const Graph& graph() const;
  const Schedule& schedule() const;
  const Program& program() const;  // program/program.h

  // The plan as text: docs/graph-format.md, "Plans".
  std::string str() const;

  // Times the next so many runs, besides those that are sampled anyway.
  void sample_next(int runs);

  struct Impl;  // exec/plan_impl.h
  Impl& impl() { return *impl_; }

 private:
  explicit Plan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth

#endif  // BERTH_EXEC_PLAN_H_
