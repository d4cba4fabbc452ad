// Passes: rewrites of a graph, one file each; this is their order.
//
// Device-free passes run before placement: fold (constant folding), cse,
// algebra, control, dce; then the same inside the bodies of control flow. A
// pass is a function over a Graph that keeps its meaning.

#ifndef BERTH_PASSES_PIPELINE_H_
#define BERTH_PASSES_PIPELINE_H_

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace berth {

// Replaces ops whose inputs are all constants by constants, at most
// `max_elements` large; never random, stateful or variable ops.
void fold(Graph& graph, int64_t max_elements = 1 << 16);
// Merges equal nodes: op, attributes, inputs, controls and request.
// Never random or stateful ones.
void cse(Graph& graph);
// Joins equal nodes of a placed graph for which `among` is true, whatever their
// requests: what decompositions of several ops have in common.
void cse_parts(Graph& graph, const std::vector<bool>& among);
// x + 0, x * 1, x - 0, x / 1, --x, Identity, transposes and reshapes that
// cancel, casts to the same dtype, ... only where bits stay the same.
void algebra(Graph& graph);
// Puts the branch in the place of a cond whose predicate is known; takes away
// results and operands of If and While that nobody reads.
void control(Graph& graph);
// Removes nodes that no output and no effect needs. _Arg nodes stay.
void dce(Graph& graph);

struct Pass {
  const char* name;
  void (*run)(Graph& graph);
};

// The device-free passes in order.
const std::vector<Pass>& device_free_passes();

// Called with the graph after each stage ("trace", "fold", ..., "place").
using StageDump = std::function<void(const char* stage, const Graph& graph)>;

// Runs the passes until nothing changes, at most a few rounds.
void run_device_free_passes(Graph& graph, const StageDump& dump = nullptr);

}  // namespace berth

#endif  // BERTH_PASSES_PIPELINE_H_
