// PlacedGraph: what the placer decided and why, kept with the compiled step.
//
// Graphs as they were placed, before they were lowered, fused and cut: their
// node names are what explain() and reports speak of. A value.

#ifndef BERTH_PLACE_PLACED_H_
#define BERTH_PLACE_PLACED_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "place/place.h"

namespace berth {

struct PlacedGraph {
  Graph graph;
  Placement placement;
  // "" of the step itself; of a body "While/body", in front of the names of
  // its nodes.
  std::string path;
  std::vector<PlacedGraph> bodies;

  // Returns the node of this name, as placed or as traced; -1: none here.
  int32_t find(const std::string& name) const;
};

}  // namespace berth

#endif  // BERTH_PLACE_PLACED_H_
