// What `berth launch` starts: tasks, their addresses, cores and variables.

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
  std::string devices;         // of each task, "" as the program has them
  std::string cores = "even";  // or "all", or "0-1/2-3" in order of tasks
  int port_base = 0;           // 0: ports that are free
  int restarts = 0;            // of each task
  double grace_seconds = 10;
  bool json = false;
  std::vector<std::string> command;
};

struct LaunchTask {
  distribute::TaskId id;
  std::string address;  // "" of an evaluator
  CoreSet cores;        // empty: those of the launcher
};

struct LaunchPlan {
  std::vector<LaunchTask> tasks;  // chief, workers, ps, evaluator
  distribute::ClusterSpec spec;   // without the evaluator
  std::string cores_note;         // why tasks share cores, "" when they do not
};

// Parameter servers need a chief, so `ps` brings one. Throws UsageError for
// numbers and cores that make no sense; `ports` has one per task but the
// evaluator's, `allowed` the cores of this process.
LaunchPlan plan_launch(const LaunchOptions& options,
                       const std::vector<int>& ports, const CoreSet& allowed);

// How many ports plan_launch() wants.
int ports_needed(const LaunchOptions& options);

// Ports of 127.0.0.1 that nobody has, all different.
std::vector<int> free_ports(int count);

// 256 random bits as hexadecimal digits.
std::string new_secret();

// TF_CONFIG of one task, with lists.
std::string tf_config_text(const LaunchPlan& plan, const LaunchTask& task);

// The variables of a task, "NAME=value": those of this process (`inherited`)
// without what other launchers set, and TF_CONFIG, BERTH_CLUSTER_SECRET,
// BERTH_RESTART_COUNT, BERTH_DEVICES.
std::vector<std::string> launch_environment(const LaunchOptions& options,
                                            const LaunchPlan& plan,
                                            const LaunchTask& task,
                                            const std::string& secret,
                                            int restart,
                                            const char* const* inherited);

// Whether the cluster has done its work when this task ends: the chief where
// there are parameter servers, else chief and workers.
bool decides_the_end(const LaunchPlan& plan, const distribute::TaskId& task);

}  // namespace berth::cli

#endif  // BERTH_CLI_LAUNCH_PLAN_H_
