// The value of a throughput plan, directly from ops and values (loads.h).

#include <algorithm>

#include "planner/loads.h"
#include "planner/models.h"

namespace berth {

namespace {

// Adds the payments for a value that several devices hold, by the touch rule.
void add_touches(const PlanProblem& p, int32_t value, DeviceSet holders,
                 Evaluation& e) {
  if (holders.count() < 2) return;
  for (; holders; holders.drop_first()) {
    const size_t d = holders.first();
    if (!p.free_of_touch[d]) {
      e.devices[d].busy += p.touch_us[value];
    }
  }
}

// Adds the copies of a value, by the link rule.
void add_copies(const PlanProblem& p, int32_t value, int32_t from,
                DeviceSet readers, Evaluation& e) {
  const CopyRule at_home = p.costs.devices[from].copies;
  for (; readers; readers.drop_first()) {
    const int32_t to = readers.first();
    const CopyRule there = p.costs.devices[to].copies;
    if (to == from || there == CopyRule::kFree) continue;
    const double us = p.costs.link(from, to).time_us(p.costs.bytes.item(value));
    DeviceUse& use = e.devices[to];
    (there == CopyRule::kOverlap ? use.copy_busy : use.busy) += us;
    if (at_home == CopyRule::kBoth) {
      e.devices[from].busy += us;
    }
    for (const int32_t n : p.costs.link(from, to).shared) {
      if (e.shared_busy.size() <= static_cast<size_t>(n)) {
        e.shared_busy.resize(static_cast<size_t>(n) + 1, 0);
      }
      e.shared_busy[n] += us;
    }
  }
}

}  // namespace

Evaluation evaluate_loads(const PlanProblem& p, const PlacePlan& plan) {
  const SimulatedGraph& g = p.graph;
  Evaluation e;
  e.devices.resize(p.num_devices());
  const std::vector<int32_t> renamed = renamed_values(g);
  std::vector<DeviceSet> readers(g.producer.size(), 0);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const int32_t d = plan.device[i];
    DeviceUse& use = e.devices[d];
    if (p.takes_time(i)) use.busy += p.costs.time(i, d).us;
    use.bytes += p.resident_bytes[i];
    if (!g.variable_bytes.empty()) {
      use.bytes += g.variable_bytes[i];
    }
    for (const int32_t v : g.reads[i]) {
      readers[renamed[v]] |= device_bit(d);
    }
  }
  for (int32_t v = 0; v < static_cast<int32_t>(readers.size()); ++v) {
    if (readers[v] == 0 || g.everywhere[v]) continue;
    const int32_t from = plan.device[g.producer[v]];
    if (p.touch_us.empty()) {
      add_copies(p, v, from, readers[v], e);
    } else {
      add_touches(p, v, readers[v] | device_bit(from), e);
    }
  }
  e.value = 0;
  for (const DeviceUse& use : e.devices) {
    e.value = std::max({e.value, use.busy, use.copy_busy});
  }
  for (const double busy : e.shared_busy) e.value = std::max(e.value, busy);
  return e;
}

}  // namespace berth
