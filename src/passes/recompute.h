// recompute: values of a step that are computed again instead of being kept.
//
// A training step keeps what its forward half computes until the gradients need
// it. Here some of these values are dropped after their early readers, and a
// second copy of their ops computes them right before the late ones. The bits
// stay; the step takes less memory and more time.
//
// Greedy over exact profiles of the graph's order: at the fullest point that is
// dropped which takes away most bytes over the limit for its time; then random
// moves look for less time. What still does not fit goes through it again, so
// that second copies have copies. (Prior art: Chen et al., "Training deep nets
// with sublinear memory cost", 2016; Jain et al., "Checkmate", 2020.) A pure
// function.

#ifndef BERTH_PASSES_RECOMPUTE_H_
#define BERTH_PASSES_RECOMPUTE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace berth {

struct RecomputeCosts {
  // Per node: the time to run it once more; negative: it may not run twice.
  std::vector<double> us;
  // Per node: whether its results lie in the memory that is limited.
  std::vector<bool> counted;
  // Per node: the time to bring its result to `host` and back; negative: it has
  // several, or lies there already.
  std::vector<double> away_us;
  DeviceId host;
};

struct Recomputed {
  std::vector<std::string> names;  // of the nodes that compute twice
  std::vector<std::string> away;   // of those whose results wait on the host
  double us = 0;                   // of what runs again, or moves
  int64_t bytes = 0;               // most bytes alive at any point
};

// Adds second copies, and ways over the host, until at most `limit` bytes are
// alive, by the order of the nodes, or as few as can be. Arguments, constants
// and variables are free. A copy follows its original and waits for what its
// first reader reads besides.
Recomputed recompute(Graph& graph, const RecomputeCosts& costs, int64_t limit);

// Sends the values of variables on `costs.host` anew after the longest pause
// between two readers, so that nothing of them is kept in it; and lets results
// that only the host reads leave before the ops after them go on.
void stream_from_host(Graph& graph, const RecomputeCosts& costs);

// Returns how many bytes are alive where most are, in the same order.
int64_t most_bytes_alive(const Graph& graph, const RecomputeCosts& costs);

}  // namespace berth

#endif  // BERTH_PASSES_RECOMPUTE_H_
