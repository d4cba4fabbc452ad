// CompiledTrial: a graph compiled on given devices, to be measured and
// discarded.
//
// What ops cost together (lowered, fused, in regions) is known only once they
// are compiled. A trial has its own variables, never runs, and reports nothing.
// One thread.

#ifndef BERTH_FUNCTION_TRIAL_COMPILE_H_
#define BERTH_FUNCTION_TRIAL_COMPILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/plan.h"
#include "graph/graph.h"
#include "place/costs.h"
#include "place/place.h"
#include "place/placed.h"

namespace berth {

struct TrialOptions {
  bool optimize = true;
  int slices = 0;
  bool in_order = false;  // PlanOptions::in_order
  bool may_measure = true;
};

class CompiledTrial {
 public:
  // `device`: a full name per node. Throws errors::Error when the graph cannot
  // be compiled this way or memory runs out.
  CompiledTrial(const Graph& graph, const std::vector<DeviceId>& device,
                const PlaceOptions& places, const TrialOptions& options);

  // The simulator's prediction for a step of the compiled plan.
  double predicted_us();
  // Peak bytes of a device, by its exact memory plan.
  int64_t peak_bytes(const std::string& device) const;

  // Writes the times of ops on devices of class `device_class` into `costs`,
  // the costs of the graph: each op gets a share of the time of its region, in
  // proportion to its own cost there.
  void put_times(int32_t device_class, CostTable& costs);
  // The order in which computing nodes would be launched.
  std::vector<int32_t> order();

 private:
  std::vector<int32_t> nodes_of(const std::vector<int32_t>& compiled) const;

  const TrialOptions options_;
  const int32_t num_nodes_;
  PlacedGraph placed_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace berth

#endif  // BERTH_FUNCTION_TRIAL_COMPILE_H_
