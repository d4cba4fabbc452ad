// The parts of a Plan, shared by building, running and printing.

#ifndef BERTH_EXEC_PLAN_IMPL_H_
#define BERTH_EXEC_PLAN_IMPL_H_

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "eager/kernel_cache.h"
#include "exec/arena_guard.h"
#include "exec/memory_plan.h"
#include "exec/plan.h"
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

// One operand of a region: bytes of a buffer from `offset` on.
struct Operand {
  int buffer = -1;
  size_t offset = 0;
  const Shape* shape = nullptr;
  DType dtype = DType::kInvalid;
};

enum class StepKind : uint8_t { kKernel, kTransfer, kNothing, kControl };

class ControlStep;  // exec/control_flow.h

struct PlanStep {
  StepKind kind = StepKind::kKernel;
  int32_t node = -1;
  int device = -1;
  int stream = -1;  // index into Impl::streams
  const OpDef* op = nullptr;
  const Attrs* attrs = nullptr;
  BoundKernel kernel;
  std::shared_ptr<const ControlStep> control;  // kControl
  int num_in = 0, num_out = 0;
  int parts = 1;       // calls of this step: the slices of the region
  int first_call = 0;  // in Instance::calls
  int first_view = 0;  // in Instance::views
  int scratch = -1;    // buffer
  double estimate_us = 0;
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

// What one run owns: arenas, resolved addresses, handles it keeps alive.
struct Instance {
  struct Launch {  // context of asynchronous work
    const PlanStep* step;
    const KernelCall* call;
  };
  std::vector<BlockRef> arenas;        // by device
  std::vector<std::byte*> arena_base;  // that the views are resolved for
  std::vector<std::byte*> bases;       // by buffer
  bool bases_resolved = false;
  std::vector<View> views;
  std::vector<KernelCall> calls;
  std::vector<KernelContext> contexts;  // by call
  std::vector<Launch> launches;         // by step
  // Plans on inline devices need no more than this per region.
  struct Inline {
    DirectKernel direct;  // null: several parts, or a prepared kernel
    const KernelCall* call;
    const PlanStep* step;
  };
  std::vector<Inline> program;
  std::vector<Event> events;  // by step
  std::vector<Tensor> args, outputs;
  std::vector<Event> done;  // by stream
  size_t guarded = 0;       // ArenaGuard's cursor
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
  std::vector<Tensor> constants;
  struct VariableUse {
    Tensor handle;
    bool read = false, write = false, overwrite_first = false;
  };
  std::vector<VariableUse> variables;
  std::vector<int> lock_order;  // of variables: by serial
  struct Output {
    int buffer = -1;  // kOutput: allocated; else an alias of it
    size_t offset = 0;
    Shape shape;
    DType dtype;
    int same_as = -1;  // another output with the same bytes
  };
  std::vector<Output> outputs;
  std::vector<int> arg_device;               // by argument; -1: nobody reads it
  std::vector<std::pair<int, int>> patches;  // (view, buffer): per run
  std::vector<int> random_calls;
  bool inline_only = true;
  ArenaGuard guard;
  uint64_t step_counter = 0;

  std::mutex mutex;  // step_counter and the instances
  std::vector<std::unique_ptr<Instance>> idle;

  // Parts that forked work on a device is cut into.
  int slices_on(Device& device) const {
    return options.slices ? options.slices : default_slices(device);
  }
  std::unique_ptr<Instance> checkout();
  void give_back(std::unique_ptr<Instance> instance);
  std::unique_ptr<Instance> make_instance() const;
  void resolve(Instance& instance) const;
  void bind(Instance& run, std::span<const Tensor* const> in);
  void launch(Instance& run);
  void launch_inline(Instance& run);
  // Runs a nested plan (a body) on memory of the plan around it, which holds
  // the locks of the variables: one address per argument and per output, on
  // the devices that the plan has them on. The arguments are ready on the
  // compute stream of their device, and so are the outputs afterwards.
  void run_nested(Instance& run, std::byte* const* in, std::byte* const* out);
  void finish(Instance& run, std::span<Tensor> out);
  // Asynchronous devices only (join.cc).
  void join_before();
  void join_after(Instance& run);
  void note_events(Instance& run);
  void watch_variables();
};

// Arenas of one device that all plans share: a run checks one out. Idle ones
// of the host are poisoned, and so are those that take() returns.
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
