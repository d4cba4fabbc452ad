#include "distribute/prediction/plan_pipeline.h"

#include <algorithm>
#include <numeric>

namespace berth::distribute {

namespace {

// What each pass of a stage takes, a micro-batch on average.
PipelineTimes times_of(const StagePlaces& places, const Plan& plan,
                       const PlanPrediction& p, size_t stages,
                       int micro_batches) {
  const std::vector<double> none(stages, 0);
  PipelineTimes t{none, none, none};
  const Graph& g = plan.graph();
  for (const int32_t i : p.costs.order.sequence) {
    const Node& n = g[i];
    if (n.sources.empty() || n.op->kind() == OpKind::kTransfer) continue;
    const auto it = places.find(n.sources[0].name);
    if (it == places.end() || (n.replica < 0 && !n.collective)) continue;
    const char pass = it->second.pass;
    std::vector<double>& of = pass == 'F'   ? t.forward
                              : pass == 'W' ? t.weight
                                            : t.input;
    of[static_cast<size_t>(it->second.stage)] +=
        (p.simulation.end_us[i] - p.simulation.start_us[i]) / micro_batches;
  }
  return t;
}

// By stage, the layers of its nodes, in the order of the model.
std::vector<std::vector<std::string>> layers_of(const StagePlaces& places,
                                                const Graph& traced,
                                                size_t stages) {
  std::vector<std::vector<std::string>> layers(stages);
  for (const Node& n : traced.nodes) {
    const size_t end = n.name.find('/');
    const auto it = places.find(n.name);
    if (end == std::string::npos || it == places.end()) continue;
    auto& of = layers[static_cast<size_t>(it->second.stage)];
    const std::string layer = n.name.substr(0, end);
    if (std::find(of.begin(), of.end(), layer) == of.end()) of.push_back(layer);
  }
  return layers;
}

}  // namespace

StrategyPlan::PipelinePlan plan_pipeline(const Pipeline& pipeline, Graph traced,
                                         const Plan& plan,
                                         const PlanPrediction& prediction,
                                         int micro_batches) {
  StrategyPlan::PipelinePlan r;
  const ScheduleShape shape = pipeline.shape(micro_batches);
  const PipelineActions actions = pipeline.actions(micro_batches);
  const auto n = static_cast<size_t>(shape.stages);
  r.schedule = name_of(shape.schedule);
  r.micro_batches = micro_batches;
  r.instructions = str(actions);
  PipelineTimes t{std::vector<double>(n, 0), {}, {}};
  t.input = t.weight = t.forward;
  const StagePlaces places = pipeline.place(traced);
  if (prediction.costs.known) {
    t = times_of(places, plan, prediction, n, micro_batches);
    double busy = 0;
    for (const DeviceId d : pipeline.devices()) {
      busy +=
          prediction.simulation.busy_us[prediction.costs.costs.find(d.text())];
    }
    r.bubble = 1 - busy / (prediction.step_us * shape.devices);
    const double work = micro_batches * 3.0;
    r.bubble_of_equal_stages = 1 - work / closed_form_us(shape, 1, 1, 1);
  }
  const PipelineTiming timing = time_of(actions, t);
  r.in_flight = timing.in_flight;
  r.bubble_of_stages = timing.bubble();
  const auto layers = layers_of(places, traced, n);
  for (size_t s = 0; s < n; ++s) {
    const int device = shape.device_of(static_cast<int>(s));
    r.stages.push_back({pipeline.devices()[static_cast<size_t>(device)].text(),
                        layers[s], t.forward[s], t.input[s] + t.weight[s]});
  }
  return r;
}

}  // namespace berth::distribute
