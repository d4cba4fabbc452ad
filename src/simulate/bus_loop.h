// When everything happens if ops slow each other down on a bus.
//
// Items and their order are those of the StepTimer; only the time of an op
// depends on what runs beside it, so a loop over events computes the times.
// Internal to the module; one thread per object.

#ifndef BERTH_SIMULATE_BUS_LOOP_H_
#define BERTH_SIMULATE_BUS_LOOP_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/infinity.h"
#include "simulate/copy_route.h"
#include "simulate/simulate.h"

namespace berth {

class BusLoop {
 public:
  BusLoop(const SimulatedGraph& graph, const CostTable& costs)
      : graph_(graph), costs_(costs) {
    needed_ =
        std::ranges::any_of(costs.devices,
                            [](const DeviceCost& d) { return d.bus >= 0; }) &&
        std::ranges::any_of(costs.bus_bytes, [](double b) { return b > 0; });
    if (!needed_) return;
    routes_ = CopyRoutes(costs);
    copy_of_.assign(graph.producer.size() * costs.devices.size(), -1);
  }

  // Tells whether any op moves bytes over a bus.
  bool needed() const { return needed_; }

  // Sets the times of nodes and copies, which come as timed without buses.
  void run(const PlacePlan& plan, std::span<TimeSpan> spans,
           std::span<StepEvent> events) {
    items_.clear();
    running_.clear();
    item_of_.assign(graph_.kind.size(), -1);
    last_.assign(routes_.num_resources(), -1);
    add_items(plan, events);
    start_.assign(items_.size(), 0);
    end_.assign(items_.size(), 0);
    loop();
    for (size_t k = 0; k < items_.size(); ++k) {
      const Item& item = items_[k];
      if (item.event >= 0) {
        StepEvent& e = events[static_cast<size_t>(item.event)];
        e.start_us = start_[k];
        e.end_us = end_[k];
        if (e.to < 0) spans[e.number] = {start_[k], end_[k]};
      } else {
        spans[static_cast<size_t>(item.node)] = {start_[k], end_[k]};
      }
    }
  }

 private:
  struct Item {
    int32_t node = -1;   // an op, or
    int32_t event = -1;  // a copy or an alias
    double us = 0;
    int32_t missing = 0;  // unfinished items that it waits for
    int32_t bus = -1;
    double rate = 0;  // bytes per us when alone
  };
  struct Running {
    int32_t item;
    double end;
    double speed;
  };

  void add_items(const PlacePlan& plan, std::span<const StepEvent> events) {
    for (auto& list : then_) list.clear();
    size_t e = 0;
    for (size_t k = 0; k <= plan.sequence.size(); ++k) {
      for (; e < events.size() && static_cast<size_t>(events[e].position) <= k;
           ++e) {
        add_event(plan, events[e], static_cast<int32_t>(e));
      }
      if (k < plan.sequence.size()) add_op(plan, plan.sequence[k]);
    }
  }

  void add_event(const PlacePlan& plan, const StepEvent& e, int32_t event) {
    Item item;
    item.event = event;
    if (e.to < 0) {
      items_.push_back(item);
      add_inputs(plan, e.number);
      item_of_[e.number] = static_cast<int32_t>(items_.size()) - 1;
      return;
    }
    const int32_t producer = graph_.producer[e.number];
    const int32_t from = plan.device[producer];
    const auto devices = static_cast<int32_t>(costs_.devices.size());
    item.us = costs_.link(from, e.to).time_us(costs_.bytes.item(e.number));
    if (!(item.us >= 0)) item.us = kInfinity;
    items_.push_back(item);
    wait_for(item_of_[producer]);
    for (const int32_t n : routes_.between(from, e.to)) occupy(n);
    copy_of_[e.number * devices + e.to] = items_.size() - 1;
  }

  void add_op(const PlacePlan& plan, int32_t op) {
    const int32_t on = plan.device[op];
    Item item;
    item.node = op;
    item.us = costs_.time(op, on).us;
    const double bytes = costs_.bus_bytes[op];
    if (costs_.devices[on].bus >= 0 && item.us > 0 && bytes > 0) {
      item.bus = costs_.devices[on].bus;
      item.rate = bytes / item.us;
    }
    items_.push_back(item);
    add_inputs(plan, op);
    occupy(on);
    item_of_[op] = static_cast<int32_t>(items_.size()) - 1;
  }

  void add_inputs(const PlacePlan& plan, int32_t node) {
    const int32_t on = plan.device[node];
    for (const int32_t v : graph_.reads[node]) {
      const int32_t producer = graph_.producer[v];
      const bool there = plan.device[producer] == on || graph_.everywhere[v];
      wait_for(there ? item_of_[producer]
                     : copy_of_[v * costs_.devices.size() + on]);
    }
    for (const int32_t c : graph_.controls[node]) wait_for(item_of_[c]);
  }

  // Makes the newest item wait for another.
  void wait_for(int32_t item) {
    if (item < 0) return;
    if (then_.size() < items_.size()) then_.resize(items_.size());
    then_[item].push_back(static_cast<int32_t>(items_.size()) - 1);
    ++items_.back().missing;
  }

  void occupy(int32_t resource) {
    wait_for(last_[resource]);
    last_[resource] = static_cast<int32_t>(items_.size()) - 1;
  }

  void start(int32_t k) {
    start_[k] = now_;
    running_.push_back({k, now_ + items_[k].us, 1});
    if (items_[k].bus >= 0) share_bus(items_[k].bus);
  }

  // An op began or ended its use of a bus: adjusts the rates of the others.
  void share_bus(int32_t bus) {
    double wanted = 0;
    for (const Running& r : running_) {
      if (items_[r.item].bus == bus) wanted += items_[r.item].rate;
    }
    const double given = costs_.buses[bus].bytes_per_us;
    const double speed = wanted > given ? given / wanted : 1;
    for (Running& r : running_) {
      if (items_[r.item].bus != bus || r.speed == speed) continue;
      r.end = now_ + (r.end - now_) * r.speed / speed;
      r.speed = speed;
    }
  }

  void end_item(int32_t k) {
    end_[k] = now_;
    if (items_[k].bus >= 0) freed_.push_back(items_[k].bus);
    for (const int32_t t : then_[k]) {
      if (--items_[t].missing == 0) ready_.push_back(t);
    }
  }

  void loop() {
    if (then_.size() < items_.size()) then_.resize(items_.size());
    now_ = 0;
    for (size_t k = 0; k < items_.size(); ++k) {
      end_[k] = kInfinity;
      if (items_[k].missing == 0) start(static_cast<int32_t>(k));
    }
    while (!running_.empty()) {
      double next = kInfinity;
      for (const Running& r : running_) next = std::min(next, r.end);
      if (std::isinf(next)) return;  // nothing more will end
      now_ = next;
      ready_.clear();
      for (size_t k = 0; k < running_.size();) {
        if (running_[k].end > now_) {
          ++k;
          continue;
        }
        end_item(running_[k].item);
        running_[k] = running_.back();
        running_.pop_back();
      }
      for (const int32_t bus : freed_) share_bus(bus);
      freed_.clear();
      for (const int32_t k : ready_) start(k);
    }
  }

  const SimulatedGraph& graph_;
  const CostTable& costs_;
  bool needed_ = false;
  CopyRoutes routes_;

  std::vector<Item> items_;
  std::vector<std::vector<int32_t>> then_;  // per item: those waiting for it
  std::vector<double> start_, end_;         // per item
  std::vector<int32_t> item_of_;            // per node; -1: there throughout
  std::vector<int32_t> copy_of_;            // [value * devices + device]
  std::vector<int32_t> last_;               // per resource
  std::vector<Running> running_;
  std::vector<int32_t> ready_;  // items
  std::vector<int32_t> freed_;  // buses
  double now_ = 0;
};

}  // namespace berth

#endif  // BERTH_SIMULATE_BUS_LOOP_H_
