// PlanProblem: the planner's input as plain arrays.
//
// Made from a traced graph (problem_of_graph.h) or read from a file
// (cli/planner/problem_file.h); shared by search, bounds, what-if and
// explanations. A value; read-only while it is planned, by any number of
// threads.

#ifndef BERTH_PLANNER_PROBLEM_H_
#define BERTH_PLANNER_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "place/costs.h"
#include "place/device_set.h"
#include "simulate/step_model.h"

namespace berth {

// What is minimised, and by which rules.
enum class PlanModel : uint8_t {
  kStep,      // latency: the end of a step (simulate.h)
  kLoad,      // throughput: the load of the busiest device (loads.h)
  kPipeline,  // the end of a step of several micro-batches (pipeline_steps.h)
};
const char* model_name(PlanModel model);  // "latency", "throughput", ...

// A plan from elsewhere: rules, scopes, one device.
struct PlanCandidate {
  std::string name;  // "TensorFlow's rules"
  PlacePlan plan;
};

struct PlanProblem : StepModel {
  PlanModel model = PlanModel::kStep;
  std::string time_unit = "us";  // "" for files that name none

  // Per op.
  std::vector<int64_t> ids;        // of a file's ops; empty: it has none
  std::vector<DeviceSet> allowed;  // devices, except those without a kernel
  std::vector<int32_t> group;      // 0 to num_groups - 1
  std::vector<uint8_t> backward;   // in a training step
  int32_t num_groups = 0;          // ops of one group are on one device

  // Factor by which a file's bytes were multiplied to make limits integers;
  // limits from elsewhere are multiplied too.
  double bytes_scale = 1;

  std::vector<PlanCandidate> candidates;
};

// Returns a limit of this many bytes in the units of the problem's devices.
int64_t limit_of(const PlanProblem& problem, double bytes);

// Returns the devices of each class.
std::vector<DeviceSet> devices_of_classes(const PlanProblem& problem);

// Returns, per op, the devices that it allows and has a kernel on.
std::vector<DeviceSet> allowed_of_ops(const PlanProblem& problem);

// Returns, per group, the devices that all its ops allow and have kernels on.
std::vector<DeviceSet> allowed_of_groups(const PlanProblem& problem);

// Returns, per op, device d if its group allows that or none, else the first
// allowed.
std::vector<int32_t> all_on(const PlanProblem& problem,
                            const std::vector<DeviceSet>& allowed, int32_t d);

// Returns all ops that take time, none before what it waits for; by number
// where there is a choice.
std::vector<int32_t> order_of_ops(const PlanProblem& problem);

// Returns how fast each device is, by its total time for all ops: the fastest
// has 1.
std::vector<double> speeds_of(const PlanProblem& problem);

// Checks that arrays fit together, that there are at most kMaxPlaceDevices
// devices and that the graph has no cycle. Throws errors::InvalidArgument,
// naming the op.
void check_problem(const PlanProblem& problem);

}  // namespace berth

#endif  // BERTH_PLANNER_PROBLEM_H_
