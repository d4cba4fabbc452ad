// berth place: where the placer puts the nodes of a graph text.

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "berth/errors.h"
#include "cli/commands.h"
#include "cli/place_input.h"
#include "place/schedule.h"

namespace berth::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string graph, devices, explain;
  std::string soft = "warn", policy = "default";
  bool json = false, partition = false;
};

const char* rule_name(PlaceRule rule) {
  switch (rule) {
    case PlaceRule::kNone:
      return "none";
    case PlaceRule::kAssigned:
      return "assigned";
    case PlaceRule::kVariable:
      return "variable";
    case PlaceRule::kRequest:
      return "request";
    case PlaceRule::kGroup:
      return "group";
    case PlaceRule::kColocated:
      return "colocation";
    case PlaceRule::kConsumers:
      return "consumers";
    case PlaceRule::kInput:
      return "input";
    case PlaceRule::kHost:
      return "host";
    case PlaceRule::kDefault:
      return "default";
  }
  return "none";
}

// What is not text becomes the replacement character: names and messages may
// hold any bytes.
void print(const Json& document) {
  fmt::print("{}\n",
             document.dump(2, ' ', false, Json::error_handler_t::replace));
}

int32_t find_node(const Graph& graph, const std::string& name) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (graph[i].name == name) return i;
  }
  throw UsageError(fmt::format(
      "place: --explain: no node '{}'; expected the name of a node", name));
}

// A placed graph, and what else was asked for.
struct Result {
  const Graph& graph;
  const Placement& placement;
  std::string explanation;  // "": not asked for
  std::string partitioned;
};

Json to_json(const Result& r) {
  Json nodes = Json::array(), notes = Json::array(), fallbacks = Json::array();
  for (int32_t i = 0; i < r.graph.size(); ++i) {
    const Node& n = r.graph[i];
    const PlaceReason& reason = r.placement.reasons[i];
    Json node = {{"name", n.name},
                 {"op", n.op->name()},
                 {"device", n.assigned},
                 {"rule", rule_name(reason.rule)}};
    if (!n.requested.empty()) node["requested"] = n.requested;
    if (reason.because >= 0 && reason.because != i) {
      node["because"] = r.graph[reason.because].name;
    }
    nodes.push_back(std::move(node));
  }
  for (const PlaceNote& n : r.placement.notes) {
    notes.push_back(
        {{"id", n.id}, {"node", r.graph[n.node].name}, {"text", n.text}});
  }
  for (const PlaceFallback& f : r.placement.fallbacks) {
    fallbacks.push_back({{"node", r.graph[f.node].name},
                         {"requested", f.requested},
                         {"device", r.graph[f.node].assigned},
                         {"reason", f.reason}});
  }
  Json all = {{"nodes", std::move(nodes)},
              {"notes", std::move(notes)},
              {"fallbacks", std::move(fallbacks)}};
  if (!r.explanation.empty()) all["explanation"] = r.explanation;
  if (!r.partitioned.empty()) all["partitioned"] = r.partitioned;
  return all;
}

void print_text(const Result& r) {
  if (!r.explanation.empty()) {
    fmt::print("{}\n", r.explanation);
    return;
  }
  std::string out;
  for (const Node& n : r.graph.nodes) {
    fmt::format_to(std::back_inserter(out), "{}: ({}): {}\n", n.name,
                   n.op->name(), n.assigned);
  }
  for (const PlaceNote& n : r.placement.notes) {
    fmt::format_to(std::back_inserter(out), "note {}: {}\n", n.id, n.text);
  }
  for (const PlaceFallback& f : r.placement.fallbacks) {
    const Node& n = r.graph[f.node];
    fmt::format_to(std::back_inserter(out),
                   "fallback: {} was asked for on \"{}\", runs on {}: {}\n",
                   n.name, f.requested, n.assigned, f.reason);
  }
  if (!r.partitioned.empty()) out += "\n" + r.partitioned;
  std::fwrite(out.data(), 1, out.size(), stdout);
}

// Returns the partitioned graph with the declarations of its text.
std::string partitioned_text(const GraphText& text) {
  GraphText cut = text;
  cut.costs.clear();  // of other nodes
  berth::partition(cut.graph);
  return berth::print(cut);
}

void place_text(const Options& o) {
  PlaceInput input = read_place_input(o.graph, o.devices);
  input.options.soft = o.soft == "error"  ? config::SoftPlacement::kError
                       : o.soft == "warn" ? config::SoftPlacement::kWarn
                                          : config::SoftPlacement::kSilent;
  if (o.policy == "tensorflow") input.options.policy = PlacePolicy::kTensorFlow;
  Graph& graph = input.text.graph;
  const int32_t asked = o.explain.empty() ? -1 : find_node(graph, o.explain);
  const Placement placement = place(graph, input.options);
  Result result = {graph, placement, {}, {}};
  if (asked >= 0) result.explanation = explain(graph, placement, asked);
  if (o.partition) result.partitioned = partitioned_text(input.text);
  if (o.json) {
    print(to_json(result));
  } else {
    print_text(result);
  }
}

Json conflict_of(const std::exception& error) {
  Json list = Json::array();
  const auto* failure = dynamic_cast<const PlaceFailure*>(&error);
  if (failure == nullptr) return list;
  for (const PlaceConstraint& c : failure->conflict().constraints) {
    Json one = {{"text", c.text}};
    if (c.site.file != nullptr) {
      one["file"] = c.site.file;
      one["line"] = c.site.line;
    }
    list.push_back(std::move(one));
  }
  return list;
}

void print_error(const char* kind, const std::exception& error) {
  print({{"error",
          {{"kind", kind},
           {"message", error.what()},
           {"conflict", conflict_of(error)}}}});
}

void run(const Options& o) {
  try {
    place_text(o);
  } catch (const UsageError& e) {
    if (o.json) print_error("BadInput", e);
    throw;
  } catch (const errors::Unimplemented& e) {
    if (o.json) print_error("Unimplemented", e);
    throw;
  } catch (const errors::InvalidArgument& e) {
    if (o.json) print_error("InvalidArgument", e);
    throw;
  } catch (const std::exception& e) {
    if (o.json) print_error("Internal", e);
    throw;
  }
}

}  // namespace

void add_place(CLI::App& program) {
  auto o = std::make_shared<Options>();
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
  place->add_flag("--partition", o->partition,
                  "also the graph cut at the borders of devices");
  place->add_flag("--json", o->json, "as JSON (docs/json.md)");
  place->callback([o] { run(*o); });
}

}  // namespace berth::cli
