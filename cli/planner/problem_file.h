// Reads problem files (docs/formats.md): ops that have their own times, values
// that have their own transfer times. Pure.

#ifndef BERTH_CLI_PLANNER_PROBLEM_FILE_H_
#define BERTH_CLI_PLANNER_PROBLEM_FILE_H_

#include <string>

#include "planner/problem.h"

namespace berth {

// Throws errors::InvalidArgument for a text that does not follow the format,
// naming the path of the field ("ops[3].held"), its content and what was
// expected. `file` is the file's name, for messages.
PlanProblem read_problem(const std::string& text, const std::string& file);

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_PROBLEM_FILE_H_
