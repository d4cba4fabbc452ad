#include "distribute/data_parallel/split_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/where.h"
#include "berth/errors.h"
#include "distribute/data_parallel/emit_graph.h"
#include "distribute/data_parallel/split_vocabulary.h"
#include "function/without_branches.h"
#include "passes/lower.h"
#include "passes/pipeline.h"
#include "tensor/mirrors.h"

namespace berth::distribute {

namespace {

// Nested decompositions terminate; a rule that produces its own op does not.
constexpr int kMaxRounds = 8;

// Nodes that would run whole but decompose into ops with split rules.
std::set<std::string> composites(const Graph& graph,
                                 const std::vector<int32_t>& whole) {
  std::set<std::string> names;
  for (const int32_t i : whole) {
    const Node& n = graph[i];
    if (n.op->kind() == OpKind::kCompute && n.op->decompose() != nullptr &&
        !n.has_effect()) {
      names.insert(n.name);
    }
  }
  return names;
}

std::vector<int64_t> lengths_of(const SplitPlaces& places) {
  std::set<int64_t> lengths;
  for (const ExampleRange& e : places.examples) lengths.insert(e.rows);
  for (const SumPiece& p : places.pieces) lengths.insert(p.examples.rows);
  lengths.erase(0);
  return {lengths.begin(), lengths.end()};
}

// The common divisor of the borders of all parts and, if bits must not depend
// on these, of all slices.
int64_t unit_of(const SplitPlaces& places) {
  int64_t unit = places.batch;
  for (const int64_t length : lengths_of(places)) {
    unit = std::gcd(unit, length);
  }
  for (int32_t s = 1; s < places.slices; ++s) {
    unit = std::gcd(unit, places.batch * s / places.slices);
  }
  return unit;
}

// Puts everything on the devices of one replica.
void put_on(Graph& graph, const std::vector<DeviceId>& devices) {
  if (devices[0].empty()) return;
  for (Node& n : graph.nodes) {
    if (n.op->kind() == OpKind::kArgument || n.variable.defined()) continue;
    const Node old = n;
    ask_for(n, old, devices);
  }
}

// A trace that finds mirrors writes them too (Variable::assign). In a split
// step, each memory's copy of the write to the home does that.
void drop_writes_of_mirrors(Graph& graph) {
  std::vector<bool> keep(graph.nodes.size(), true);
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& n = graph[i];
    for (size_t k = 0; k < n.inputs.size() && n.outputs.empty(); ++k) {
      const Tensor& v = graph[n.inputs[k].node].variable;
      if (v.defined() && writes(n.op->input(static_cast<int>(k)).access) &&
          home_of(v).defined()) {
        keep[i] = false;
      }
    }
  }
  if (std::find(keep.begin(), keep.end(), false) == keep.end()) return;
  graph.compact(keep);
  dce(graph);
}

// What stands for a batch where layers are split: the units of the shares.
int64_t units_of(const SplitPlan& plan) {
  if (plan.shares.empty()) return static_cast<int64_t>(plan.replicas.size());
  return std::accumulate(plan.shares.begin(), plan.shares.end(), int64_t{0});
}

// Nodes that request a device of the first replica request it by its number
// there.
void name_by_number(Graph& graph, const std::vector<DeviceId>& devices) {
  std::map<DeviceId, DeviceId> names;
  for (size_t k = 0; k < devices.size(); ++k) {
    names[devices[k]] = fmt::format("/{}:{}", *devices[k].name().type, k);
  }
  for (Node& n : graph.nodes) {
    const auto it = names.find(n.requested);
    if (it != names.end()) n.requested = it->second;
  }
}

[[noreturn]] void refuse(const Node& n) {
  const Site site = n.sources.empty() ? Site{} : n.sources[0].site;
  throw errors::Unimplemented(fmt::format(
      "{}{}: variables with a copy on each device and variables of one device "
      "are written inside of one loop, or beside other effects in one cond(); "
      "expected their writes apart, or all variables made in the scope of the "
      "strategy",
      n.name, where_text(nullptr, site)));
}

}  // namespace

int64_t batch_of(const Graph& graph) {
  int64_t batch = -1;
  for (const int32_t a : graph.args) {
    const Shape& shape = graph[a].outputs[0].shape;
    if (shape.rank() == 0) continue;
    if (batch >= 0 && shape[0] != batch) {
      throw errors::InvalidArgument(fmt::format(
          "{}: arguments have {} and {} examples; expected one first dimension "
          "to split over replicas",
          graph.name, batch, shape[0]));
    }
    batch = shape[0];
  }
  return batch;
}

void settle_layers(Graph& graph, int parts) {
  for (int round = 0; round < kMaxRounds; ++round) {
    SplitAnalysis analysis(graph, parts, {1}, 1, false, true);
    const SplitStates states = analysis.run();
    if (split_vocabulary(graph, states, parts)) continue;
    const std::set<std::string> apart = composites(graph, states.whole);
    if (apart.empty()) return;
    lower(graph, [&](const Node& n) { return !apart.contains(n.name); });
    run_device_free_passes(graph);
  }
}

SplitReport split_batch(Graph& graph, const SplitPlan& plan) {
  SplitReport report;
  report.batch = plan.layers ? units_of(plan) : batch_of(graph);
  const bool one = plan.replicas.size() == 1 && plan.central.empty();
  if (one && plan.slices == 0) {
    put_on(graph, plan.replicas[0]);
    report.examples = {report.batch};
    return report;
  }
  if (report.batch <= 0) return report;  // nothing to split
  const SplitPlaces places = places_of(plan, report.batch);
  if (places.memories.size() > kMaxMemories) {
    throw errors::InvalidArgument(
        fmt::format("{} devices with memories of their own; expected at most "
                    "{}",
                    places.memories.size(), kMaxMemories));
  }
  for (const ExampleRange& e : places.examples) {
    report.examples.push_back(e.rows);
  }
  if (plan.of_layers) {
    name_by_number(graph, plan.replicas[0]);
  } else {
    drop_writes_of_mirrors(graph);
  }
  for (int round = 0;; ++round) {
    SplitAnalysis analysis(graph, report.batch, lengths_of(places),
                           unit_of(places), places.slices > 0, plan.layers);
    const SplitStates states = analysis.run();
    if (plan.layers && round < kMaxRounds &&
        split_vocabulary(graph, states, report.batch)) {
      continue;
    }
    const std::set<std::string> parts = composites(graph, states.whole);
    if (!parts.empty() && round < kMaxRounds) {
      lower(graph, [&](const Node& n) { return !parts.contains(n.name); });
      run_device_free_passes(graph);
      continue;
    }
    for (const int32_t i : states.whole) {
      const Node& n = graph[i];
      if (n.has_effect() || n.op->graph_only()) continue;
      report.whole.push_back(
          fmt::format("{} ({})", n.sources.empty() ? n.name : n.sources[0].name,
                      n.op->name()));
    }
    const SplitNeeds needs(graph, states, places);
    const auto apart = [&](const Node& n) { return needs.written_apart(n); };
    if (const auto at =
            std::find_if(graph.nodes.begin(), graph.nodes.end(), apart);
        at != graph.nodes.end()) {
      const int32_t nodes = graph.size();
      without_branches(graph, apart);
      if (graph.size() == nodes) refuse(*at);
      run_device_free_passes(graph);
      continue;
    }
    if (plan.tasks.several()) {
      const SplitNeeds of_all(graph, states, in_one_memory(places));
      graph = SplitEmit(graph, plan, places, analysis, states, needs, &of_all)
                  .run();
    } else {
      graph = SplitEmit(graph, plan, places, analysis, states, needs).run();
    }
    dce(graph);
    verify(graph);
    return report;
  }
}

}  // namespace berth::distribute
