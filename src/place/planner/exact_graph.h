// ExactGraph: a tiny problem as arrays for ExactSteps.
//
// Ops that take time are numbered 0 to n - 1, none before what it waits for.
// Sources are values that are there from the start. It also tells which devices
// are equal.

#ifndef BERTH_PLACE_PLANNER_EXACT_GRAPH_H_
#define BERTH_PLACE_PLANNER_EXACT_GRAPH_H_

#include <cstdint>
#include <vector>

#include "place/planner/step_units.h"

namespace berth {

struct ExactGraph {
  explicit ExactGraph(const StepUnits& units);

  int num_ops() const { return static_cast<int>(node.size()); }
  double us(int op, int device) const {
    return p.costs.time(node[op], device).us;
  }
  double copy_us(int32_t value, int from, int to) const {
    return copy_time(p, from, to, p.costs.bytes.item(value));
  }
  bool equal(int a, int b) const { return equal_to[a] == equal_to[b]; }

  const StepUnits& units;
  const PlanProblem& p;
  std::vector<int32_t> node;    // per op
  std::vector<int> op_of_node;  // -1: takes no time
  std::vector<int> unit;        // per op: index in StepUnits
  std::vector<double> least;    // per op: time on the best device
  std::vector<uint32_t> needs;  // per op: ops that it waits for, as bits
  // Per op, the values that it reads from ops and sources and that may be
  // copied, by number; and per value its producing node.
  std::vector<std::vector<int32_t>> reads;
  std::vector<std::vector<int32_t>> outs;  // per op: values that others read
  std::vector<int32_t> source_values;      // in their order
  std::vector<std::vector<int>> readers;   // per value: ops
  std::vector<int> equal_to;               // per device: the lowest equal one
  int num_shared = 0;

 private:
  bool alike(int a, int b) const;
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_EXACT_GRAPH_H_
