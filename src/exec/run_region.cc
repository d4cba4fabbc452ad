// Runs of a region in slices: one fork; each slice makes its calls of all
// members in order and then adds its partial sums along a fixed binary tree.

#include <algorithm>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "exec/runners.h"

namespace berth {

namespace {

struct RegionRun {
  const Program& program;
  const PlanStep& step;
  ProgramRun& run;
  int chunks;  // chunk c runs slices c, c + chunks, ...

  void chunk(int c) const {
    const bool timed = !run.slices.empty();
    const double begin = timed ? host_clock_us() : 0;
    for (int part = c; part < step.parts; part += chunks) slice(part);
    if (timed) run.slices[step.first_call + c] = {begin, host_clock_us()};
  }

 private:
  void slice(int part) const {
    int at = step.first_call + part * step.calls_per_part;
    const int end = at + step.calls_per_part;
    try {
      for (; at < end; ++at) member(at);
    } catch (const errors::Error& e) {
      raise_at(program.ops[program.calls[at].op], e);
    }
    if (step.num_sums > 0) add_up(part);
  }

  void member(int at) const {
    run.begin_writes(program.calls[at].op);
    call(at);
  }
  void call(int at) const { program.calls[at].kernel->run(run.calls[at]); }

  // The second thread to reach a node of the tree adds there and goes on; the
  // order of operands is fixed, and so are the bits. A node counts two arrivals
  // per run, so that the next run finds it even again.
  void add_up(int part) const {
    int at = part;
    for (int width = 1; width < step.parts; width *= 2) {
      const int node = (at & width) != 0 ? at : at + width;
      if (node >= step.parts) continue;
      auto& arrived = run.arrived[step.first_node + node];
      if (arrived.fetch_add(1, std::memory_order_acq_rel) % 2 == 0) return;
      const int first = step.first_add + (node - 1) * step.num_sums;
      for (int i = 0; i < step.num_sums; ++i) call(first + i);
      at = node - width;
    }
  }
};

}  // namespace

void run_region(const PlanStep& step, ProgramRun& run) {
  const Program& p = run.program;
  const int workers = p.workers > 0 ? p.workers : step.parts;
  RegionRun region{p, step, run, std::min(workers, step.parts)};
  ThreadPool* pool = step.forks ? p.devices[step.device]->pool() : nullptr;
  try {
    if (!pool) {
      for (int c = 0; c < region.chunks; ++c) region.chunk(c);
      return;
    }
    pool->run(
        region.chunks,
        [](void* arg, int c) { static_cast<RegionRun*>(arg)->chunk(c); },
        &region, step.estimate_us);
  } catch (...) {
    // Slices that failed never arrived; all others have ended.
    for (int n = 0; step.num_sums > 0 && n < step.parts; ++n) {
      run.arrived[step.first_node + n] = 0;
    }
    throw;
  }
}

}  // namespace berth
