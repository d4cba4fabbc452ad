// berth place: where the placer puts the nodes of a graph text.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/place_input.h"
#include "cli/place_output.h"
#include "place/explain.h"
#include "place/place_text.h"
#include "place/schedule.h"

namespace berth::cli {

namespace {

struct PlaceArguments {
  std::string graph, devices, explain;
  std::string soft = "warn", policy = "default";
  bool json = false, partition = false, simulate = false, full = false;
};

int32_t find_node(const Graph& graph, const std::string& name) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph[i].name == name) return i;
  }
  throw UsageError(fmt::format(
      "place: --explain: no node '{}'; expected the name of a node", name));
}

// Returns the partitioned graph with the declarations of its text.
std::string partitioned_text(const GraphText& text) {
  GraphText cut = text;
  cut.costs.clear();  // they belong to other nodes
  berth::partition(cut.graph);
  return berth::print(cut);
}

// Prices alternatives by simulating the step with the node on each device.
placement::Explanation explain_node(const Graph& graph,
                                    const Placement& placement,
                                    const PlaceOptions& options,
                                    const CostTable& costs, int32_t node) {
  const SimulatedGraph simulated(graph);
  const PlacePlan plan = plan_of(graph, costs);
  return explain_placement(
      graph, placement, options, node, [&](int32_t of, int32_t device) {
        try {
          return price_move(simulated, costs, plan, {&of, 1}, device);
        } catch (const errors::InvalidArgument&) {  // declared infinite
          return Price();
        }
      });
}

config::SoftPlacement soft_policy(const std::string& name) {
  if (name == "error") return config::SoftPlacement::kError;
  return name == "warn" ? config::SoftPlacement::kWarn
                        : config::SoftPlacement::kSilent;
}

void place_text(const PlaceArguments& o, PlaceInput& input) {
  input.options.soft = soft_policy(o.soft);
  if (o.policy == "tensorflow") input.options.policy = PlacePolicy::kTensorFlow;
  Graph& graph = input.text.graph;
  const int32_t asked = o.explain.empty() ? -1 : find_node(graph, o.explain);
  const Placement placement = place(graph, input.options);
  PlaceResult result = {graph, placement};
  CostTable costs;
  if (o.simulate || asked >= 0) {
    costs = costs_of_text(input.text, machine_of(input.text, input.devices),
                          input.options);
  }
  if (o.simulate) {
    result.costs = &costs;
    result.simulation =
        simulate(SimulatedGraph(graph), costs, plan_of(graph, costs));
  }
  if (asked >= 0) {
    result.explanation =
        explain_node(graph, placement, input.options, costs, asked);
  }
  if (o.partition) result.partitioned = partitioned_text(input.text);
  if (o.json) {
    print(to_json(result));
  } else {
    print_text(result, o.full);
  }
}

void run(const PlaceArguments& o) {
  PlaceInput input;
  try {
    input = read_place_input(o.graph, o.devices);
    place_text(o, input);
  } catch (const std::exception& e) {
    if (o.json) print_error(e);
    throw;
  }
}

}  // namespace

void add_place(CLI::App& program) {
  auto o = std::make_shared<PlaceArguments>();
  CLI::App* place = program.add_subcommand(
      "place", "Places a graph text (docs/graph-format.md) on devices");
  place->add_option("graph", o->graph, "the file; - is standard input")
      ->required();
  place->add_option("--devices", o->devices,
                    "hypothetical devices, for example CPUx2,GPUx2; else those "
                    "of the text");
  place
      ->add_option("--soft", o->soft,
                   "what happens to a request that cannot be obeyed")
      ->check(CLI::IsMember({"error", "warn", "silent"}))
      ->capture_default_str();
  place->add_option("--policy", o->policy, "whose rules")
      ->check(CLI::IsMember({"default", "tensorflow"}))
      ->capture_default_str();
  place->add_option("--explain", o->explain, "why this node is where it is");
  place->add_flag("--simulate", o->simulate,
                  "when every op and transfer would start and end");
  place->add_flag("--partition", o->partition,
                  "also the graph cut at the borders of devices");
  place->add_flag("--full", o->full,
                  "full names of devices, as TensorFlow prints them");
  place->add_flag("--json", o->json, "as JSON (docs/json.md)");
  place->callback([o] { run(*o); });
}

}  // namespace berth::cli
