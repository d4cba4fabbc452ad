// What a candidate would take and hold.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "collective/device_allreduce.h"
#include "distribute/data_parallel/shares.h"
#include "distribute/pipeline/schedule.h"
#include "distribute/search/chain_costs.h"
#include "distribute/search/search_plans.h"

namespace berth::distribute {

namespace {

constexpr double kPack = 4 << 20;  // bytes of gradients that are sent together

// A step of replicas, or of one device, whose layers may be divided.
class ReplicaStep {
 public:
  ReplicaStep(const ModelChain& chain, ParallelCandidate& c)
      : chain_(chain), costs_(chain, c), c_(c) {}

  void run() {
    const int n = c_.groups();
    std::vector<double> rows(static_cast<size_t>(n),
                             static_cast<double>(chain_.batch) / n);
    if (!c_.shares.empty()) {
      const int all = std::accumulate(c_.shares.begin(), c_.shares.end(), 0);
      for (size_t r = 0; r < rows.size(); ++r) {
        rows[r] = static_cast<double>(chain_.batch) * c_.shares[r] / all;
      }
    }
    c_.step_us = c_.compute_us = c_.sums_us = c_.copies_us = 0;
    c_.copies = 0;
    std::set<std::vector<double>> seen;  // equal ones take as long
    for (int r = 0; r < n; ++r) {
      const double of_it = rows[static_cast<size_t>(r)];
      if (seen.insert(costs_.speeds_of(r, of_it)).second) add_replica(r, of_it);
    }
    c_.copies += n * costs_.layer_copies();
    c_.peak_bytes = costs_.bytes_of_replicas(rows);
  }

 private:
  bool divides(Sharding from) const { return c_.sharding >= from; }

  // The forward pass, then the backward pass, whose gradients are summed in
  // packs as soon as a pack is full, then the update.
  void add_replica(int r, double rows) {
    const int n = c_.groups();
    const size_t layers = chain_.layers.size();
    double now = 0, sums = 0, update = 0;
    const bool gathers = n > 1 && divides(Sharding::kParameters);
    for (size_t k = 0; k < layers; ++k) {
      const LayerTimes t = costs_.layer(r, k, rows);
      sums += t.forward_sum_us;
      now += t.forward_us + t.forward_sum_us;
      update += t.update_us;
      if (gathers) now += unhidden(r, k, k == 0 ? 0 : t.forward_us);
    }
    double link_free = now, pack = 0;
    for (size_t k = layers; k-- > 0;) {
      const LayerTimes t = costs_.layer(r, k, rows);
      sums += t.backward_sum_us;
      now += t.input_us + t.weight_us + t.backward_sum_us;
      if (gathers) now += unhidden(r, k, t.input_us + t.weight_us);
      pack += costs_.trained_bytes(k);
      const bool last = k == 0 || (divides(Sharding::kGradients) && pack > 0);
      if (n < 2 || (pack < kPack && !last)) continue;
      link_free = std::max(now, link_free) + costs_.sum_us(r, pack, n);
      if (r == 0) c_.copies += c_.parts * costs_.sum_copies(pack, n);
      pack = 0;
    }
    const double parts = divides(Sharding::kOptimizer) ? n : 1;
    // Each variable is exchanged by itself.
    const double apart = divides(Sharding::kOptimizer) ? costs_.apart_us(r) : 0;
    const double compute = now - sums + update / parts;
    const double end = std::max(now, link_free) + update / parts + apart;
    if (end <= c_.step_us) return;
    c_.step_us = end;
    c_.compute_us = compute;
    c_.sums_us = end - compute;
  }

  // The part of gathering a layer's variables that computing does not hide.
  double unhidden(int r, size_t k, double hidden) const {
    const double bytes = costs_.trained_bytes(k);
    if (bytes == 0) return 0;
    return std::max(0.0, costs_.gather_us(r, bytes, c_.groups()) - hidden);
  }

  const ModelChain& chain_;
  const ChainCosts costs_;
  ParallelCandidate& c_;
};

// A step of stages that run micro-batches.
void estimate_pipeline(const ModelChain& chain, ParallelCandidate& c) {
  const ChainCosts costs(chain, c);
  const ScheduleShape shape = costs.shape();
  const PipelineActions actions = actions_of(shape);
  const ChainStageTimes stages = costs.stages(c.begin);
  const PipelineTiming timing = time_of(actions, stages.times);
  c.step_us = c.compute_us = 0;
  for (size_t d = 0; d < actions.size(); ++d) {
    const PipelineAction& last = actions[d].back();
    const double end = timing.begin_us[d].back() + stages.times.of(last);
    const double compute = timing.busy_us[d] + stages.update_us[d];
    c.step_us = std::max(c.step_us, end + stages.update_us[d]);
    c.compute_us = std::max(c.compute_us, compute);
  }
  c.sums_us = *std::max_element(stages.sums_us.begin(), stages.sums_us.end());
  c.compute_us -= c.sums_us;
  c.copies_us = 2 * stages.times.hop * (shape.devices - 1);
  c.copies = int64_t{2} * (shape.stages - 1) * c.micro_batches * c.parts +
             costs.layer_copies();
  c.peak_bytes = costs.bytes_of_stages(c.begin, timing.in_flight);
}

}  // namespace

void estimate(const ModelChain& chain, ParallelCandidate& c) {
  const bool pipeline = c.kind == ParallelKind::kPipeline ||
                        c.kind == ParallelKind::kPipelineOfLayers;
  if (pipeline) {
    estimate_pipeline(chain, c);
  } else {
    ReplicaStep(chain, c).run();
  }
  const auto kind = static_cast<size_t>(c.kind);
  const double took = chain.took_over_predicted[kind];
  for (double* us : {&c.step_us, &c.compute_us, &c.sums_us, &c.copies_us}) {
    *us *= took;
  }
  const double held = chain.held_over_predicted[kind];
  for (int64_t& bytes : c.peak_bytes) {
    bytes = std::llround(static_cast<double>(bytes) * held);
  }
  find_too_small(chain, c);
}

void find_too_small(const ModelChain& chain, ParallelCandidate& c) {
  c.too_small = -1;
  double most = 0;
  for (size_t d = 0; d < c.devices.size(); ++d) {
    const auto limit = static_cast<double>(
        chain.machine.devices[static_cast<size_t>(c.devices[d])].memory_limit);
    const double over =
        limit > 0 ? static_cast<double>(c.peak_bytes[d]) / limit : 0;
    if (over <= 1 || over <= most) continue;
    most = over;
    c.too_small = static_cast<int>(d);
  }
}

}  // namespace berth::distribute
