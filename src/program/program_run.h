// ProgramRun: what one run of a program works on.
//
// Views of the operands and calls of the kernels, with the addresses of this
// run; where the run is. Set up once, then used for one run after the other;
// one thread at a time, and the threads that a runner gives work.

#ifndef BERTH_PROGRAM_PROGRAM_RUN_H_
#define BERTH_PROGRAM_PROGRAM_RUN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "program/deadline.h"
#include "program/program.h"
#include "tensor/write_marks.h"

namespace berth {

// What the ops of a program write.
struct WrittenByOps {
  WriteMarks marks;                         // also of bodies
  std::vector<std::vector<int32_t>> of_op;  // their own, by op
};

struct ProgramRun {
  // Views and calls of the program, without addresses.
  explicit ProgramRun(const Program& program);
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  // Gives all views and scratch the addresses that `bases` says.
  void resolve();
  // Gives those that lie elsewhere in every run the addresses that
  // `base_of(buffer)` says.
  template <class BaseOf>
  void patch(const BaseOf& base_of) {
    for (const auto& [view, buffer] : program.patches) {
      views[view].data =
          base_of(program.buffers[buffer]) + program.operands[view].offset;
    }
  }
  // Sets the step counter of random ops, on every device that has some.
  void set_step(uint64_t step);
  // Called before Program::ops[op] runs, which may write.
  void begin_writes(int op) const {
    if (written == nullptr) return;
    for (const int32_t m : written->of_op[op]) {
      begin_write(*written->marks[m], writer);
    }
  }

  const Program& program;
  std::vector<std::byte*> arena_base;  // by device
  std::vector<std::byte*> bases;       // by buffer; null: none, or patched
  std::vector<View> views;             // by operand
  std::vector<KernelCall> calls;
  std::vector<KernelContext> contexts;    // by call
  uint64_t step = 0;                      // what random ops count by
  const WrittenByOps* written = nullptr;  // null: nothing
  uint64_t writer = 0;                    // the number of this run in it
  std::vector<BlockRef> counters;  // it, by device with a memory of its own
  // For partial sums, by tree node: how many subtrees ever arrived.
  std::unique_ptr<std::atomic<uint32_t>[]> arrived;
  std::vector<Tensor> args, outputs;

  std::vector<Event> events;    // by step, of this run
  std::vector<Event> done;      // by stream: all that this run launched
  bool sampled = false;         // this run is timed
  std::vector<WorkTime> times;  // by step, of a sampled run
  // By first call of a region plus chunk, of a recorded run; empty: of another.
  std::vector<WorkTime> slices;
  size_t guarded = 0;  // cursor of the arenas' guard

  Deadline deadline;     // of this run
  int32_t launched = 0;  // steps, of a run with a deadline
  bool late = false;     // it has missed it: work may be on its way

 private:
  void make_counters();
};

}  // namespace berth

#endif  // BERTH_PROGRAM_PROGRAM_RUN_H_
