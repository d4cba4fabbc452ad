// balanced_cut: where a pipeline's stages begin if nobody says it.
//
// The units of a model are its layers in the order of their calls. A stage is
// some of them in a row; the slowest stage decides how fast a pipeline is
// (PipeDream, Narayanan et al. 2019, section 3.1). Pure functions.

#ifndef BERTH_DISTRIBUTE_PIPELINE_BALANCE_H_
#define BERTH_DISTRIBUTE_PIPELINE_BALANCE_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace berth::distribute {

struct UnitCosts {
  std::vector<std::vector<double>> us;  // by device, by unit: both passes
  std::vector<int64_t> kept_bytes;      // by unit: variables and gradients
  std::vector<int64_t> passing_bytes;   // by unit: what one micro-batch holds
  std::vector<int64_t> sent_bytes;      // by unit: read by units after it
};

struct StageOn {
  int32_t device = 0;        // of UnitCosts::us
  int64_t memory_limit = 0;  // bytes; 0: none
  int in_flight = 1;         // micro-batches held at most
  // Whether the device computes while a copy arrives.
  bool overlaps = false;
  // Microseconds for that many bytes from the stage before.
  std::function<double(int64_t bytes)> receives;
};

struct PipelineCut {
  std::vector<int32_t> begin;  // by stage: its first unit
  std::vector<double> us;      // by stage
  std::vector<int64_t> bytes;  // by stage
  int64_t missing_bytes = 0;   // beyond limits, of all stages
};

// Returns the cut into stages of at least one unit with the fastest slowest
// stage, among those that keep all limits; if none does, among those that
// exceed them least. Needs at least as many units as stages. O(stages *
// units^2).
PipelineCut balanced_cut(const UnitCosts& units,
                         const std::vector<StageOn>& stages);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PIPELINE_BALANCE_H_
