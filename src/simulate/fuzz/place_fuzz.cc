// Fuzz target of the graph text: any bytes give either a graph that verifies
// and prints to a text that parses to itself, or a named error with its
// position. A graph that is not too large is then placed, partitioned and
// simulated, or refused by name.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "berth/errors.h"
#include "graph/fuzz/read_text.h"
#include "place/place_text.h"
#include "place/schedule.h"
#include "simulate/simulate.h"

namespace {

using namespace berth;

// Larger ones would leave no time for others.
constexpr int32_t kMostNodes = 200;

// A placed graph runs where it says, prints, and can be simulated.
void follow(GraphText text, const std::vector<std::string>& devices,
            PlacePolicy policy, config::SoftPlacement soft) {
  PlaceOptions options = place_options(text, devices);
  options.policy = policy;
  options.soft = soft;
  try {
    const Placement placement = place(text.graph, options);
    for (int32_t i = 0; i < text.graph.size(); ++i) {
      if (text.graph[i].assigned.empty()) std::abort();
      explain(text.graph, placement, i);
    }
  } catch (const errors::InvalidArgument&) {
    return;
  } catch (const errors::Unimplemented&) {
    return;
  }
  const CostTable costs =
      costs_of_text(text, machine_of(text, devices), options);
  simulate(SimulatedGraph(text.graph), costs, plan_of(text.graph, costs));
  text.costs.clear();
  partition(text.graph);
  verify(text.graph);
  const std::string printed = print(text);
  if (print(parse_text(printed)) != printed) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  GraphText text;
  if (!read_text(data, size, &text)) return 0;
  if (text.graph.size() > kMostNodes) return 0;
  follow(text, devices_of_list("CPUx2,GPUx2"), PlacePolicy::kBerth,
         config::SoftPlacement::kWarn);
  if (text.devices.empty()) return 0;
  std::vector<std::string> devices;
  try {
    devices = devices_of_text(text);
  } catch (const errors::InvalidArgument&) {  // a repeated name, or too many
    return 0;
  }
  follow(text, devices, PlacePolicy::kTensorFlow,
         config::SoftPlacement::kError);
  return 0;
}
