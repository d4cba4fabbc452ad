#include "place/place.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "place/placer.h"

namespace berth {

namespace {

void check_followers(const Graph& graph) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph[i].follows < graph.size()) continue;
    throw errors::InvalidArgument(
        fmt::format("place: {} follows node {}, but there are only {}",
                    describe(graph, i), graph[i].follows, graph.size()));
  }
}

}  // namespace

void run_rules(Placer& placer) {
  if (placer.options.policy == PlacePolicy::kTensorFlow) {
    place_by_tensorflows_rules(placer);
  } else {
    place_by_berths_rules(placer);
  }
}

Placement place(Graph& graph, const PlaceOptions& options) {
  check_followers(graph);
  Placer placer(graph, options);
  run_rules(placer);
  return placer.finish();
}

std::string explain(const Graph& graph, const Placement& placement,
                    int32_t node) {
  const Node& n = graph[node];
  const PlaceReason reason = placement.reasons[node];
  const std::string other =
      reason.because >= 0 ? graph[reason.because].name : "";
  std::string why;
  switch (reason.rule) {
    case PlaceRule::kNone:
      why = "not placed";
      break;
    case PlaceRule::kAssigned:
      why = "it was assigned before";
      break;
    case PlaceRule::kGroup:
      why = fmt::format("shares a device with \"{}\"", other);
      break;
    case PlaceRule::kVariable:
      why = reason.because == node
                ? "the variable lives there"
                : fmt::format("touches variable \"{}\"",
                              variable_name(graph[reason.because]));
      break;
    case PlaceRule::kRequest:
      why = fmt::format("asked for \"{}\"", n.requested.text());
      break;
    case PlaceRule::kColocated:
      why = fmt::format("colocated with \"{}\"", other);
      break;
    case PlaceRule::kConsumers:
      why = fmt::format("where \"{}\" and all other consumers are", other);
      break;
    case PlaceRule::kInput:
      why = fmt::format("where its input \"{}\" is", other);
      break;
    case PlaceRule::kHost:
      why = "an argument; no single device reads it";
      break;
    case PlaceRule::kDefault:
      why = "the first device that can run it";
      break;
    case PlaceRule::kPlanned:
      why = "the planner put it there";
      break;
  }
  return fmt::format("on {}: {}", short_device(n.assigned), why);
}

}  // namespace berth
