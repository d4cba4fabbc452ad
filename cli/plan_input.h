// The input of `berth plan` and `berth verify-plan`: a graph text or a
// problem file, and a cluster.

#ifndef BERTH_CLI_PLAN_INPUT_H_
#define BERTH_CLI_PLAN_INPUT_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/place_input.h"
#include "planner/problem.h"

namespace berth::cli {

// The options that select what is planned.
struct PlanInputOptions {
  std::string file;
  std::string cluster, devices;
  std::string objective;  // "": latency, or that of the plan to verify
  bool free_scopes = false;
  PipelineSettings pipeline;
  std::string schedule = "best";

  void add_to(CLI::App& command);
};

struct PlanInput {
  std::unique_ptr<PlaceInput> graph;  // graph text that the problem refers to
  PlanProblem problem;
};

// Throws UsageError: no such file, no such format, errors of readers; and the
// errors of problem_of(), after storing the graph in `input`.
void read_plan_input(const PlanInputOptions& options, PlanInput& input);

}  // namespace berth::cli

#endif  // BERTH_CLI_PLAN_INPUT_H_
