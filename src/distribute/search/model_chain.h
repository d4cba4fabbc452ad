// ModelChain: what a search needs to know of a training step: its layers in the
// order of their calls, what each costs and keeps, and the devices.
//
// Times are microseconds, sizes bytes. Plain data; nothing here touches a
// device.

#ifndef BERTH_DISTRIBUTE_SEARCH_MODEL_CHAIN_H_
#define BERTH_DISTRIBUTE_SEARCH_MODEL_CHAIN_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "berth/model_parallel.h"
#include "place/costs.h"

namespace berth::distribute {

// Time of a pass over some examples: a line.
struct PassTime {
  double fixed_us = 0;
  double example_us = 0;
  double of(double examples) const { return fixed_us + example_us * examples; }
};

// A layer, or some in a row. Per device: what each of the machine's devices
// would take.
struct ChainLayer {
  std::string path;  // as steps name it; of several together, the first
  std::vector<PassTime> forward, input, weight;  // per device
  std::vector<double> update_us;                 // per device
  int64_t trained_bytes = 0;                     // variables with a gradient
  int64_t slot_bytes = 0;                        // the optimizer's
  int64_t other_bytes = 0;                       // other variables
  int num_trained = 0;                           // variables with a gradient
  double kept_bytes = 0;  // per example, for the backward pass
  double sent_bytes = 0;  // per example, to the layers after it
};

// A layer whose variables are divided: shares of what one device has or does.
struct SplitLayer {
  double forward = 1, backward = 1, update = 1;  // of times
  double trained = 1, kept = 1;                  // of bytes
  // What is added up or gathered, per example, and in how many values.
  double forward_bytes = 0, backward_bytes = 0;
  int forward_sums = 0, backward_sums = 0;
};

// One way to divide all layers over `parts` devices.
struct ChainSplit {
  int parts = 1;
  std::vector<std::pair<std::string, AxisNames>> layouts;  // by variable
  std::vector<SplitLayer> layers;
};

struct ModelChain {
  int64_t batch = 1;
  std::vector<ChainLayer> layers;
  std::vector<ChainSplit> splits;
  Machine machine;  // its devices are those of the search
  // What one device that trains alone holds at its peak: a share of the
  // gradients, and bytes per example besides what layers keep.
  double gradients_held = 1;
  double transient_bytes = 0;
  // By ParallelKind: what a plan of it that was built holds, over what was
  // predicted.
  std::array<double, 6> held_over_predicted = {1, 1, 1, 1, 1, 1};
  // By ParallelKind: what its step takes, over what was predicted; and the
  // least of these and 1, which scales bounds.
  std::array<double, 6> took_over_predicted = {1, 1, 1, 1, 1, 1};
  std::array<double, 6> least_over_predicted = {1, 1, 1, 1, 1, 1};
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_SEARCH_MODEL_CHAIN_H_
