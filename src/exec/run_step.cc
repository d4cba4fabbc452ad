// What a step does under every runner.

#include "exec/runners.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

// Where the operand lies: an argument may be in pinned memory.
const MemorySpace& space_of(const Operand& operand, const ProgramRun& run) {
  const PlanBuffer& b = run.program.buffers[operand.buffer];
  if (b.where == Where::kArg && run.args[b.index].defined()) {
    return space_of(*run.args[b.index].impl()->block);
  }
  return run.program.devices[b.device]->memory();
}

void run_transfer(const PlanStep& step, ProgramRun& run) {
  const Program& p = run.program;
  Stream& stream = *p.streams[step.stream].stream;
  Device& here = stream.device();
  for (int c = 0; c < step.calls_per_part; ++c) {
    const KernelCall& copy = run.calls[step.first_call + c];
    const Operand& source = p.operands[p.calls[step.first_call + c].first_view];
    const View& in = copy.in[0];
    here.copy_async(
        stream,
        {copy.out[0].data, &here.memory(), in.data, &space_of(source, run),
         static_cast<size_t>(in.size()) * size_of(in.dtype)});
  }
}

}  // namespace

void run_as_work(const PlanStep& step, ProgramRun& run) {
  if (step.kind == StepKind::kNothing) return;
  if (step.kind == StepKind::kTransfer) return run_transfer(step, run);
  if (step.parts > 1) return run_region(step, run);
  const PlanOp& op = run.program.ops[step.first_op];
  const KernelCall& call = run.calls[step.first_call];
  run.begin_writes(step.first_op);
  if (step.kind == StepKind::kControl) return op.control->run(call);
  op.kernel.run(call);
}

void run_step(const PlanStep& step, ProgramRun& run) {
  try {
    run_as_work(step, run);
  } catch (const errors::Error& e) {
    // Bodies name a node of theirs, regions the member.
    if (step.kind == StepKind::kControl || step.parts > 1) throw;
    raise_at(run.program.ops[step.first_op], e);
  }
}

}  // namespace berth
