// The parts of a Plan, shared by building, running and printing.

#ifndef BERTH_EXEC_PLAN_IMPL_H_
#define BERTH_EXEC_PLAN_IMPL_H_

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "berth/errors.h"
#include "eager/kernel_cache.h"
#include "exec/arena_guard.h"
#include "exec/deadline.h"
#include "exec/memory_plan.h"
#include "exec/part_kernels.h"
#include "exec/plan.h"
#include "exec/run_record.h"
#include "graph/node_part.h"
#include "op/kernel.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

// Where the bytes of a buffer are.
enum class Where : uint8_t { kArena, kArg, kConst, kVariable, kOutput };

struct PlanBuffer {
  Where where = Where::kArena;
  int device = -1;  // index into Impl::devices; where the bytes are
  int index = 0;    // of the argument, constant, variable or output
  size_t bytes = 0;
  int32_t begin = 0, end = 0;  // life, in steps; arena only
  size_t offset = 0;           // in the device's arena
  bool scratch = false;
};

// One operand of a call: bytes of a buffer from `offset` on.
struct Operand {
  int buffer = -1;
  size_t offset = 0;
  const Shape* shape = nullptr;
  DType dtype = DType::kInvalid;
  int8_t run_axis = 0;  // of a pitched view
  int64_t pitch = 0;
};

enum class StepKind : uint8_t { kKernel, kTransfer, kNothing, kControl };

class ControlStep;  // exec/control_flow.h

// A member of a region.
struct PlanOp {
  StepKind kind = StepKind::kKernel;
  int32_t node = -1;
  const OpDef* op = nullptr;
  const Attrs* attrs = nullptr;
  BoundKernel kernel;                         // of an op that is computed whole
  const PartKernels* part_kernels = nullptr;  // of one in parts
  const SplitSignature* split = nullptr;
  std::shared_ptr<const ControlStep> control;  // kControl
  int num_in = 0, num_out = 0;

  const KernelDef* def() const {
    return part_kernels ? part_kernels->def : kernel.def;
  }
};

// One call of a kernel.
struct PlanCall {
  const BoundKernel* kernel = nullptr;  // null: a transfer
  int op = -1;                          // in Impl::ops; -1: adds partial sums
  int part = 0;
  int first_view = 0;  // in Instance::views
  int num_in = 0, num_out = 0;
  int scratch = -1;  // buffer
  size_t scratch_offset = 0;
  int64_t slice_origin = 0;
  const Shape* unsplit = nullptr;
};

// A region: one instruction. With several parts, slice p makes the calls
// [first_call + p * calls_per_part, ...), one per member that computes.
struct PlanStep {
  StepKind kind = StepKind::kKernel;
  int device = -1;
  int stream = -1;  // index into Impl::streams
  int first_op = 0, num_ops = 0;
  int parts = 1;
  int first_call = 0, calls_per_part = 0;
  // Partial sums: slices write their own, which are added along the tree. The
  // node that adds slice r's subtree to its left neighbour's makes the calls
  // [first_add + (r - 1) * num_sums, ...) and is Instance::arrived[first_node
  // + r].
  int first_add = 0, num_sums = 0, first_node = 0;
  int scratch = -1;   // buffer of the op, or what is private to the slices
  int partials = -1;  // buffer
  size_t private_bytes = 0;  // of one slice
  double estimate_us = 0;
  bool forks = true;  // false: too little for more than one thread
  Cost cost;
  std::vector<int32_t> waits;  // steps
  bool signals = false;        // somebody waits for it
};

struct PlanStream {
  Device* device = nullptr;
  Stream* stream = nullptr;
  std::vector<int32_t> start_waits;  // streams
  std::vector<int32_t> final_waits;  // steps
};

// Of a plan on core sets alone: the steps of one device's thread, which that
// thread walks by itself (walks.cc).
struct PlanWalk {
  Stream* stream = nullptr;
  Device* device = nullptr;
  std::vector<int32_t> steps;  // that do something, wait or signal
  std::vector<int32_t> final_waits;
};

// What one run owns: arenas, resolved addresses, handles it keeps alive.
struct Instance {
  struct Launch {  // context of asynchronous work
    const Plan::Impl* plan;
    Instance* run;
    const PlanStep* step;
    const BoundKernel* kernel;
    const KernelCall* call;
  };
  std::vector<BlockRef> arenas;        // by device
  std::vector<std::byte*> arena_base;  // that the views are resolved for
  std::vector<std::byte*> bases;       // by buffer
  bool bases_resolved = false;
  std::vector<View> views;
  std::vector<KernelCall> calls;
  std::vector<KernelContext> contexts;  // by call
  // Of partial sums, by tree node: how many subtrees ever arrived.
  std::unique_ptr<std::atomic<uint32_t>[]> arrived;
  std::vector<Launch> launches;  // by step
  int64_t runs_before = 0;       // of the plan, when it was checked out
  int64_t runs = 0;              // since then
  bool sampled = false;          // this run is timed
  std::vector<WorkTime> times;   // by step, of a sampled run
  // Plans on inline devices need no more than this per region.
  struct Inline {
    DirectKernel direct;        // null: several parts, or no direct kernel
    const BoundKernel* kernel;  // null: several parts, or a transfer
    const KernelCall* call;
    const PlanStep* step;
  };
  std::vector<Inline> program;
  std::vector<Event> events;  // by step
  std::vector<Tensor> args, outputs;
  std::vector<Event> done;  // by stream
  size_t guarded = 0;       // ArenaGuard's cursor

  // Walks: the last turn in which each step ended, and what failed in this one.
  struct Walk {
    const Plan::Impl* plan = nullptr;
    Instance* run = nullptr;
    const PlanWalk* walk = nullptr;
    uint64_t before = 0;  // sequence of the stream when it was launched
    bool begun = false;   // in this turn; false: skipped, the stream had failed
  };
  std::vector<Walk> walks;
  std::unique_ptr<std::atomic<uint32_t>[]> ended;  // by step
  uint32_t turn = 0;
  std::atomic<int> walking{0};  // walks of which the last word is not said
  std::atomic<bool> failed{false};
  std::mutex error_mutex;
  std::exception_ptr error;
  const Device* failed_on = nullptr;

  Deadline deadline;     // of this run
  int32_t launched = 0;  // steps, of a run with a deadline
  bool late = false;     // it has missed it: work may be on its way
};

struct Plan::Impl {
  // See Plan::build().
  static std::unique_ptr<Impl> build(Graph graph, const PlanOptions& options);
  Impl() = default;
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Graph graph;
  Schedule schedule;
  PlanOptions options;
  PlanInfo info;

  std::vector<Device*> devices;
  std::vector<size_t> arena_bytes;  // by device
  std::vector<PlanStream> streams;
  std::vector<PlanBuffer> buffers;
  std::vector<Operand> operands;  // by view
  std::deque<Shape> part_shapes;
  std::vector<PlanStep> steps;
  std::vector<PlanWalk> walks;  // empty unless all devices are core sets
  std::vector<PlanOp> ops;
  std::vector<PlanCall> calls;
  int tree_nodes = 0;
  std::deque<BoundKernel> sum_kernels;
  std::unique_ptr<PartBinder> binder;  // owns the kernels of parts
  std::vector<Tensor> constants;
  struct VariableUse {
    Tensor handle;
    bool read = false, write = false, overwrite_first = false;
    int home = -1;   // of a mirror: the use of what it mirrors
    int writes = 0;  // one per op
  };
  std::vector<VariableUse> variables;
  std::vector<VariableHold> holds;  // on their addresses
  std::vector<int> lock_order;      // of variables: by serial
  std::vector<int> mirrors;         // of variables: those that are mirrors
  struct Output {
    int buffer = -1;  // kOutput: allocated; else an alias of it
    size_t offset = 0;
    Shape shape;
    DType dtype;
    int same_as = -1;   // another output with the same bytes
    bool part = false;  // of the buffer
  };
  std::vector<Output> outputs;
  std::vector<int> arg_device;    // by argument; -1: nobody reads it
  std::vector<bool> arg_escapes;  // by argument: a result has its bytes
  std::vector<std::pair<int, int>> patches;  // (view, buffer): per run
  std::vector<int> random_calls;
  bool inline_only = true;
  // Of the one device of an inline plan that has a thread; else null.
  Stream* home = nullptr;
  ArenaGuard guard;

  std::atomic<int> wanted_samples{0};  // Plan::sample_next()
  std::mutex mutex;                    // the instances and the record
  std::vector<std::unique_ptr<Instance>> idle;
  // Of runs that missed their deadline.
  std::vector<std::unique_ptr<Instance>> left_behind;
  RunRecord record;

  // Parts that forked work on a device is cut into.
  int slices_on(Device& device) const {
    return options.slices ? options.slices : default_slices(device);
  }
  // The same for a node that is computed whole: one that has slices of a batch
  // is what a slice is on any device.
  int slices_of(const Node& node, Device& device) const {
    return has_slices(node.part.get()) ? 1 : slices_on(device);
  }
  // True when steps of the device run on the thread that launches them.
  bool runs_here(const Device& device) const {
    return device.runs_inline() && !options.host_threads;
  }
  Stream& stream_of(Device& device) const {
    return options.host_threads ? device.plan_stream()
                                : device.compute_stream();
  }
  std::unique_ptr<Instance> checkout();
  void give_back(std::unique_ptr<Instance> instance);
  std::unique_ptr<Instance> make_instance() const;
  void resolve(Instance& instance) const;
  void bind(Instance& run, std::span<const Tensor* const> in);
  void launch(Instance& run);
  void launch_inline(Instance& run);
  // Walks (walks.cc).
  void make_walks();
  void launch_walks(Instance& run);
  static void launch_walk(Instance::Walk& w);
  void walk(Instance::Walk& w) const;
  void walk_step(Instance& run, int32_t step) const;
  // Waits until nobody touches the instance any more.
  static void finish_walks(Instance& run);
  template <bool kTimed>
  void launch_program(Instance& run);
  // Counts a run of an instance whose last run has ended, and decides whether
  // it is timed. Takes no lock unless the last one was.
  void begin_run(Instance& run);
  // Adds the times of a sampled run that has ended. The caller holds the lock.
  void harvest(Instance& run);
  // The same for all runs so far; waits for those on their way.
  void harvest_all();
  // Counts that argument `index` was brought from a device.
  void note_argument(size_t index, const Device& from);
  // The same on the thread of the plan's device when the caller may run on
  // cores that are not the device's.
  void launch_at_home(Instance& run);
  // Runs a nested plan (a body) on memory of the plan around it, which holds
  // the locks of the variables: one address per argument and per output, on
  // the devices that the plan has them on. The arguments are ready on the
  // compute stream of their device, and so are the outputs afterwards.
  void run_nested(Instance& run, std::byte* const* in, std::byte* const* out);
  // Runs a region of several parts (run_region.cc).
  // `map`: null, or translates the addresses of a device.
  void run_region(const PlanStep& step, Instance& run,
                  const AddressMap* map = nullptr) const;
  // Rethrows an error of a kernel with the node that it computed.
  [[noreturn]] void raise_at(const PlanOp& op, const errors::Error& e) const;
  void finish(Instance& run, std::span<Tensor> out);
  // Asynchronous devices only (join.cc).
  void join_before();
  void join_after(Instance& run);
  // Waits for the threads that host_threads gave the work of /CPU:0. Throws
  // the error of a step.
  void join_host(Instance& run);
  // After a failed run: the caller is told, and these threads work again.
  void reset_host();
  // The same for the other core sets of a run that failed by itself: its error
  // is thrown, it does not stay with the device for later plans.
  void reset_walked(Instance& run);
  void note_events(Instance& run);
  void watch_variables();
  // Runs with a deadline (deadline.cc). Throw errors::DeadlineExceeded, which
  // names who is missing; the second also what failed.
  void wait_in_time(Instance& run, const Event& event) const;
  void wait_for_end(Instance& run);
  static bool has_ended(const Instance& instance);
  void leave_behind(std::unique_ptr<Instance> instance);
  static void end(std::unique_ptr<Impl> impl);
};

// Brings bytes to a device whose memory is the host's. `calls` are those of
// the step.
void transfer_to_host(const PlanStep& step, const Plan::Impl& plan,
                      const KernelCall* calls);

// Makes a call at the addresses that `map` gives for those in it.
void run_at(const BoundKernel& kernel, const KernelCall& call,
            const AddressMap& map);

// Arenas of one device that all plans share: a run checks one out.
class ArenaPool {
 public:
  static ArenaPool& get();
  // Returns a block of at least `bytes` on `device`.
  BlockRef take(Device& device, size_t bytes);
  void give_back(Device& device, BlockRef arena);
  // Drops the idle arenas of a device.
  void clear(Device& device);

 private:
  std::mutex mutex_;
  std::vector<std::vector<BlockRef>> idle_;  // by slot
};

}  // namespace berth

#endif  // BERTH_EXEC_PLAN_IMPL_H_
