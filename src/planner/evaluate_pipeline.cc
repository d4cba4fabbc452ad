#include <algorithm>
#include <set>

#include "base/infinity.h"
#include "planner/models.h"
#include "simulate/check_plan.h"
#include "simulate/pipeline_steps.h"
#include "simulate/timing_tables.h"

namespace berth {

namespace {

// Per device, what it holds throughout: weights, sums of gradients.
std::vector<DeviceUse> held_throughout(const PlanProblem& p,
                                       const PlacePlan& plan,
                                       const PipelineShape& shape) {
  const SimulatedGraph& g = p.graph;
  std::vector<DeviceUse> held(p.costs.devices.size());
  const std::vector<int32_t> renamed = renamed_values(g);
  std::set<int32_t> summed;
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    for (const int32_t v : g.reads[i]) {
      const int32_t root = renamed[v], from = g.producer[root];
      if (shape.role[i] == MicroBatchRole::kStep &&
          shape.role[from] == MicroBatchRole::kEach) {
        summed.insert(root);
      }
    }
    if (shape.part[i] < shape.num_stages) continue;
    for (const int32_t v : g.values[i]) {
      if (g.lives_on[v]) summed.insert(renamed[v]);
    }
  }
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    held[plan.device[i]].weights += p.resident_bytes[i] + g.variable_bytes[i];
  }
  for (const int32_t v : summed) {
    if (p.pipeline.micro_batches == 1) break;
    held[plan.device[g.producer[v]]].gradients += p.costs.bytes.item(v);
  }
  return held;
}

// When each task begins and ends, and the times of stages.
void add_tasks(const PlanProblem& p, const PlacePlan& plan,
               const PipelineShape& shape, const UnrolledSteps& u,
               Evaluation& e) {
  const std::vector<int32_t> most = most_in_flight(shape.tasks, shape.lanes);
  const int32_t stages = shape.num_stages;
  for (int32_t s = 0; s < stages; ++s) {
    StageUse use{shape.lanes.lane[s], 0, 0, most[s]};
    for (const bool backward : {false, true}) {
      double& us = backward ? use.backward : use.forward;
      for (const int32_t i : shape.ops[backward ? 2 * stages - 1 - s : s]) {
        us += p.costs.time(i, plan.device[i]).us;
      }
    }
    e.stages.push_back(use);
  }
  for (const PipelineTask& t : shape.tasks) {
    const bool backward = t.part >= stages;
    TaskTime task{backward ? 2 * stages - 1 - t.part : t.part, t.micro_batch,
                  backward, kInfinity, 0};
    for (const int32_t i : shape.ops[t.part]) {
      const int32_t copy = u.first[i] + t.micro_batch;
      task.start = std::min(task.start, e.simulation.start_us[copy]);
      task.end = std::max(task.end, e.simulation.end_us[copy]);
    }
    e.tasks.push_back(task);
  }
}

}  // namespace

double bubble_of(const PlanAnswer& a) {
  std::set<int32_t> lanes;
  double busy = 0;
  for (const StageUse& s : a.evaluation.stages) {
    if (s.device >= 0 && lanes.insert(s.device).second) {
      busy += a.evaluation.devices[s.device].busy;
    }
  }
  const double all = static_cast<double>(lanes.size()) * a.value;
  return all > 0 ? std::max(1 - busy / all, 0.0) : 0;
}

Evaluation evaluate_pipeline(const PlanProblem& p, const PlacePlan& plan) {
  Evaluation e;
  e.devices.resize(p.costs.devices.size());
  check_sequence(p.graph, p.costs.devices.size(), plan,
                 topological_order(p.graph), p.names);
  PipelineShape shape;
  if (std::string wrong = find_shape(p, plan, shape); !wrong.empty()) {
    e.violations.push_back(std::move(wrong));
    return e;
  }
  e.devices = held_throughout(p, plan, shape);
  if (p.pipeline.order && plan.order != *p.pipeline.order &&
      shape.num_stages > 1) {
    e.violations.push_back(std::string("its order is ") +
                           order_name(plan.order));
  }
  if (any_without_kernel(p, plan)) return e;
  const UnrolledSteps u = unroll(p, plan, shape);
  e.simulation = simulate(u.graph, u.costs, u.plan);
  std::vector<double> variables(e.devices.size(), 0);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    variables[plan.device[i]] += p.graph.variable_bytes[i];
  }
  for (size_t d = 0; d < e.devices.size(); ++d) {
    DeviceUse& use = e.devices[d];
    use.busy = e.simulation.busy_us[d];
    // The simulated peak has the variables once.
    use.bytes = use.weights + use.gradients - variables[d] +
                static_cast<double>(e.simulation.peak_bytes[d]);
  }
  add_copy_time(p, e.simulation, e.devices);
  add_tasks(p, plan, shape, u, e);
  e.value = e.simulation.step_us;
  return e;
}

}  // namespace berth
