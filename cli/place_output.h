// Output of `berth place`: text for people, JSON for programs (docs/json.md).

#ifndef BERTH_CLI_PLACE_OUTPUT_H_
#define BERTH_CLI_PLACE_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "berth/placement.h"
#include "place/costs.h"
#include "place/place.h"
#include "simulate/simulate.h"

namespace berth::cli {

using Json = nlohmann::ordered_json;

// Prints with the replacement character for invalid UTF-8: names and messages
// may hold any bytes.
void print(const Json& document);

// A placed graph, and other requested results.
struct PlaceResult {
  const Graph& graph;
  const Placement& placement;
  const CostTable* costs = nullptr;  // with `simulation`
  std::optional<Simulation> simulation;
  std::optional<placement::Explanation> explanation;
  std::string partitioned;  // a graph text; "": not requested
};

// `full`: prints names of devices as TensorFlow does. Otherwise prints short
// ones, unless two devices share one.
void print_text(const PlaceResult& result, bool full);
Json to_json(const PlaceResult& result);

// Prints {"error": ...}; its kind is that of the exception.
void print_error(const std::exception& error);

}  // namespace berth::cli

#endif  // BERTH_CLI_PLACE_OUTPUT_H_
