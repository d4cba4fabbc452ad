#include "planner/plan_view.h"

#include <fmt/format.h>

#include <utility>

#include "place/device_table.h"
#include "simulate/copy_route.h"

namespace berth {

namespace {

std::vector<PlannedTransfer> simulated(const Simulation& s,
                                       const SimulatedGraph& g) {
  std::vector<PlannedTransfer> all;
  all.reserve(s.transfers.size());
  for (const SimulatedTransfer& t : s.transfers) {
    all.push_back({g.values.begin_of(t.value.node) + t.value.output, t.from,
                   t.to, t.bytes, t.end_us - t.start_us, t.start_us, t.end_us});
  }
  return all;
}

// The resources that a load's transfer keeps busy; `first`: of its value. By
// the touch rule the sender pays once per value.
std::vector<int32_t> payers_of(const PlanProblem& p, int32_t from, int32_t to,
                               bool first) {
  if (p.touch_us.empty()) {
    const CopyRoute route(p.costs, from, to);
    return {route.begin(), route.end()};
  }
  std::vector<int32_t> payers;
  if (first && !p.free_of_touch[from]) payers.push_back(from);
  if (!p.free_of_touch[to]) payers.push_back(to);
  return payers;
}

}  // namespace

std::vector<PlannedTransfer> transfers_of(const PlanProblem& p,
                                          const PlacePlan& plan,
                                          const Simulation& simulation) {
  const SimulatedGraph& g = p.graph;
  if (p.model == PlanModel::kStep) return simulated(simulation, g);
  std::vector<PlannedTransfer> all;
  const std::vector<int32_t> renamed = renamed_values(g);
  std::vector<DeviceSet> read_on(g.producer.size(), 0);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const DeviceSet here = device_bit(plan.device[i]);
    for (const int32_t v : g.reads[i]) read_on[renamed[v]] |= here;
  }
  for (int32_t v = 0; v < std::ssize(read_on); ++v) {
    if (g.everywhere[v]) continue;
    const int32_t from = plan.device[g.producer[v]];
    const int64_t bytes = p.costs.bytes.item(v);
    bool first = true;
    for (DeviceSet to = read_on[v] & ~device_bit(from); to; to.drop_first()) {
      const int32_t d = to.first();
      const double time = p.touch_us.empty()
                              ? p.costs.link(from, d).time_us(bytes)
                              : p.touch_us[v];
      all.push_back({v, from, d, bytes, time});
      all.back().payers = payers_of(p, from, d, std::exchange(first, false));
    }
  }
  return all;
}

std::string value_name(const PlanProblem& p, int32_t value) {
  const ValueRef v = p.graph.value(value);
  const std::string& op = p.names[v.node];
  return p.graph.graph == nullptr ? op : fmt::format("{}:{}", op, v.output);
}

std::string short_name(const PlanProblem& p, int32_t device) {
  const std::string& name = p.costs.devices[device].name;
  return name.starts_with('/') ? short_device(name) : name;
}

}  // namespace berth
