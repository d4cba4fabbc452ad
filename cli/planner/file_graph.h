// What the readers of problem files share. Internal to them; pure.

#ifndef BERTH_CLI_PLANNER_FILE_GRAPH_H_
#define BERTH_CLI_PLANNER_FILE_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "place/planner/problem.h"

namespace berth {

// Makes a graph of ops that take time and have one output each: its bytes, and
// per op the ops that it reads from, in any number and order. Each op is a
// group of its own, allowed everywhere, and holds nothing.
void set_graph(PlanProblem& problem, std::vector<std::vector<int32_t>> inputs,
               const std::vector<int64_t>& bytes);

// Adds a device of a class that is there.
void add_device(PlanProblem& problem, const std::string& name,
                int32_t device_class, CopyRule copies, int64_t memory_limit);

// Throws errors::InvalidArgument: `where` of `name`, what is wrong there.
[[noreturn]] void bad_file(const std::string& name, const std::string& where,
                           const std::string& what);

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_FILE_GRAPH_H_
