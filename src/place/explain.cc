#include "place/explain.h"

namespace berth {

placement::Explanation explain_placement(const Graph& graph, const Placement&,
                                         const PlaceOptions&, int32_t node,
                                         const PriceFn&) {
  placement::Explanation e;
  e.op = graph[node].name;
  e.device = graph[node].assigned;
  return e;
}

void apply_change(Graph&, const placement::Change&, PlaceOptions&) {}

}  // namespace berth
