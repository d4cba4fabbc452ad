// find_layouts: which variables to divide over devices, along which axis.
//
// Nothing is a list of layers. Each variable is tried whole and along each axis
// that the devices divide, in the order in which the model reads them: the
// split rules of the ops after it say what is then computed in parts, until
// parts are added up or gathered (Shoeybi et al. 2019, section 3, are the
// layouts that this finds for transformers). One thread per graph.

#ifndef BERTH_DISTRIBUTE_AUTOMATIC_FIND_LAYOUTS_H_
#define BERTH_DISTRIBUTE_AUTOMATIC_FIND_LAYOUTS_H_

#include <vector>

#include "distribute/pipeline/step_layers.h"
#include "distribute/search/model_chain.h"
#include "graph/graph.h"

namespace berth::distribute {

// How dear bytes between devices are when layouts are chosen.
enum class LayoutAim : uint8_t {
  kLinks,   // as the links of the machine say
  kTime,    // and what devices do with them
  kMemory,  // hardly: as much is divided as possible
};

// The divided axes of a training step on `parts` devices. Its variables are not
// divided, and stay so.
std::vector<std::pair<Tensor, int>> find_layouts(const Graph& step, int parts,
                                                 const Machine& machine,
                                                 LayoutAim aim);

// What such layouts divide, and what is sent for it, of each layer. Divides the
// variables of the graph, which are this caller's own.
ChainSplit split_of(const Graph& step, const StepLayers& layers, int64_t batch,
                    int parts, const std::vector<std::pair<Tensor, int>>& axes,
                    const Machine& machine);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_AUTOMATIC_FIND_LAYOUTS_H_
