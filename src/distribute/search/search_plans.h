// search_plans: the fastest way to run a model on devices that fits them.
//
// Every combination that the strategies can run is a candidate: one device;
// replicas with shares, whole or sharded; divided layers, with replicas or
// without; pipelines under each schedule, also of divided layers. Stages are
// contiguous: their borders are found by dynamic programming (pipeline/
// balance.h), then moved while that helps; times are those of the instruction
// lists (pipeline/schedule.h). Pure functions.

#ifndef BERTH_DISTRIBUTE_SEARCH_SEARCH_PLANS_H_
#define BERTH_DISTRIBUTE_SEARCH_SEARCH_PLANS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "berth/auto_strategy.h"
#include "distribute/search/model_chain.h"

namespace berth::distribute {

inline constexpr double kImpossible = std::numeric_limits<double>::infinity();

// One combination, and what it would do.
struct ParallelCandidate {
  ParallelKind kind = ParallelKind::kOneDevice;
  // Numbers of the machine's devices: by replica or stage, those that divide
  // the layers of one together.
  std::vector<int> devices;
  int split = -1;  // of ModelChain::splits; -1: layers are whole
  int parts = 1;   // devices that divide a layer
  Sharding sharding = Sharding::kNone;
  std::vector<int> shares;  // of batches, per replica; empty: equal
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  int micro_batches = 1;
  std::vector<int32_t> begin;  // by stage: its first layer

  double step_us = kImpossible;
  // No step of these devices, schedule and micro-batches is faster, however it
  // is cut, if what was predicted of its kind is off by as much as the last.
  double bound_us = 0;
  double compute_us = 0, sums_us = 0, copies_us = 0;  // of the busiest device
  int64_t copies = 0;               // between devices, in a step
  std::vector<int64_t> peak_bytes;  // per entry of `devices`
  int too_small = -1;               // the entry that exceeds its limit most

  bool fits() const { return too_small < 0; }
  // Whether both are run in the same way.
  bool is_as(const ParallelCandidate& o) const;
  int groups() const { return static_cast<int>(devices.size()) / parts; }
};

// What a caller forbids and knows.
struct SearchLimits {
  int most_micro_batches = 64;
  int64_t most_copies = 0;  // between devices in a step; 0: any number
  bool tensor = true, pipelines = true, replicas = true, sharding = true;
  // Plans whose times and peak_bytes are known.
  std::vector<ParallelCandidate> built = {};
};

struct SearchResult {
  // The fastest of each kind that fits, the fastest first (of more than 16
  // devices, pipelines but the first may be others); then those of kinds
  // of which none fits, the closest to fitting.
  std::vector<ParallelCandidate> best;
  // By kind: the fastest that would be the best if it held less, at most half
  // of what is predicted.
  std::vector<ParallelCandidate> near;
  // No candidate that fits its devices is faster, however it is cut, if none is
  // faster by more, over what was predicted, than those of its kind that were
  // built; of interleaved stages the cuts that were tried.
  double bound_us = 0;
  int candidates = 0;
  int64_t estimates = 0;  // calls of estimate()
};

SearchResult search_plans(const ModelChain& chain, const SearchLimits& limits);

// Its parts, exposed for tests.

// Fills in times and bytes of a candidate whose other fields are set.
void estimate(const ModelChain& chain, ParallelCandidate& c);
// Sets too_small by peak_bytes.
void find_too_small(const ModelChain& chain, ParallelCandidate& c);
// A lower bound of estimate() over all cuts of a pipeline into stages, or
// `enough`, if it is that or more; kImpossible: none fits. Not of interleaved
// stages, whose bound is not known: 0.
double bound_of(const ModelChain& chain, const ParallelCandidate& c,
                double enough = kImpossible);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_SEARCH_SEARCH_PLANS_H_
