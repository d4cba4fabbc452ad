// Runs of a region in slices: one fork; each slice makes its calls of all
// members in order and then adds its partial sums along a fixed binary tree.

#include <algorithm>

#include "base/thread_pool.h"
#include "exec/plan_impl.h"
#include "op/device_scope.h"

namespace berth {

void Plan::Impl::raise_at(const PlanOp& op, const errors::Error& e) const {
  const Node& node = graph[op.node];
  const Site site = node.sources.empty() ? Site{} : node.sources[0].site;
  errors::raise(e.code(), e.what() + where_text(node.name.c_str(), site));
}

namespace {

struct RegionRun {
  const Plan::Impl& plan;
  const PlanStep& step;
  Instance& run;
  const AddressMap* map;
  int chunks;  // chunk c runs slices c, c + chunks, ...

  void chunk(int c) const {
    for (int part = c; part < step.parts; part += chunks) slice(part);
  }

 private:
  void slice(int part) const {
    int at = step.first_call + part * step.calls_per_part;
    const int end = at + step.calls_per_part;
    try {
      for (; at < end; ++at) call(at);
    } catch (const errors::Error& e) {
      plan.raise_at(plan.ops[plan.calls[at].op], e);
    }
    if (step.num_sums > 0) add_up(part);
  }

  void call(int at) const {
    const BoundKernel& kernel = *plan.calls[at].kernel;
    if (map) return run_at(kernel, run.calls[at], *map);
    kernel.run(run.calls[at]);
  }

  // Whoever comes second to a node of the tree adds there and goes on; the
  // order of operands is fixed, and so are the bits. A node counts two
  // arrivals per run, so that the next run finds it even again.
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

void run_at(const BoundKernel& kernel, const KernelCall& call,
            const AddressMap& map) {
  std::vector<View> views(call.in, call.in + call.num_in + call.num_out);
  for (View& v : views) v.data = map.translate(v.data);
  KernelContext context = *call.context;
  context.scratch = map.translate(context.scratch);
  KernelCall translated = call;
  translated.in = views.data();
  translated.out = views.data() + call.num_in;
  translated.context = &context;
  kernel.run(translated);
}

void Plan::Impl::run_region(const PlanStep& step, Instance& run,
                            const AddressMap* map) const {
  const int workers = options.workers > 0 ? options.workers : step.parts;
  RegionRun region{*this, step, run, map, std::min(workers, step.parts)};
  ThreadPool* pool = step.forks ? devices[step.device]->pool() : nullptr;
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
