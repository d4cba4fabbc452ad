// The plan of `berth launch`: tasks, their addresses, cores and variables.

#ifndef BERTH_CLI_LAUNCH_PLAN_H_
#define BERTH_CLI_LAUNCH_PLAN_H_

#include <string>
#include <vector>

#include "base/core_set.h"
#include "berth/cluster.h"

namespace berth::cli {

struct LaunchOptions {
  int workers = 1, ps = 0;
  bool chief = false, evaluator = false;
  std::string devices;         // of each task; "": the program's
  std::string profile;         // where traces go; tasks add their name
  std::string cores = "even";  // or "all", or "0-1/2-3" in task order
  int port_base = 0;           // 0: free ports
  int restarts = 0;            // of each task
  double grace_seconds = 10;
  bool json = false;
  std::string ray, cpus = "1", gpus = "0";  // of `python -m berth.ray`
  std::vector<std::string> command;
};

struct LaunchTask {
  distribute::TaskId id;
  std::string address;  // "" for an evaluator
  CoreSet cores;        // empty: the launcher's
};

struct LaunchPlan {
  std::vector<LaunchTask> tasks;  // chief, workers, ps, evaluator
  distribute::ClusterSpec spec;   // without the evaluator
  std::string cores_note;         // why tasks share cores; "" if not
};

// Parameter servers need a chief, so `ps` adds one. Throws UsageError for
// invalid numbers and cores. `ports` has one per task except the evaluator;
// `allowed` are the cores of this process.
LaunchPlan plan_launch(const LaunchOptions& options,
                       const std::vector<int>& ports, const CoreSet& allowed);

// Returns how many ports plan_launch() needs.
int ports_needed(const LaunchOptions& options);

// Returns 256 random bits as hexadecimal digits.
std::string new_secret();

// Returns TF_CONFIG of one task, with lists.
std::string tf_config_text(const LaunchPlan& plan, const LaunchTask& task);

// Returns the variables of a task, "NAME=value": those of this process
// (`inherited`) without those of other launchers, plus TF_CONFIG,
// BERTH_CLUSTER_SECRET, BERTH_RESTART_COUNT, BERTH_DEVICES.
std::vector<std::string> launch_environment(const LaunchOptions& options,
                                            const LaunchPlan& plan,
                                            const LaunchTask& task,
                                            const std::string& secret,
                                            int restart,
                                            const char* const* inherited);

// Returns whether the cluster's work is done when this task ends: with
// parameter servers the chief, otherwise chief and workers.
bool decides_the_end(const LaunchPlan& plan, const distribute::TaskId& task);

}  // namespace berth::cli

#endif  // BERTH_CLI_LAUNCH_PLAN_H_
