// Trial: a graph compiled on given devices, to be measured and thrown away.
//
// What ops cost together (lowered, fused, in regions) is known only once they
// are compiled. A trial has variables of its own, never runs, and tells nobody
// anything. One thread.

#ifndef BERTH_FUNCTION_TRIAL_H_
#define BERTH_FUNCTION_TRIAL_H_

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

class Trial {
 public:
  // `device`: per node, a full name. Throws errors::Error when the graph cannot
  // be compiled so, or there is no memory.
  Trial(const Graph& graph, const std::vector<DeviceId>& device,
        const PlaceOptions& places, const TrialOptions& options);

  // What a step takes, as the simulator sees the compiled plan.
  double predicted_us();
  // Bytes at the peak of a device, by the exact plan of its memory.
  int64_t peak_bytes(const std::string& device) const;

  // Puts the times of ops that ran on devices of class `device_class` into
  // `costs`, which are those of the graph: each takes its part, by what it took
  // there, of the region that it became part of.
  void put_times(int32_t device_class, CostTable& costs);
  // The order in which the nodes that compute would be launched.
  std::vector<int32_t> order();

 private:
  std::vector<int32_t> nodes_of(const std::vector<int32_t>& compiled) const;

  const TrialOptions options_;
  const int32_t num_nodes_;
  PlacedGraph placed_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace berth

#endif  // BERTH_FUNCTION_TRIAL_H_
