// Readers of the two public formats of placement problems.
//
// Formats and rules are those of their authors' programs; docs/formats.md
// explains how they are read. All throw errors::InvalidArgument for a text that
// does not follow the format, naming the line or the path of the field
// ("nodes[3].size"), its content and what was expected. Pure.

#ifndef BERTH_CLI_PLANNER_FORMATS_H_
#define BERTH_CLI_PLANNER_FORMATS_H_

#include <string>

#include "berth/placement_policy.h"
#include "planner/problem.h"

namespace berth {

using placement::Objective;

// Reads the JSON of "dnn-partitioning" (Tarnawski et al., NeurIPS 2020).
// Devices are "ACC:0", ... and "CPU:0", ..., as many as the file says. For
// latency a copy takes its value's cost, by the rules of steps (simulate.h).
// Ops are named by "name" where these are distinct, else by id. `name` is the
// file's, for messages.
PlanProblem read_dnn_partitioning(const std::string& text,
                                  const std::string& name, Objective objective);

// Reads a graph of Doppler (Yao et al., ICLR 2026), with times in units of 1e10
// of its numbers and `devices` equal devices "GPU:0", ...; 0: as many as the
// file's name says ("8gpu_..."), else 4, the authors' default.
PlanProblem read_doppler(const std::string& text, const std::string& name,
                         int devices);

// Reads a split, the JSON in which the authors of dnn-partitioning exchange
// plans: ids per accelerator and CPU. Missing ops follow their colour class, as
// in their programs. `name` is the file's.
PlacePlan read_split(const PlanProblem& problem, const std::string& text,
                     const std::string& name);

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_FORMATS_H_
