// Program: the compiled form of a graph, as plain data.
//
// Steps in launch order with the kernels they call, the operands of these, the
// memory that the operands lie in, the streams and their waits. Built once, by
// the plan that owns it (exec/plan.h); immutable; thread-safe. Points into the
// graph and the kernels of its plan and lives as long as they do.

#ifndef BERTH_PROGRAM_PROGRAM_H_
#define BERTH_PROGRAM_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "berth/errors.h"
#include "berth/tensor.h"
#include "device/device.h"
#include "op/kernel.h"

namespace berth {

// Where the bytes of a buffer are.
enum class Where : uint8_t { kArena, kArg, kConst, kVariable, kOutput };

struct PlanBuffer {
  Where where = Where::kArena;
  int device = -1;  // index into Program::devices; where the bytes are
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

// What the step of an If or a While does: it runs programs of its own.
class ControlOp {
 public:
  virtual ~ControlOp() = default;
  // Runs on operands at addresses of the device. Throws what the bodies throw.
  virtual void run(const KernelCall& call) const = 0;
};

// A member of a region.
struct PlanOp {
  StepKind kind = StepKind::kKernel;
  int32_t node = -1;  // of the plan's graph
  std::string name;   // of the node
  Site site;          // of the user's line
  int replica = -1;   // of a strategy
  const OpDef* op = nullptr;
  const Attrs* attrs = nullptr;
  BoundKernel kernel;                   // of an op that is computed whole
  const KernelDef* of_parts = nullptr;  // what computes its parts
  const SplitSignature* split = nullptr;
  std::shared_ptr<const ControlOp> control;  // kControl
  int num_in = 0, num_out = 0;

  const KernelDef* def() const { return of_parts ? of_parts : kernel.def; }
};

// One call of a kernel.
struct PlanCall {
  const BoundKernel* kernel = nullptr;  // null: a transfer, or control flow
  int op = -1;                          // in Program::ops; -1: adds sums
  int part = 0;
  int first_view = 0;  // in Program::operands: inputs, then outputs
  int num_in = 0, num_out = 0;
  int scratch = -1;  // buffer
  size_t scratch_offset = 0;
  int64_t slice_origin = 0;
  const Shape* unsplit = nullptr;
  // For an op that is computed whole, which may fork by itself.
  ThreadPool* pool = nullptr;
  int slices = 1;
};

// A region: one instruction. With several parts, slice p makes the calls
// [first_call + p * calls_per_part, ...), one per member that computes.
struct PlanStep {
  StepKind kind = StepKind::kKernel;
  int device = -1;
  int stream = -1;  // index into Program::streams
  int first_op = 0, num_ops = 0;
  int parts = 1;
  int first_call = 0, calls_per_part = 0;
  // Partial sums: slices write their own, which are added along the tree. The
  // node that adds slice r's subtree to its left neighbour's makes the calls
  // [first_add + (r - 1) * num_sums, ...) and is ProgramRun::arrived
  // [first_node + r].
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

// Which thread computes for a device. `host_threads`: core sets that else
// compute on the caller's thread have their own.
struct Computes {
  Stream* stream = nullptr;
  bool here = false;  // the thread that launches
};
inline Computes computes_for(Device& device, bool host_threads) {
  if (host_threads) return {&device.plan_stream(), false};
  return {&device.compute_stream(), device.runs_inline()};
}

struct PlanStream {
  Device* device = nullptr;
  Stream* stream = nullptr;
  bool here = false;  // its steps run on the thread that launches them
  bool host = false;  // of the host itself, whose errors end the run
  std::vector<int32_t> start_waits;  // streams
  std::vector<int32_t> final_waits;  // steps
};

struct PlanOutput {
  int buffer = -1;  // kOutput: allocated; else an alias of it
  size_t offset = 0;
  Shape shape;
  DType dtype;
  int same_as = -1;   // another output with the same bytes
  bool part = false;  // of the buffer
};

struct Program {
  std::string name;  // of the graph
  std::vector<Device*> devices;
  std::vector<size_t> arena_bytes;  // by device
  std::vector<PlanStream> streams;
  std::vector<PlanBuffer> buffers;
  std::vector<Operand> operands;
  std::vector<PlanStep> steps;  // in launch order
  std::vector<PlanOp> ops;
  std::vector<PlanCall> calls;
  std::vector<Tensor> constants;
  std::vector<PlanOutput> outputs;
  std::vector<int> arg_device;    // by argument; -1: nobody reads it
  std::vector<bool> arg_escapes;  // by argument: a result has its bytes
  // Operands that lie elsewhere in every run: (operand, buffer).
  std::vector<std::pair<int, int>> patches;
  struct RandomCall {
    int call;
    int device;
  };
  std::vector<RandomCall> random_calls;
  int tree_nodes = 0;  // of partial sums
  int workers = 0;     // threads that a region may use; 0: all there are
  // Every step runs on the thread that launches it.
  bool is_inline = true;
  // Core sets compute on threads of their own, so that several do at once.
  bool host_threads = false;
  // What operands and calls point to.
  std::deque<Shape> part_shapes;
  std::deque<BoundKernel> sum_kernels;

  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // True when steps of the device run on the thread that launches them.
  bool runs_here(Device& device) const {
    return computes_for(device, host_threads).here;
  }
};

// Rethrows an error of a kernel with the node that it computed: kernels do not
// know which node of whose program they compute.
[[noreturn]] void raise_at(const PlanOp& op, const errors::Error& e);

}  // namespace berth

#endif  // BERTH_PROGRAM_PROGRAM_H_
