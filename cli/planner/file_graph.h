// Shared by the readers of problem files. Internal to them; pure.

#ifndef BERTH_CLI_PLANNER_FILE_GRAPH_H_
#define BERTH_CLI_PLANNER_FILE_GRAPH_H_

#include <cstdint>
#include <vector>

#include "planner/problem.h"

namespace berth {

// Makes a graph of ops that take time and have one output each, from the
// outputs' bytes and, per op, the ops that it reads from, in any number and
// order. Each op is a separate group, allowed everywhere, and holds nothing.
void set_graph(PlanProblem& problem, std::vector<std::vector<int32_t>> inputs,
               const std::vector<int64_t>& bytes);

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_FILE_GRAPH_H_
