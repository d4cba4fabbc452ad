// What `berth place` prints: text for people, JSON for programs (docs/json.md).

#ifndef BERTH_CLI_PLACE_OUTPUT_H_
#define BERTH_CLI_PLACE_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "berth/placement.h"
#include "place/costs.h"
#include "place/place.h"
#include "place/simulate.h"

namespace berth::cli {

using Json = nlohmann::ordered_json;

// Prints with the replacement character for what is no text: names and
// messages may hold any bytes.
void print(const Json& document);

// A placed graph, and what else was asked for.
struct PlaceResult {
  const Graph& graph;
  const Placement& placement;
  const CostTable* costs = nullptr;  // with `simulation`
  std::optional<Simulation> simulation;
  std::optional<placement::Explanation> explanation;
  std::string partitioned;  // a graph text; "": not asked for
};

// `full`: names of devices as TensorFlow prints them. Short ones otherwise,
// unless two devices have the same.
void print_text(const PlaceResult& result, bool full);
Json to_json(const PlaceResult& result);

// Prints {"error": ...}.
void print_error(const char* kind, const std::exception& error);

}  // namespace berth::cli

#endif  // BERTH_CLI_PLACE_OUTPUT_H_
