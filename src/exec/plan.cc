#include "exec/plan.h"

#include <mutex>
#include <unordered_set>

#include "berth/errors.h"
#include "device/holders.h"
#include "device/memory_space.h"
#include "exec/host_thread.h"
#include "exec/plan_builder.h"
#include "exec/plan_impl.h"
#include "exec/runners.h"
#include "exec/variable_reads.h"
#include "graph/body.h"

namespace berth {

Plan::Plan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Plan::~Plan() { Impl::end(std::move(impl_)); }

Plan::Impl::~Impl() {
  if (timeline::is_on()) harvest_all();
  forget();
  // Asynchronous work refers to instances.
  for (auto& instance : idle) {
    for (Event& e : instance->done) {
      try {
        synchronize(e);
      } catch (const std::exception&) {
        // Waiting for the results reports it.
      }
    }
    instance->prepared->finish();
  }
}

std::unique_ptr<Plan> Plan::build(Graph graph, const PlanOptions& options) {
  return std::unique_ptr<Plan>(
      new Plan(Impl::build(std::move(graph), options)));
}

namespace {

void add_cpus(const Graph& graph, std::unordered_set<DeviceId>* names) {
  for (const Node& n : graph.nodes) {
    if (!n.op->graph_only() && n.assigned.is_cpu()) names->insert(n.assigned);
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      add_cpus(body, names);
    });
  }
}

bool uses_several_cpus(const Graph& graph) {
  std::unordered_set<DeviceId> names;
  add_cpus(graph, &names);
  return names.size() > 1;
}

}  // namespace

std::unique_ptr<Plan::Impl> Plan::Impl::build(Graph graph,
                                              const PlanOptions& options,
                                              bool nested) {
  auto impl = std::make_unique<Impl>();
  impl->graph = std::move(graph);
  impl->options = options;
  if (!options.steps) {
    impl->options.steps = std::make_shared<std::atomic<uint64_t>>(0);
  }
  impl->options.host_threads |= uses_several_cpus(impl->graph);
  write_after_checks(impl->graph);
  pin_reads(impl->graph);
  impl->schedule = make_schedule(impl->graph, options.in_order);
  BuiltPlan built =
      PlanBuilder(impl->graph, impl->schedule, impl->options).build();
  impl->info = std::move(built.info);
  impl->binder = std::move(built.binder);
  impl->program = std::move(built.program);
  impl->variables = std::move(built.variables);
  impl->writes = std::move(built.writes);
  impl->list_written();
  impl->runner = make_runner(*impl->program, nested);
  impl->has_sums = std::any_of(
      impl->program->ops.begin(), impl->program->ops.end(),
      [](const PlanOp& op) { return op.op->name() == "_AllReduceStart"; });
  impl->record.steps.resize(impl->program->steps.size());
  return impl;
}

const PlanInfo& Plan::info() const { return impl_->info; }
const Graph& Plan::graph() const { return impl_->graph; }
const Schedule& Plan::schedule() const { return impl_->schedule; }
const Program& Plan::program() const { return *impl_->program; }

void Plan::sample_next(int runs) { impl_->wanted_samples = runs; }

void Plan::Impl::bind(Instance& run, std::span<const Tensor* const> in) {
  const Program& p = *program;
  for (size_t i = 0; i < in.size(); ++i) {
    if (p.arg_device[i] < 0) continue;
    Device& device = *p.devices[p.arg_device[i]];
    const TensorImpl* t = in[i]->impl();
    run.args[i] = *in[i];
    const bool near =
        t->block->device == &device ||
        (!p.arg_escapes[i] && same_memory(*t->block->device, device));
    if (t->block->borrowed.load() || !near) {
      if (!near) note_argument(i, *t->block->device);
      run.args[i] = own_copy(*in[i], device);
      t = run.args[i].impl();
    }
    if (t->block->ready.stream) {
      for (const PlanStream& s : p.streams) {
        if (t->block->ready.stream != s.stream) s.stream->wait(t->block->ready);
      }
    }
  }
  for (size_t o = 0; o < p.outputs.size(); ++o) {
    const PlanOutput& out = p.outputs[o];
    const PlanBuffer& b = p.buffers[out.buffer];
    if (b.where == Where::kOutput && out.same_as < 0) {
      const auto all = static_cast<int64_t>(b.bytes / size_of(out.dtype));
      run.outputs[o] = make_tensor(*p.devices[b.device], out.dtype,
                                   out.part ? Shape{all} : out.shape);
      name_holder(run.outputs[o].impl()->block, "a result of a plan");
    }
  }
  run.patch([&](const PlanBuffer& b) {
    const Tensor& t =
        b.where == Where::kArg ? run.args[b.index] : run.outputs[b.index];
    return t.impl()->data();
  });
}

void Plan::Impl::finish(Instance& run, std::span<Tensor> out) {
  const Program& p = *program;
  const auto allocated = [&](const PlanOutput& o) {
    return p.buffers[o.buffer].where == Where::kOutput && o.same_as < 0;
  };
  for (size_t o = 0; o < p.outputs.size(); ++o) {
    const PlanOutput& from = p.outputs[o];
    const PlanBuffer& b = p.buffers[from.buffer];
    if (allocated(from)) continue;
    const Tensor* base = nullptr;
    if (b.where == Where::kOutput) {
      base = &run.outputs[from.same_as];
    } else if (b.where == Where::kArg) {
      base = &run.args[b.index];
    } else if (b.where == Where::kConst) {
      base = &p.constants[b.index];
    } else {
      throw errors::Internal("an output of the plan has no memory of its own");
    }
    run.outputs[o] = own_copy(make_alias(*base, from.shape, from.offset),
                              *p.devices[b.device]);
  }
  for (size_t o = 0; o < p.outputs.size(); ++o) {
    const PlanOutput& from = p.outputs[o];
    out[o] = allocated(from) && from.part
                 ? own_copy(make_alias(run.outputs[o], from.shape, from.offset),
                            *p.devices[p.buffers[from.buffer].device])
                 : std::move(run.outputs[o]);
  }
}

void Plan::Impl::count_step(Instance& run) {
  if (program->random_calls.empty()) return;
  run.set_step((*options.steps)++);
}

void Plan::Impl::run(Instance& run, std::span<const Tensor* const> in,
                     std::span<Tensor> out) {
  const double begin = timeline::is_on() ? host_clock_us() : 0;
  begin_run(run);
  bind(run, in);
  if (run.recorded) [[unlikely]] {
    run.host_time.end_us = host_clock_us();
    run.host_time.begin_us = begin > 0 ? begin : run.host_time.end_us;
  }
  RunLocks locks(variables);
  run.writer = lock_marks(writes.marks);
  count_step(run);
  std::unique_lock<std::mutex> hold;
  if (program->host_threads) hold = hold_host_thread();
  // Cards that wait for each other in a sum must meet in the same order.
  static std::recursive_mutex sums_mutex;
  std::unique_lock sums(sums_mutex, std::defer_lock);
  if (has_sums) sums.lock();
  const bool joins = !program->is_inline;
  if (joins) join_before();
  try {
    run.prepared->launch();
    // What runs inline ends here: only binding is the host's.
    if (run.recorded && joins) run.host_time.end_us = host_clock_us();
    join_host_thread(run);
    if (has_sums) sums.unlock();
    wait_for_end(run);
  } catch (const std::exception& e) {
    // An interrupt comes between two turns of a loop or two ops: what they
    // wrote is whole, as where a loop of the user's is left. Mirrors may
    // differ.
    const bool whole = dynamic_cast<const errors::Cancelled*>(&e) != nullptr &&
                       variables.mirrors.empty();
    for (const auto& mark : writes.marks) {
      if (!whole) fail_write(*mark, run.writer, e.what());
    }
    if (joins) end_failed(run);
    throw;
  }
  locks.written();
  if (joins) {
    watch_variables(run);
    join_after(run);
    note_events(run);
  }
  finish(run, out);
}

void Plan::Impl::end_failed(Instance& run) {
  join_after(run);
  if (run.late) return;
  // What is on its way still uses arenas of the host.
  for (const Event& e : run.done) berth::finish(e);
  reset_host_thread(*program);
  run.prepared->reset();
}

void Plan::run(std::span<const Tensor* const> in, std::span<Tensor> out) {
  Impl& p = *impl_;
  std::unique_ptr<Instance> run = p.checkout();
  struct Return {
    Impl& plan;
    std::unique_ptr<Instance>& instance;
    ~Return() {
      if (instance->late) {
        plan.leave_behind(std::move(instance));
        return;
      }
      if (plan.program->is_inline) {
        for (Tensor& t : instance->args) t = Tensor();
      }
      for (Tensor& t : instance->outputs) t = Tensor();
      plan.give_back(std::move(instance));
    }
  } give_back{p, run};
  p.run(*run, in, out);
}

}  // namespace berth
