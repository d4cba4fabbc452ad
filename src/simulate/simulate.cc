// The timer's results as numbers per node, copy and device.

#include "simulate/simulate.h"

#include <algorithm>
#include <cmath>

#include "simulate/bus_loop.h"
#include "simulate/check_plan.h"
#include "simulate/peak_bytes.h"
#include "simulate/step_timer.h"

namespace berth {

namespace {

using Kind = SimulatedGraph::Kind;

class Simulator {
 public:
  Simulator(const SimulatedGraph& graph, const CostTable& costs)
      : g_(graph),
        costs_(costs),
        timer_(graph, costs),
        bus_(graph, costs),
        peak_(graph, costs, timer_.topological_order()) {}

  const Simulation& run(const PlacePlan& plan) {
    check_sequence(g_, costs_.devices.size(), plan, timer_.topological_order());
    check_kernels(g_, costs_, plan);
    timer_.run(plan);
    const auto spans = timer_.spans();
    const auto events = timer_.events();
    spans_.assign(spans.begin(), spans.end());
    events_.assign(events.begin(), events.end());
    if (bus_.needed()) bus_.run(plan, spans_, events_);
    fill_nodes(plan);
    fill_transfers(plan);
    const auto bytes = peak_.compute(plan, spans_, events_);
    result_.peak_bytes.assign(bytes.begin(), bytes.end());
    return result_;
  }

 private:
  void fill_nodes(const PlacePlan& plan) {
    const auto n = static_cast<size_t>(g_.num_nodes());
    result_.start_us.assign(n, 0);
    result_.end_us.assign(n, 0);
    result_.busy_us.assign(costs_.devices.size(), 0);
    result_.step_us = 0;
    for (int32_t i = 0; i < g_.num_nodes(); ++i) {
      if (g_.kind[i] == Kind::kTransfer) continue;
      const TimeSpan& s = spans_[i];
      result_.start_us[i] = s.start_us;
      result_.end_us[i] = s.end_us;
      result_.step_us = std::max(result_.step_us, s.end_us);
      if (g_.kind[i] == Kind::kOp) {
        result_.busy_us[plan.device[i]] += s.end_us - s.start_us;
      }
    }
  }

  void fill_transfers(const PlacePlan& plan) {
    result_.copy_busy_us.assign(costs_.devices.size(), 0);
    result_.sent_bytes = 0;
    result_.transfers.clear();
    for (const StepEvent& e : events_) {
      if (e.to < 0) continue;
      const int64_t bytes = costs_.bytes.item(e.number);
      const ValueRef value = g_.value(e.number);
      result_.transfers.push_back(
          {value, plan.device[value.node], e.to, bytes, e.start_us, e.end_us});
      result_.copy_busy_us[e.to] += e.end_us - e.start_us;
      result_.sent_bytes += bytes;
    }
    std::stable_sort(
        result_.transfers.begin(), result_.transfers.end(),
        [](const SimulatedTransfer& a, const SimulatedTransfer& b) {
          return a.start_us < b.start_us;
        });
    if (g_.graph) fill_transfer_nodes(plan);
  }

  // A transfer node runs when the copy it stands for does.
  void fill_transfer_nodes(const PlacePlan& plan) {
    for (int32_t i = 0; i < g_.num_nodes(); ++i) {
      if (g_.kind[i] != Kind::kTransfer) continue;
      ValueRef v = (*g_.graph)[i].inputs[0];
      while (g_.kind[v.node] == Kind::kTransfer) {
        v = (*g_.graph)[v.node].inputs[0];
      }
      const int32_t number = g_.values.begin_of(v.node) + v.output;
      for (const StepEvent& e : events_) {
        if (e.number != number || e.to != plan.device[i]) continue;
        result_.start_us[i] = e.start_us;
        result_.end_us[i] = e.end_us;
      }
    }
  }

  const SimulatedGraph& g_;
  const CostTable& costs_;
  StepTimer timer_;
  BusLoop bus_;
  PeakBytes peak_;
  std::vector<TimeSpan> spans_;
  std::vector<StepEvent> events_;
  Simulation result_;
};

}  // namespace

Simulation simulate(const SimulatedGraph& graph, const CostTable& costs,
                    const PlacePlan& plan) {
  return Simulator(graph, costs).run(plan);
}

Price price_move(const SimulatedGraph& graph, const CostTable& costs,
                 const PlacePlan& plan, std::span<const int32_t> nodes,
                 int32_t device) {
  Simulator simulator(graph, costs);
  const Simulation& base = simulator.run(plan);
  const double step_us = base.step_us;
  const int64_t sent_bytes = base.sent_bytes;
  PlacePlan moved = plan;
  for (const int32_t i : nodes) {
    moved.device[i] = device;
    if (graph.kind[i] == SimulatedGraph::Kind::kOp &&
        std::isinf(costs.time(i, device).us)) {
      return {};
    }
  }
  const Simulation& then = simulator.run(moved);
  return {then.step_us, then.step_us - step_us, then.sent_bytes - sent_bytes};
}

}  // namespace berth
