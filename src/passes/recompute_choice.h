// What a graph computes again: which results are dropped, and where.
//
// A *cut* of a node is a position: readers after it read a copy of the node,
// which runs right before the first of them; or, of a node that is *away*, the
// result that waited on the host. Internal to recompute; pure functions.

#ifndef BERTH_PASSES_RECOMPUTE_CHOICE_H_
#define BERTH_PASSES_RECOMPUTE_CHOICE_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "passes/recompute.h"

namespace berth {

// What is dropped, and how it comes back.
struct Drops {
  std::vector<std::vector<int32_t>> cuts;  // per node, ascending
  std::vector<bool> away;                  // per node; who is has one cut
};

// The number of the copy that a reader at a position reads; 0: the node itself.
int copy_read(const std::vector<int32_t>& cuts, int32_t position);

// Copy `number` of a node runs right before the node at `position`.
struct NodeCopy {
  int32_t node;
  int number;
  int32_t position;
};

// Per node, those that read it, ascending.
std::vector<std::vector<int32_t>> readers_of(const Graph& graph);

// The copies that somebody reads, in the order in which they run.
std::vector<NodeCopy> copies_of(
    const std::vector<std::vector<int32_t>>& readers, const Drops& drops);

// The node that waits until a result which is cut at a position has left: the
// third that computes, so that something runs meanwhile. The size of the graph:
// none.
int32_t waits_for_leaving(const Graph& graph, const RecomputeCosts& costs,
                          int32_t cut);

struct Choice {
  Drops drops;
  double us = 0;      // of the copies
  int64_t bytes = 0;  // most that are alive at any point
};

// Returns what to drop such that at most `limit` bytes are alive, in little
// time; or with the least bytes over it.
Choice choose_drops(const Graph& graph, const RecomputeCosts& costs,
                    int64_t limit);

}  // namespace berth

#endif  // BERTH_PASSES_RECOMPUTE_CHOICE_H_
