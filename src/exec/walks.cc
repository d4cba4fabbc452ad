// Walks: how a plan on core sets alone runs.
//
// The thread of each device walks the device's steps by itself; it says of a
// step that it has ended by writing the number of the turn, and whoever waits
// for the step looks at that. So a run is one launch per device, and a
// hand-over one cache line. When a step fails, the walks go on saying that
// steps have ended, without doing any, so that nobody waits for ever.

#include <algorithm>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/core_set.h"
#include "base/spin.h"
#include "base/thread_pool.h"
#include "exec/plan_impl.h"

namespace berth {

void Plan::Impl::make_walks() {
  if (inline_only || !options.host_threads) return;
  const auto cores = [](const Device* d) { return d->type() == "CPU"; };
  if (!std::all_of(devices.begin(), devices.end(), cores)) return;
  for (const PlanStep& step : steps) {
    if (step.kind == StepKind::kControl) return;
  }
  for (const PlanStream& s : streams) {
    const bool known =
        std::any_of(walks.begin(), walks.end(),
                    [&](const PlanWalk& w) { return w.stream == s.stream; });
    if (!known) walks.push_back({s.stream, s.device, {}, {}});
  }
  const auto walk_of = [&](int stream) -> PlanWalk& {
    return *std::find_if(walks.begin(), walks.end(), [&](const PlanWalk& w) {
      return w.stream == streams[stream].stream;
    });
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    const PlanStep& step = steps[s];
    if (step.kind == StepKind::kNothing && step.waits.empty() &&
        !step.signals) {
      continue;
    }
    walk_of(step.stream).steps.push_back(static_cast<int32_t>(s));
  }
  for (size_t s = 0; s < streams.size(); ++s) {
    PlanWalk& w = walk_of(static_cast<int>(s));
    const auto& waits = streams[s].final_waits;
    w.final_waits.insert(w.final_waits.end(), waits.begin(), waits.end());
  }
  // The host's last: it waits for the others, and the caller for it.
  std::stable_partition(walks.begin(), walks.end(), [](const PlanWalk& w) {
    return !w.device->runs_inline();
  });
}

namespace {

void say_ended(Instance& run, int32_t step) {
  std::atomic<uint32_t>& ended = run.ended[step];
  ended.store(run.turn, std::memory_order_release);
  ended.notify_all();
}

void await(const Instance& run, int32_t step, int spin_us) {
  const std::atomic<uint32_t>& ended = run.ended[step];
  const auto ready = [&] {
    return ended.load(std::memory_order_acquire) == run.turn;
  };
  if (ready() || (spin_us > 0 && spin_until(spin_us, ready))) return;
  for (uint32_t seen = ended.load(std::memory_order_acquire); seen != run.turn;
       seen = ended.load(std::memory_order_acquire)) {
    ended.wait(seen, std::memory_order_acquire);
  }
}

void fail(Instance& run, const Device* device, std::exception_ptr error) {
  std::lock_guard lock(run.error_mutex);
  if (run.error) return;
  run.error = std::move(error);
  run.failed_on = device;
  run.failed.store(true, std::memory_order_release);
}

[[noreturn]] void rethrow(Instance& run) {
  std::exception_ptr error;
  {
    std::lock_guard lock(run.error_mutex);
    error = run.error;
  }
  std::rethrow_exception(error);
}

}  // namespace

void Plan::Impl::walk_step(Instance& run, int32_t s) const {
  const PlanStep& step = steps[s];
  const double begin = run.sampled ? host_clock_us() : 0;
  if (step.kind == StepKind::kTransfer) {
    transfer_to_host(step, *this, &run.calls[step.first_call]);
  } else if (step.parts > 1) {
    run_region(step, run);
  } else if (step.kind == StepKind::kKernel) {
    const PlanOp& op = ops[step.first_op];
    try {
      op.kernel.run(run.calls[step.first_call]);
    } catch (const errors::Error& e) {
      raise_at(op, e);
    }
  }
  if (run.sampled) run.times[s] = {begin, host_clock_us()};
}

// On the thread of the device.
void Plan::Impl::walk(Instance::Walk& w) const {
  Instance& run = *w.run;
  const PlanWalk& walk = *w.walk;
  w.begun = true;
  const int spin_us = walk.device->pool()->spin_us();
  bool failed = false;
  for (const int32_t s : walk.steps) {
    for (const int32_t before : steps[s].waits) await(run, before, spin_us);
    failed = failed || run.failed.load(std::memory_order_acquire);
    if (!failed) {
      try {
        walk_step(run, s);
      } catch (...) {
        failed = true;
        fail(run, walk.device, std::current_exception());
      }
    }
    if (steps[s].signals) say_ended(run, s);
  }
  for (const int32_t s : walk.final_waits) await(run, s, spin_us);
  // The caller is told what failed on the host; whoever had done all its work
  // by then has nothing to do with it.
  if (!failed && run.failed.load(std::memory_order_acquire)) {
    std::lock_guard lock(run.error_mutex);
    failed = !run.failed_on->runs_inline();
  }
  if (failed) rethrow(run);
}

// The caller computes what the host has to do, on a core of its own there, when
// it may; else the host's thread does.
void Plan::Impl::launch_walks(Instance& run) {
  finish_walks(run);  // a body's next turn: the threads still say their end
  ++run.turn;
  run.failed.store(false, std::memory_order_relaxed);
  run.error = nullptr;
  for (Instance::Walk& w : run.walks) w.begun = false;
  Instance::Walk& last = run.walks.back();
  std::optional<CoreGuard> guard;
  bool here = false;
  if (last.walk->device->runs_inline()) {
    const ThreadPool& pool = *last.walk->device->pool();
    if (pool.spin_us() > 0) guard.emplace(pool.cores()[0]);
    here = guard ? guard->holds() : current_thread_within(pool.cores());
    // What arguments, and other streams, made the host's thread wait for.
    Stream& stream = *last.walk->stream;
    if (here) stream.synchronize(stream.record());
  }
  run.walking.store(static_cast<int>(walks.size()) - (here ? 1 : 0),
                    std::memory_order_relaxed);
  for (Instance::Walk& w : run.walks) {
    if (&w != &last || !here) launch_walk(w);
  }
  if (here) walk(last);
}

void Plan::Impl::launch_walk(Instance::Walk& w) {
  w.before = w.walk->stream->record().sequence;
  Work work;
  work.context = &w;
  work.what = "a plan";
  work.run = [](void* context, const AddressMap&) {
    auto& walk = *static_cast<Instance::Walk*>(context);
    walk.plan->walk(walk);
  };
  work.drop = [](void* context) {
    auto& walk = *static_cast<Instance::Walk*>(context);
    Instance& run = *walk.run;
    if (!walk.begun) {
      // The stream had failed before: so has this run.
      try {
        synchronize({walk.walk->stream, walk.before + 1});
        throw errors::Internal("a plan was skipped");
      } catch (...) {
        fail(run, walk.walk->device, std::current_exception());
      }
      for (const int32_t s : walk.walk->steps) say_ended(run, s);
    }
    run.walking.fetch_sub(1, std::memory_order_release);
  };
  w.walk->stream->launch(work);
}

void Plan::Impl::finish_walks(Instance& run) {
  while (run.walking.load(std::memory_order_acquire) > 0) {
    std::this_thread::yield();
  }
}

void Plan::Impl::reset_walked(Instance& run) {
  if (walks.empty()) return;
  finish_walks(run);
  // A device that had failed before stays so until the user resets it.
  const bool own = std::all_of(run.walks.begin(), run.walks.end(),
                               [](const Instance::Walk& w) { return w.begun; });
  for (const Instance::Walk& w : run.walks) {
    if (own && !w.walk->device->runs_inline()) w.walk->device->reset_error();
  }
}

}  // namespace berth
