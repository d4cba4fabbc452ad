// ChainCosts: the layers of a chain under one candidate: times on its devices,
// sums between them, bytes that they hold.

#ifndef BERTH_DISTRIBUTE_SEARCH_CHAIN_COSTS_H_
#define BERTH_DISTRIBUTE_SEARCH_CHAIN_COSTS_H_

#include <vector>

#include "distribute/pipeline/balance.h"
#include "distribute/pipeline/schedule.h"
#include "distribute/search/search_plans.h"

namespace berth::distribute {

struct LayerTimes {
  double forward_us = 0, input_us = 0, weight_us = 0, update_us = 0;
  double forward_sum_us = 0, backward_sum_us = 0;  // between parts
};

// Some layers in a row, as a stage of a pipeline: of one micro-batch.
struct StageSum {
  int stage = 0;
  double forward_us = 0, input_us = 0, weight_us = 0, update_us = 0;
  double sums_us = 0;                         // of the first two, between parts
  double kept = 0, passing = 0, largest = 0;  // bytes
};

struct ChainStageTimes {
  PipelineTimes times;
  std::vector<double> update_us, sums_us;  // by device
};

class ChainCosts {
 public:
  ChainCosts(const ModelChain& chain, const ParallelCandidate& c);

  // A layer in group g (a replica, or a device of a pipeline), on `rows`
  // examples.
  LayerTimes layer(int g, size_t k, double rows) const;
  // What the times of group g depend on: equal for equal groups.
  std::vector<double> speeds_of(int g, double rows) const;
  // One of each number of equal groups.
  std::vector<int> distinct_groups() const;
  // The trained variables of a layer on one device.
  double trained_bytes(size_t k) const;

  // Adding values of `bytes` over n groups, on the device of group g.
  double sum_us(int g, double bytes, int n) const;
  int64_t sum_copies(double bytes, int n) const;
  // The messages of sharded variables, each of which is exchanged by itself.
  double apart_us(int g) const;
  // Gathering the parts of a value.
  double gather_us(int g, double bytes, int n) const;
  // Copies that divided layers need in a step.
  int64_t layer_copies() const;

  // What device d may hold by predictions; 0: no limit.
  int64_t limit(size_t d) const;
  std::vector<int64_t> bytes_of_replicas(const std::vector<double>& rows) const;

  // For pipelines.
  ScheduleShape shape() const;
  double rows() const;            // of a micro-batch
  std::vector<int> held() const;  // by stage: micro-batches, at most
  ChainStageTimes stages(const std::vector<int32_t>& begin) const;
  std::vector<int64_t> bytes_of_stages(const std::vector<int32_t>& begin,
                                       const std::vector<int>& held) const;
  // What balanced_cut() takes.
  UnitCosts unit_costs() const;
  std::vector<StageOn> stages_on() const;
  double hop_us(int stage, double bytes) const;  // from the stage before
  double least_hop_us() const;

  StageSum start_stage(size_t stage) const;
  void extend(StageSum& sum, size_t k) const;
  bool fits(const StageSum& sum, size_t stage, int held) const;

  // Sums over the layers before one, of the least times of any device.
  struct Least {
    std::vector<double> forward, input, weight;
  };
  Least least() const { return least(rows()); }
  Least least(double rows) const;

 private:
  StageSum stage(const std::vector<int32_t>& begin, size_t k) const;
  int beside(int in_flight) const;  // micro-batches that a device holds, too
  const DeviceClass& class_of(int g) const;
  const LinkCost& link_to(int g) const;  // from the group after it
  size_t device_of(int g) const {
    return static_cast<size_t>(c_.devices[static_cast<size_t>(g * c_.parts)]);
  }
  double between_parts_us(int g, double bytes, int values) const;
  double accumulate_us(int g, size_t k) const;
  double transient(double rows) const { return chain_.transient_bytes * rows; }
  double state_bytes(size_t k, double gradients) const;

  const ModelChain& chain_;
  const ParallelCandidate& c_;
  const ChainSplit* split_;  // null: layers are whole
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_SEARCH_CHAIN_COSTS_H_
