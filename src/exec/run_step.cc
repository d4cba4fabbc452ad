// What a step does, whoever runs it.

#include "exec/runners.h"

namespace berth {

namespace {

void run_transfer(const PlanStep& step, ProgramRun& run) {
  const Program& p = run.program;
  Stream& stream = *p.streams[step.stream].stream;
  Device& here = stream.device();
  const Operand& source = p.operands[p.calls[step.first_call].first_view];
  const MemorySpace& from =
      p.devices[p.buffers[source.buffer].device]->memory();
  for (int c = 0; c < step.calls_per_part; ++c) {
    const KernelCall& copy = run.calls[step.first_call + c];
    const View& in = copy.in[0];
    here.copy_async(stream,
                    {copy.out[0].data, &here.memory(), in.data, &from,
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
