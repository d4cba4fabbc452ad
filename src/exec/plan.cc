#include "exec/plan.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "base/core_set.h"
#include "base/poison.h"
#include "base/thread_pool.h"
#include "berth/errors.h"
#include "device/memory_space.h"
#include "exec/control_flow.h"
#include "exec/plan_builder.h"
#include "exec/plan_impl.h"
#include "exec/run_locks.h"
#include "exec/variable_reads.h"
#include "graph/body.h"

namespace berth {

Plan::Plan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Plan::~Plan() { Impl::end(std::move(impl_)); }

Plan::Impl::~Impl() {
  // Asynchronous work refers to instances.
  for (auto& instance : idle) {
    for (Event& e : instance->done) {
      try {
        synchronize(e);
      } catch (const std::exception&) {
        // Whoever waits for the results sees it.
      }
    }
    finish_walks(*instance);
  }
}

std::unique_ptr<Plan> Plan::build(Graph graph, const PlanOptions& options) {
  return std::unique_ptr<Plan>(
      new Plan(Impl::build(std::move(graph), options)));
}

namespace {

void add_cpus(const Graph& graph, std::set<std::string>* names) {
  for (const Node& n : graph.nodes) {
    if (n.op->kind() != OpKind::kPlaceholder &&
        DeviceName::parse(n.assigned).type == "CPU") {
      names->insert(n.assigned);
    }
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      add_cpus(body, names);
    });
  }
}

bool uses_several_cpus(const Graph& graph) {
  std::set<std::string> names;
  add_cpus(graph, &names);
  return names.size() > 1;
}

}  // namespace

std::unique_ptr<Plan::Impl> Plan::Impl::build(Graph graph,
                                              const PlanOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->graph = std::move(graph);
  impl->options = options;
  if (!options.steps) {
    impl->options.steps = std::make_shared<std::atomic<uint64_t>>(0);
  }
  impl->options.host_threads |= uses_several_cpus(impl->graph);
  pin_reads(impl->graph);
  impl->schedule = make_schedule(impl->graph, options.in_order);
  PlanBuilder(*impl).build();
  return impl;
}

const PlanInfo& Plan::info() const { return impl_->info; }
const Graph& Plan::graph() const { return impl_->graph; }
const Schedule& Plan::schedule() const { return impl_->schedule; }

void Plan::sample_next(int runs) { impl_->wanted_samples = runs; }

void Plan::drop_wait_for_testing(int step, int wait) {
  auto& waits = step >= 0 ? impl_->steps.at(step).waits
                          : impl_->streams.at(-step - 1).final_waits;
  waits.erase(waits.begin() + wait);
}

namespace {

// The device that has the bytes which the transfers of a step bring.
Device& source_of(const PlanStep& step, const Plan::Impl& plan) {
  const Operand& from = plan.operands[plan.calls[step.first_call].first_view];
  return *plan.devices[plan.buffers[from.buffer].device];
}

size_t bytes_of(const View& v) {
  return static_cast<size_t>(v.size()) * size_of(v.dtype);
}

// Asynchronous work: the same calls on translated addresses.
void run_translated(void* context, const AddressMap& map) {
  const auto& launch = *static_cast<Instance::Launch*>(context);
  if (launch.step->parts > 1) {
    // Devices with a pool are cores: their addresses are the host's.
    const bool host = launch.plan->devices[launch.step->device]->pool();
    return launch.plan->run_region(*launch.step, *launch.run,
                                   host ? nullptr : &map);
  }
  const KernelCall& call = *launch.call;
  if (launch.step->kind == StepKind::kTransfer) {
    if (launch.plan->devices[launch.step->device]->pool()) {
      return transfer_to_host(*launch.step, *launch.plan, launch.call);
    }
    for (int c = 0; c < launch.step->calls_per_part; ++c) {
      const KernelCall& copy = launch.call[c];
      if (bytes_of(copy.in[0]) == 0) continue;  // it may lie nowhere
      std::memcpy(map.translate(copy.out[0].data),
                  map.translate(copy.in[0].data), bytes_of(copy.in[0]));
    }
    return;
  }
  run_at(*launch.kernel, call, map);
}

}  // namespace

void transfer_to_host(const PlanStep& step, const Plan::Impl& plan,
                      const KernelCall* calls) {
  Device& source = source_of(step, plan);
  for (int c = 0; c < step.calls_per_part; ++c) {
    const KernelCall& call = calls[c];
    source.copy_to_host(call.out[0].data, call.in[0].data,
                        bytes_of(call.in[0]));
  }
}

// Everything runs here and now, in order: nobody waits for anybody.
void Plan::Impl::launch_inline(Instance& run) {
  if (run.sampled) {
    launch_program<true>(run);
  } else {
    launch_program<false>(run);
  }
}

template <bool kTimed>
void Plan::Impl::launch_program(Instance& run) {
  const Instance::Inline* at = nullptr;
  double begin = kTimed ? host_clock_us() : 0;
  try {
    for (const Instance::Inline& i : run.program) {
      at = &i;
      if constexpr (kPoisons) {
        guard.before(run, static_cast<int32_t>(i.step - steps.data()));
      }
      if (i.direct) {
        i.direct(*i.call);
      } else if (i.kernel) {
        i.kernel->run(*i.call);
      } else if (i.step->parts > 1) {
        run_region(*i.step, run);
      } else if (i.step->kind == StepKind::kControl) {
        ops[i.step->first_op].control->run(*i.call);
      } else {
        transfer_to_host(*i.step, *this, i.call);
      }
      if constexpr (kTimed) {
        const double end = host_clock_us();
        run.times[i.step - steps.data()] = {begin, end};
        begin = end;
      }
    }
  } catch (const errors::Error& e) {
    if (at->step->kind == StepKind::kControl)
      throw;  // names a node of the body
    // Kernels do not know which node of whose program they compute.
    if (at->step->parts > 1) throw;
    raise_at(ops[at->step->first_op], e);
  }
}

namespace {

// One run at a time gives /CPU:0's thread work: a failure is that run's alone,
// and is cleared before the next one starts. Taken after the variables' locks.
std::unique_lock<std::mutex> hold_host_thread() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

}  // namespace

void Plan::Impl::launch_at_home(Instance& run) {
  if (home == nullptr || current_thread_within(devices[0]->pool()->cores())) {
    return launch_inline(run);
  }
  struct Job {
    Plan::Impl& plan;
    Instance& run;
    std::exception_ptr error;
  } job{*this, run, nullptr};
  Work work;
  work.context = &job;
  work.what = "a plan";
  work.run = [](void* context, const AddressMap&) {
    Job& job = *static_cast<Job*>(context);
    try {
      job.plan.launch_inline(job.run);
    } catch (...) {
      job.error = std::current_exception();
    }
  };
  const auto hold = hold_host_thread();
  home->launch(work);
  home->synchronize(home->record());
  if (job.error) std::rethrow_exception(job.error);
}

// Steps on inline streams run here and now; others are handed to their stream.
void Plan::Impl::launch(Instance& run) {
  if (inline_only) return launch_at_home(run);
  // Whoever waits in a walk looks at no clock.
  if (!walks.empty() && !run.deadline.is_set()) return launch_walks(run);
  for (size_t s = 0; s < steps.size(); ++s) {
    const PlanStep& step = steps[s];
    PlanStream& ps = streams[step.stream];
    const bool timed_wait = run.deadline.is_set() && runs_here(*ps.device);
    for (int32_t w : step.waits) {
      if (timed_wait) wait_in_time(run, run.events[w]);
      ps.stream->wait(run.events[w]);
    }
    // Only steps of the host write its arenas; others read them late.
    if constexpr (kPoisons) {
      if (runs_here(*ps.device)) guard.before(run, static_cast<int32_t>(s));
    }
    const bool timed_here = run.sampled && runs_here(*ps.device);
    const double begin = timed_here ? host_clock_us() : 0;
    if (step.kind != StepKind::kNothing) {
      const KernelCall& call = run.calls[step.first_call];
      if (step.kind == StepKind::kControl) {
        ops[step.first_op].control->run(call);
      } else if (!runs_here(*ps.device)) {
        Work work;
        work.run = &run_translated;
        work.context = &run.launches[s];
        const PlanOp& op = ops[step.first_op];
        work.what = step.parts > 1 ? "a region" : op.op->name().c_str();
        const auto& sources = graph[op.node].sources;
        // Errors of regions say which member failed.
        if (!sources.empty() && step.parts == 1) {
          work.site = sources.front().site;
        }
        work.flops = step.cost.flops;
        work.moved_bytes = step.cost.bytes;
        work.crosses_link = step.kind == StepKind::kTransfer;
        if (run.sampled) work.time = &run.times[s];
        ps.stream->launch(work);
      } else if (step.kind == StepKind::kTransfer) {
        transfer_to_host(step, *this, &call);
      } else if (step.parts > 1) {
        run_region(step, run);
      } else {
        ops[step.first_op].kernel.run(call);
      }
    }
    if (timed_here) run.times[s] = {begin, host_clock_us()};
    if (step.signals || run.deadline.is_set()) {
      run.events[s] = ps.stream->record();
      run.launched = static_cast<int32_t>(s) + 1;
    }
  }
  for (PlanStream& ps : streams) {
    for (int32_t w : ps.final_waits) {
      if (runs_here(*ps.device)) wait_in_time(run, run.events[w]);
      // The caller is told what failed on the host: only the order counts.
      const PlanStream& other = streams[steps[w].stream];
      if (options.host_threads && other.device->runs_inline()) {
        ps.stream->wait_for_reuse(run.events[w]);
      } else {
        ps.stream->wait(run.events[w]);
      }
    }
  }
}

// Takes the arguments to where the plan wants them.
void Plan::Impl::bind(Instance& run, std::span<const Tensor* const> in) {
  for (size_t i = 0; i < in.size(); ++i) {
    if (arg_device[i] < 0) continue;
    Device& device = *devices[arg_device[i]];
    const TensorImpl* t = in[i]->impl();
    run.args[i] = *in[i];
    const bool near =
        t->block->device == &device ||
        (!arg_escapes[i] && same_memory(*t->block->device, device));
    if (t->block->borrowed.load() || !near) {
      if (!near) note_argument(i, *t->block->device);
      run.args[i] = own_copy(*in[i], device);
      t = run.args[i].impl();
    }
    if (t->block->ready.stream) {
      for (PlanStream& s : streams) {
        if (t->block->ready.stream != s.stream) s.stream->wait(t->block->ready);
      }
    }
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Output& out = outputs[o];
    const PlanBuffer& b = buffers[out.buffer];
    if (b.where == Where::kOutput && out.same_as < 0) {
      const auto all = static_cast<int64_t>(b.bytes / size_of(out.dtype));
      run.outputs[o] = make_tensor(*devices[b.device], out.dtype,
                                   out.part ? Shape{all} : out.shape);
    }
  }
  for (const auto& [view, buffer] : patches) {
    const PlanBuffer& b = buffers[buffer];
    const Tensor& t =
        b.where == Where::kArg ? run.args[b.index] : run.outputs[b.index];
    run.views[view].data = t.impl()->data() + operands[view].offset;
  }
}

void Plan::Impl::finish(Instance& run, std::span<Tensor> out) {
  const auto allocated = [&](const Output& o) {
    return buffers[o.buffer].where == Where::kOutput && o.same_as < 0;
  };
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Output& from = outputs[o];
    const PlanBuffer& b = buffers[from.buffer];
    if (allocated(from)) continue;
    const Tensor* base = nullptr;
    if (b.where == Where::kOutput) {
      base = &run.outputs[from.same_as];
    } else if (b.where == Where::kArg) {
      base = &run.args[b.index];
    } else if (b.where == Where::kConst) {
      base = &constants[b.index];
    } else {
      throw errors::Internal("an output of the plan has no memory of its own");
    }
    run.outputs[o] = make_alias(*base, from.shape, from.offset);
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Output& from = outputs[o];
    out[o] = allocated(from) && from.part
                 ? make_alias(run.outputs[o], from.shape, from.offset)
                 : std::move(run.outputs[o]);
  }
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
      if (plan.inline_only) {
        for (Tensor& t : instance->args) t = Tensor();
      }
      for (Tensor& t : instance->outputs) t = Tensor();
      plan.give_back(std::move(instance));
    }
  } give_back{p, run};
  p.begin_run(*run);
  p.bind(*run, in);
  RunLocks locks(p);
  if (!p.random_calls.empty()) {
    const uint64_t step = (*p.options.steps)++;
    for (int c : p.random_calls) run->contexts[c].step = step;
  }
  std::unique_lock<std::mutex> hold;
  if (p.options.host_threads) hold = hold_host_thread();
  if (!p.inline_only) p.join_before();
  try {
    p.launch(*run);
    p.join_host(*run);
    p.wait_for_end(*run);
  } catch (const std::exception& e) {
    locks.tear(e.what());
    if (!p.inline_only) p.join_after(*run);
    if (!p.inline_only && !run->late) {
      // What is on its way still uses arenas of the host.
      for (const Event& e : run->done) finish(e);
      p.reset_host();
      p.reset_walked(*run);
    }
    throw;
  }
  locks.written();
  if (!p.inline_only) {
    p.watch_variables();
    p.join_after(*run);
    p.note_events(*run);
  }
  p.finish(*run, out);
}

}  // namespace berth
