// Instances: what one run of a plan owns.

#include <algorithm>
#include <utility>

#include "base/poison.h"
#include "exec/plan_impl.h"

namespace berth {

std::unique_ptr<Instance> Plan::Impl::make_instance() const {
  auto i = std::make_unique<Instance>();
  i->arenas.resize(devices.size());
  i->arena_base.resize(devices.size(), nullptr);
  i->bases.resize(buffers.size(), nullptr);
  i->views.resize(operands.size());
  for (size_t v = 0; v < operands.size(); ++v) {
    const Operand& o = operands[v];
    i->views[v] = {nullptr, o.shape, o.dtype, o.run_axis, o.pitch};
  }
  i->events.resize(steps.size());
  i->times.resize(steps.size());
  i->done.resize(streams.size());
  i->args.resize(graph.args.size());
  i->outputs.resize(outputs.size());
  i->contexts.resize(calls.size());
  i->calls.resize(calls.size());
  i->arrived = std::make_unique<std::atomic<uint32_t>[]>(
      static_cast<size_t>(tree_nodes));
  static const OpDef& add = op_named("AddV2");
  for (size_t c = 0; c < calls.size(); ++c) {
    const PlanCall& call = calls[c];
    KernelContext& context = i->contexts[c];
    context.slice_origin = call.slice_origin;
    context.unsplit = call.unsplit;
    const View* in = i->views.data() + call.first_view;
    const PlanOp* op = call.op < 0 ? nullptr : &ops[call.op];
    i->calls[c] = {op ? op->op : &add,
                   op ? op->attrs : nullptr,
                   in,
                   in + call.num_in,
                   call.num_in,
                   call.num_out,
                   &context};
  }
  if (!walks.empty()) {
    i->ended = std::make_unique<std::atomic<uint32_t>[]>(steps.size());
    for (const PlanWalk& w : walks) {
      i->walks.push_back({this, i.get(), &w, 0, false});
    }
  }
  i->launches.resize(steps.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    const PlanStep& step = steps[s];
    if (step.kind == StepKind::kNothing) continue;
    const KernelCall* call = &i->calls[step.first_call];
    const BoundKernel* kernel = nullptr;
    if (step.parts == 1 && step.kind == StepKind::kKernel) {
      // The op may fork by itself.
      Device& device = *devices[step.device];
      KernelContext& context = i->contexts[step.first_call];
      context.pool = options.workers == 1 ? nullptr : device.pool();
      context.slices = slices_of(graph[ops[step.first_op].node], device);
      kernel = &ops[step.first_op].kernel;
    }
    i->launches[s] = {this, i.get(), &step, kernel, call};
    i->program.push_back(
        {kernel ? kernel->direct : nullptr, kernel, call, &step});
  }
  return i;
}

// Sets the addresses of everything but arguments and outputs.
void Plan::Impl::resolve(Instance& instance) const {
  for (size_t b = 0; b < buffers.size(); ++b) {
    const PlanBuffer& buffer = buffers[b];
    switch (buffer.where) {
      case Where::kArena:
        instance.bases[b] = instance.arena_base[buffer.device] + buffer.offset;
        break;
      case Where::kConst:
        instance.bases[b] = constants[buffer.index].impl()->data();
        break;
      case Where::kVariable: {
        const BlockRef& storage =
            variable_state(variables[buffer.index].handle).storage;
        instance.bases[b] = storage ? storage->data : nullptr;
        break;
      }
      case Where::kArg:
      case Where::kOutput:
        break;
    }
  }
  for (size_t v = 0; v < operands.size(); ++v) {
    std::byte* base = instance.bases[operands[v].buffer];
    instance.views[v].data = base ? base + operands[v].offset : nullptr;
  }
  for (size_t c = 0; c < calls.size(); ++c) {
    if (calls[c].scratch < 0) continue;
    instance.contexts[c].scratch =
        instance.bases[calls[c].scratch] + calls[c].scratch_offset;
  }
}

std::unique_ptr<Instance> Plan::Impl::checkout() {
  std::unique_ptr<Instance> i;
  std::vector<std::unique_ptr<Instance>> ended;  // behind the lock
  int64_t runs_before;
  {
    std::lock_guard lock(mutex);
    runs_before = record.runs;
    for (auto& left : left_behind) {
      if (has_ended(*left)) ended.push_back(std::move(left));
    }
    std::erase(left_behind, nullptr);
    // The oldest one whose run has ended; when a few are still on their way,
    // the oldest of them.
    constexpr size_t kInFlight = 3;
    auto it = std::find_if(idle.begin(), idle.end(),
                           [](const auto& x) { return has_ended(*x); });
    if (it == idle.end() && idle.size() >= kInFlight) it = idle.begin();
    if (it != idle.end()) {
      i = std::move(*it);
      idle.erase(it);
    }
  }
  if (!i) i = make_instance();
  i->runs_before = runs_before;
  // The last run of this instance may still be on its way.
  for (Event& e : i->done) {
    // Whether it failed is no business of this one.
    berth::finish(e);
    e = {};
  }
  finish_walks(*i);
  bool moved = false;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (arena_bytes[d] == 0) continue;
    i->arenas[d] = ArenaPool::get().take(*devices[d], arena_bytes[d]);
    // The guard follows steps that run here; no others.
    const BlockRef& arena = i->arenas[d];
    runs_here(*devices[d]) ? poison(arena->data, arena->bytes)
                           : unpoison(arena->data, arena->bytes);
    moved |= i->arena_base[d] != i->arenas[d]->data;
    i->arena_base[d] = i->arenas[d]->data;
  }
  i->guarded = 0;
  const double scope = DeadlineScope::current();
  i->deadline = Deadline(scope > 0 ? scope : options.timeout_seconds);
  i->launched = 0;
  if (moved || !i->bases_resolved) {
    resolve(*i);
    i->bases_resolved = true;
  }
  return i;
}

void Plan::Impl::give_back(std::unique_ptr<Instance> instance) {
  for (size_t d = 0; d < devices.size(); ++d) {
    if (instance->arenas[d]) {
      // Other steps, of a body, may be on their way still.
      const BlockRef& arena = instance->arenas[d];
      if (runs_here(*devices[d])) poison(arena->data, arena->bytes);
      ArenaPool::get().give_back(*devices[d], std::move(instance->arenas[d]));
    }
  }
  std::lock_guard lock(mutex);
  record.runs += std::exchange(instance->runs, 0);
  if (idle.capacity() == idle.size()) idle.reserve(idle.size() + 4);
  idle.push_back(std::move(instance));
}

}  // namespace berth
