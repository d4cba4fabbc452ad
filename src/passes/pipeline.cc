#include "passes/pipeline.h"

#include "base/immortal.h"
#include "graph/body.h"

namespace berth {

namespace {

constexpr int kMaxRounds = 4;

// Changes whenever a pass changed what the graph computes or in which order.
size_t fingerprint(const Graph& graph) {
  size_t h = graph.nodes.size();
  auto mix = [&](size_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
  };
  for (const Node& node : graph.nodes) {
    mix(node.op->id());
    mix(reinterpret_cast<size_t>(node.attrs.get()));
    for (const ValueRef v : node.inputs) {
      mix(static_cast<size_t>(v.node) << 32 | static_cast<size_t>(v.output));
    }
    for (const int32_t c : node.controls) mix(~static_cast<size_t>(c));
  }
  for (const ValueRef v : graph.outputs) mix(static_cast<size_t>(v.node));
  return h;
}

}  // namespace

const std::vector<Pass>& device_free_passes() {
  static const auto& passes = immortal<std::vector<Pass>>(std::vector<Pass>{
      {"fold", [](Graph& graph) { fold(graph); }},
      {"cse", &cse},
      {"algebra", &algebra},
      {"control", &control},
      {"dce", &dce},
  });
  return passes;
}

static void run_rounds(Graph& graph, const StageDump& dump) {
  size_t before = fingerprint(graph);
  for (int round = 0; round < kMaxRounds; ++round) {
    const size_t at_start = before;
    for (const Pass& pass : device_free_passes()) {
      pass.run(graph);
      const size_t after = fingerprint(graph);
      // Later rounds show only what they changed.
      if (dump && (round == 0 || after != before)) dump(pass.name, graph);
      before = after;
    }
    if (before == at_start) return;
  }
}

void run_device_free_passes(Graph& graph, const StageDump& dump) {
  run_rounds(graph, dump);
  bool bodies = false;
  for (Node& node : graph.nodes) {
    rewrite_bodies(node, [&](const std::string&, Graph& body) {
      bodies = true;
      run_device_free_passes(body);
      return true;
    });
  }
  if (!bodies) return;
  // What the bodies no longer read.
  control(graph);
  dce(graph);
}

}  // namespace berth
