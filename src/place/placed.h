// PlacedGraph: what the placer decided and why, kept with the compiled step.
//
// Holds the graphs as they were placed, before lowering, fusing and
// partitioning: explain() and reports use their node names. A value.

#ifndef BERTH_PLACE_PLACED_H_
#define BERTH_PLACE_PLACED_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "place/place.h"

namespace berth {

// Returns the path of a body of a node in the graph with such a path.
std::string body_path(const std::string& path, const Node& node,
                      const std::string& role);

struct PlacedGraph {
  Graph graph;
  Placement placement;
  // Prefix of the names of its nodes: "While/body" for a body, "" for the step
  // itself.
  std::string path;
  std::vector<PlacedGraph> bodies;

  // Returns the node with this name, as placed or as traced; -1: none here.
  int32_t find(const std::string& name) const;
};

}  // namespace berth

#endif  // BERTH_PLACE_PLACED_H_
