// The input of `berth plan` and `berth verify-plan`: a graph text or a
// problem file, and a cluster.

#ifndef BERTH_CLI_PLAN_INPUT_H_
#define BERTH_CLI_PLAN_INPUT_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "berth/auto_strategy.h"
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

// A graph text with its devices, and what it costs there.
struct PricedGraph {
  std::unique_ptr<PlaceInput> input;
  CostTable costs;
};

// Throws UsageError: no such file, no graph text, errors of readers.
PricedGraph read_priced_graph(const PlanInputOptions& options);

// What an AutoStrategy would choose (plan_parallel.cc). Throws UsageError, too,
// for a file that is not a training step and more than 1,024 devices;
// errors::ResourceExhausted if no plan fits.
distribute::ParallelPlan parallel_plan(const PlanInputOptions& options);

// Throws UsageError: no such file, no such format, errors of readers; and the
// errors of problem_of(), after storing the graph in `input`.
void read_plan_input(const PlanInputOptions& options, PlanInput& input);

}  // namespace berth::cli

#endif  // BERTH_CLI_PLAN_INPUT_H_
