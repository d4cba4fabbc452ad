// Auto placement: applies the planner to a function that is being compiled.
//
// Acts between the device-free passes and placement. Ops are priced on trial
// plans, one per class of devices. The planner's answer is compiled on trial
// beside the rules' own plan, and the one with the faster prediction wins. One
// thread per graph.

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
  std::vector<std::string> argument_on;   // full names; "": anywhere
  bool optimize = true;
  int slices = 0;
};

struct AutoPlaced {
  bool planned = false;     // false: leave it to the rules
  std::string certificate;  // one sentence
  CostTable costs;          // of the graph in its new order
  // What the rules would have reported about requests that cannot be met.
  std::vector<PlaceFallback> fallbacks;
};

// Plans a graph whose shapes are all known: assigns devices to its nodes and
// puts them in the plan's order. Variables that no plan has embedded yet, and
// whose device was not requested, move to where the plan wants them. Changes
// nothing when there is only one device or no plan was found (warning
// "plan-not-found"). Throws what place() throws, and errors::ResourceExhausted
// when no plan can keep all limits, naming a smallest conflicting set.
AutoPlaced auto_place(Graph& graph, const PlaceOptions& places,
                      const AutoPlacing& options);

}  // namespace berth

#endif  // BERTH_FUNCTION_AUTO_PLACE_H_
