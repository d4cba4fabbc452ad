// Explain: why a node is where it is, and what would move it.
//
// Acts on a placed, not yet partitioned graph by placing changed copies of it.
// Pure; one thread per graph.

#ifndef BERTH_PLACE_EXPLAIN_H_
#define BERTH_PLACE_EXPLAIN_H_

#include <functional>

#include "berth/placement.h"
#include "place/costs.h"
#include "place/place.h"

namespace berth {

// Returns "request", "variable", "colocation", ...: stable (docs/json.md).
const char* rule_name(PlaceRule rule);

// What the step would cost with the node on another device; `device`: index
// into PlaceOptions::devices.
using PriceFn = std::function<Price(int32_t node, int32_t device)>;

// `placement` is what place(graph, options) returned. The answer holds the
// rule, the constraints from the node to the decision, with source lines, an
// alternative per other device and, where one exists, a minimal list of changes
// that would move the node there. An alternative is possible when only the
// program's own requests keep the node from it. Throws errors::InvalidArgument
// for a node that is not in the graph.
placement::Explanation explain_placement(const Graph& graph,
                                         const Placement& placement,
                                         const PlaceOptions& options,
                                         int32_t node,
                                         const PriceFn& price = {});

// Edits graph and options as the change says. Throws errors::InvalidArgument
// when the node or group does not exist.
void apply_change(Graph& graph, const placement::Change& change,
                  PlaceOptions& options);

}  // namespace berth

#endif  // BERTH_PLACE_EXPLAIN_H_
