// What the readers of problem files share. Internal to them; pure.

#ifndef BERTH_PLACE_PLANNER_FILE_GRAPH_H_
#define BERTH_PLACE_PLANNER_FILE_GRAPH_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
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

// Throws errors::InvalidArgument for what is no JSON, with line and column.
nlohmann::json parse_json(const std::string& text, const std::string& name);

// Returns a value as it stands in a message: short.
std::string show_json(const nlohmann::json& value);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_FILE_GRAPH_H_
