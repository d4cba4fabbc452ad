// Shared by the readers of problem files. Internal to them; pure.

#ifndef BERTH_CLI_PLANNER_FILE_GRAPH_H_
#define BERTH_CLI_PLANNER_FILE_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "place/planner/problem.h"

namespace berth {

// Makes a graph of ops that take time and have one output each, from the
// outputs' bytes and, per op, the ops that it reads from, in any number and
// order. Each op is a separate group, allowed everywhere, and holds nothing.
void set_graph(PlanProblem& problem, std::vector<std::vector<int32_t>> inputs,
               const std::vector<int64_t>& bytes);

// Adds a device of an existing class.
void add_device(PlanProblem& problem, const std::string& name,
                int32_t device_class, CopyRule copies, int64_t memory_limit);

// Throws errors::InvalidArgument with the error at `where` of `name`.
[[noreturn]] void bad_file(const std::string& name, const std::string& where,
                           const std::string& what);

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_FILE_GRAPH_H_
