// Auto placement: the planner applied to a function that is being compiled.
//
// Acts between the device-free passes and placement. Ops are priced on trial
// plans, one per class of devices; the planner's answer is compiled on trial
// beside the rules' own plan, and the one that is predicted to be faster wins.
// One thread per graph.

#ifndef BERTH_FUNCTION_AUTO_PLACE_H_
#define BERTH_FUNCTION_AUTO_PLACE_H_

#include <string>
#include <vector>

#include "berth/placement_policy.h"
#include "graph/graph.h"
#include "op/contract_scope.h"
#include "place/costs.h"
#include "place/place.h"

namespace berth {

struct AutoPlacing {
  placement::Auto how;
  std::vector<ParsedContract> contracts;  // of the function
  std::vector<std::string> argument_on;   // full names; "": wherever
  bool optimize = true;
  int slices = 0;
};

struct AutoPlaced {
  bool planned = false;     // false: the rules are to place it
  std::string certificate;  // one sentence
  CostTable costs;          // of the graph as it is then
  // What rules would have said about requests that cannot be obeyed.
  std::vector<PlaceFallback> fallbacks;
};

// Plans a graph whose shapes are all known: gives its nodes devices and puts
// them in the plan's order. Variables that nobody has embedded yet, and whose
// device nobody asked for, move to where the plan wants them. Nothing changes
// when there is but one device, or nothing was found (warning
// "plan-not-found"). Throws what place() throws, and
// errors::ResourceExhausted when no plan can keep all limits, naming a smallest
// set that conflicts.
AutoPlaced auto_place(Graph& graph, const PlaceOptions& places,
                      const AutoPlacing& options);

}  // namespace berth

#endif  // BERTH_FUNCTION_AUTO_PLACE_H_
