// LayerKeys: how far into the forward pass every op is.
//
// Stages of a network are runs of layers: forward ops in order, each with its
// gradients. The problem says which ops are gradients (`backward`), or they
// begin where most values are kept for later. A pure function.

#ifndef BERTH_PLANNER_LAYER_KEYS_H_
#define BERTH_PLANNER_LAYER_KEYS_H_

#include <cstdint>
#include <vector>

#include "planner/step_units.h"

namespace berth {

enum class LayerOrder : uint8_t {
  kFolded,  // gradients get the position of the forward ops they belong to
  kPlain,   // all ops in the order of the file
};

struct LayerKeys {
  // Per node that takes time: its position, from 0; others: 0.
  std::vector<double> key;
  // Per node: a gradient that only ops at the end of the graph read.
  std::vector<uint8_t> of_weight;
  std::vector<uint8_t> backward;  // per node; kFolded alone says it
};

// `units` must be `ordered`.
LayerKeys layer_keys(const StepUnits& units, LayerOrder order);

}  // namespace berth

#endif  // BERTH_PLANNER_LAYER_KEYS_H_
