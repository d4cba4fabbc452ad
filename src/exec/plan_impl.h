// The parts of a Plan: its program, its runner, and its runs.

#ifndef BERTH_EXEC_PLAN_IMPL_H_
#define BERTH_EXEC_PLAN_IMPL_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/timeline.h"
#include "exec/part_kernels.h"
#include "exec/plan.h"
#include "exec/run_locks.h"
#include "exec/run_record.h"
#include "program/runner.h"
#include "tensor/variable_state.h"

namespace berth {

// A run that a plan keeps for the next one, and what it owns.
struct Instance final : ProgramRun {
  Instance(const Program& program, const WrittenByOps& writes)
      : ProgramRun(program), arenas(program.devices.size()) {
    if (!writes.marks.empty()) written = &writes;
  }
  ~Instance() { count_exact(false); }

  // Nothing is alive in `exact` between runs: it does not count as handed out.
  void count_exact(bool is_idle);

  std::vector<BlockRef> arenas;  // by device
  // By buffer, where devices have exact memory; such have no arena.
  std::vector<BlockRef> exact;
  bool exact_is_idle = false;
  bool bases_resolved = false;
  int64_t runs_before = 0;  // of the plan, when it was checked out
  int64_t runs = 0;         // since then
  bool recorded = false;    // the last one, in a timeline
  int64_t number = 0;       // which one of the plan that was
  WorkTime host_time;       // when the host bound and launched it
  std::unique_ptr<PreparedRun> prepared;
};

struct Plan::Impl final : timeline::TimelineSource {
  // See Plan::build(). `nested`: a body, run by run_nested() alone.
  static std::unique_ptr<Impl> build(Graph graph, const PlanOptions& options,
                                     bool nested = false);
  Impl() = default;
  ~Impl() override;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Graph graph;
  Schedule schedule;
  PlanOptions options;
  PlanInfo info;
  std::unique_ptr<PartBinder> binder;  // owns the kernels of parts
  std::unique_ptr<const Program> program;
  PlanVariables variables;
  WrittenByOps writes;
  // What a stream writes, by stream; null: nothing.
  std::vector<std::shared_ptr<const WriteMarks>> written;
  std::unique_ptr<PlanRunner> runner;
  bool has_sums = false;  // in which devices wait for each other

  std::atomic<int> wanted_samples{0};  // Plan::sample_next()
  std::mutex mutex;                    // the instances and the record
  std::vector<std::unique_ptr<Instance>> idle;
  // Instances of runs that missed their deadline.
  std::vector<std::unique_ptr<Instance>> left_behind;
  RunRecord record;
  // The first of its types in this recording: steps, launching, slices.
  timeline::TypeId first_type = 0;
  size_t slice_type(const PlanStep& step, int chunk) const {
    return program->steps.size() + 1 +
           static_cast<size_t>(step.first_call + chunk);
  }
  uint64_t named_in = 0;
  int64_t last_number = 0;  // of recorded runs: no two have one number
  std::vector<timeline::RecordedEvent> events;  // of one run, to be added

  // Instances (plan_instance.cc).
  std::unique_ptr<Instance> checkout();
  void give_back(std::unique_ptr<Instance> instance);
  void take_exact(Instance& instance) const;
  // Sets the addresses of everything but arguments and outputs.
  void resolve(Instance& instance) const;

  // One run (plan.cc): bind() brings arguments where the program wants them and
  // makes results, finish() hands these out.
  void run(Instance& run, std::span<const Tensor* const> in,
           std::span<Tensor> out);
  void bind(Instance& run, std::span<const Tensor* const> in);
  void finish(Instance& run, std::span<Tensor> out);
  void end_failed(Instance& run);
  // Counts a run for random ops.
  void count_step(Instance& run);
  // Runs a nested plan (a body) on memory of the plan around it, which holds
  // the locks of the variables: one address per argument and per output, on
  // the devices that the plan has them on. The arguments are ready on the
  // compute stream of their device, and so are the outputs afterwards.
  void run_nested(Instance& run, std::byte* const* in, std::byte* const* out);

  // Order against work outside the plan; programs that are not inline
  // (run_order.cc).
  void join_before();
  void join_after(Instance& run);
  void note_events(Instance& run);
  void list_written();
  void watch_variables(const Instance& run);

  // What runs did (run_record.cc). begin_run() counts a run of an instance
  // whose last run has ended, and decides whether it is timed; it takes no lock
  // unless the last one was.
  void begin_run(Instance& run);
  // Adds the times of a sampled run that has ended. The caller holds the lock.
  void harvest(Instance& run);
  // Adds the times of all runs so far; waits for those on their way.
  void harvest_all();
  void drain() override { harvest_all(); }
  // Names the steps in the timeline that is recorded, and adds the times of a
  // run to it. The caller holds the lock.
  void add_event_types();
  void add_events(const Instance& run);
  // Counts that argument `index` was brought from a device.
  void note_argument(size_t index, const Device& from);

  // Runs with a deadline (deadline.cc). Throws errors::DeadlineExceeded, which
  // names who is missing, and what failed.
  void wait_for_end(Instance& run);
  static bool has_ended(const Instance& instance);
  void leave_behind(std::unique_ptr<Instance> instance);
  static void end(std::unique_ptr<Impl> impl);
};

}  // namespace berth

#endif  // BERTH_EXEC_PLAN_IMPL_H_
