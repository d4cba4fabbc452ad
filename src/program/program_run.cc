#include "program/program_run.h"

namespace berth {

ProgramRun::ProgramRun(const Program& p)
    : program(p),
      arena_base(p.devices.size(), nullptr),
      bases(p.buffers.size(), nullptr),
      views(p.operands.size()),
      calls(p.calls.size()),
      contexts(p.calls.size()),
      arrived(std::make_unique<std::atomic<uint32_t>[]>(
          static_cast<size_t>(p.tree_nodes))),
      args(p.arg_device.size()),
      outputs(p.outputs.size()),
      events(p.steps.size()),
      done(p.streams.size()),
      times(p.steps.size()) {
  for (size_t v = 0; v < p.operands.size(); ++v) {
    const Operand& o = p.operands[v];
    views[v] = {nullptr, o.shape, o.dtype, o.run_axis, o.pitch};
  }
  static const OpDef& add = op_named("AddV2");
  for (size_t c = 0; c < p.calls.size(); ++c) {
    const PlanCall& call = p.calls[c];
    KernelContext& context = contexts[c];
    context.pool = call.pool;
    context.slices = call.slices;
    context.slice_origin = call.slice_origin;
    context.unsplit = call.unsplit;
    const View* in = views.data() + call.first_view;
    const PlanOp* op = call.op < 0 ? nullptr : &p.ops[call.op];
    calls[c] = {op ? op->op : &add,
                op ? op->attrs : nullptr,
                in,
                in + call.num_in,
                call.num_in,
                call.num_out,
                &context};
  }
  for (const PlanStep& s : p.steps) {
    const int end = s.first_call + s.parts * s.calls_per_part;
    for (int c = s.first_call; c < end; ++c) {
      contexts[c].stream = p.streams[s.stream].stream;
    }
    const int added = s.first_add + (s.parts - 1) * s.num_sums;
    for (int c = s.first_add; c < added; ++c) {
      contexts[c].stream = p.streams[s.stream].stream;
    }
  }
  make_counters();
}

namespace {

// Brings the step counter to the devices whose memory the host does not reach.
void copy_step(void* context, Stream& stream) {
  const auto& run = *static_cast<const ProgramRun*>(context);
  Device& device = stream.device();
  for (const BlockRef& counter : run.counters) {
    if (!counter || counter->device != &device) continue;
    device.copy_async(stream, {counter->data, &device.memory(), &run.step,
                               &device.host_memory(), sizeof run.step});
  }
}

}  // namespace

void ProgramRun::make_counters() {
  for (const Program::RandomCall& r : program.random_calls) {
    Device& device = *program.devices[r.device];
    const uint64_t* counter = &step;
    if (!device.memory().host_addressable) {
      counters.resize(program.devices.size());
      BlockRef& block = counters[r.device];
      if (!block) {
        block = BlockRef::adopt(device.allocator().allocate(sizeof step));
      }
      counter = reinterpret_cast<const uint64_t*>(block->data);
    }
    contexts[r.call].step_counter = counter;
  }
}

void ProgramRun::set_step(uint64_t now) {
  step = now;
  for (size_t d = 0; d < counters.size(); ++d) {
    if (!counters[d]) continue;
    Work work;
    work.what = "the step counter";
    work.moved_bytes = sizeof step;
    work.context = this;
    work.run = &copy_step;
    program.devices[d]->compute_stream().launch(work);
  }
}

void ProgramRun::resolve() {
  for (size_t v = 0; v < views.size(); ++v) {
    const Operand& o = program.operands[v];
    std::byte* base = bases[o.buffer];
    views[v].data = base ? base + o.offset : nullptr;
  }
  for (size_t c = 0; c < calls.size(); ++c) {
    const PlanCall& call = program.calls[c];
    if (call.scratch < 0 || bases[call.scratch] == nullptr) continue;
    contexts[c].scratch = bases[call.scratch] + call.scratch_offset;
  }
}

}  // namespace berth
