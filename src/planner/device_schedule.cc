#include "planner/device_schedule.h"

#include <algorithm>

namespace berth {

namespace {

// What the order of ops is decided by: copies never stop a device.
Machine with_engines(Machine m) {
  for (DeviceCost& d : m.devices) d.copies = CopyRule::kOverlap;
  for (LinkCost& link : m.links) link.shared = {};
  return m;
}

}  // namespace

DeviceScheduler::DeviceScheduler(const StepUnits& units)
    : units_(units),
      p_(units.problem),
      g_(units.problem.graph),
      routes_(with_engines(p_.costs)) {
  const size_t n = p_.num_ops();
  const size_t devices = p_.num_devices();
  program_.assign(n, 0);
  int32_t place = 0;
  for (const int32_t i : order_of_ops(p_)) program_[i] = place++;
  rank_.resize(n), came_.resize(n), missing_.resize(n);
  ready_.resize(devices), idle_.resize(devices);
  free_.resize(routes_.num_resources()), arrival_.resize(devices, -1);
}

double DeviceScheduler::copy_of(int32_t value, int32_t from, int32_t to) const {
  if (from == to || g_.everywhere[value]) return 0;
  return copy_time(p_, from, to, p_.costs.bytes.item(value));
}

void DeviceScheduler::find_ranks(First first, const PlacePlan& plan) {
  for (auto it = units_.order.rbegin(); it != units_.order.rend(); ++it) {
    const int32_t i = *it;
    if (first == First::kProgram) {
      rank_[i] = -program_[i];
      continue;
    }
    double behind = 0;
    for (const int32_t v : g_.values[i]) {
      for (const int32_t r : g_.readers[v]) {
        behind = std::max(
            behind, rank_[r] + copy_of(v, plan.device[i], plan.device[r]));
      }
    }
    for (const int32_t f : g_.followers[i]) behind = std::max(behind, rank_[f]);
    rank_[i] =
        behind + (p_.takes_time(i) ? p_.costs.time(i, plan.device[i]).us : 0);
  }
}

void DeviceScheduler::become_ready(int32_t node) {
  if (!p_.takes_time(node)) {
    settled_.push_back(node);
    return;
  }
  events_.push_back({came_[node], node, false});
  std::push_heap(events_.begin(), events_.end());
}

void DeviceScheduler::arrive(int32_t node, double at) {
  came_[node] = std::max(came_[node], at);
  if (--missing_[node] == 0) become_ready(node);
}

void DeviceScheduler::send(int32_t value, double at, const PlacePlan& plan) {
  const int32_t from = plan.device[g_.producer[value]];
  for (const int32_t r : g_.readers[value]) {
    const int32_t to = plan.device[r];
    double& there = arrival_[to];
    if (there < 0) {
      const double us = copy_of(value, from, to);
      there = us > 0
                  ? routes_.between(from, to).run(at, us, free_.data()).end_us
                  : at;
    }
    arrive(r, there);
  }
  for (const int32_t r : g_.readers[value]) arrival_[plan.device[r]] = -1;
}

void DeviceScheduler::end(int32_t node, double at, const PlacePlan& plan) {
  for (const int32_t v : g_.values[node]) send(v, at, plan);
  for (const int32_t f : g_.followers[node]) arrive(f, at);
}

void DeviceScheduler::settle(const PlacePlan& plan) {
  while (!settled_.empty()) {
    const int32_t next = settled_.back();
    settled_.pop_back();
    end(next, came_[next], plan);
  }
}

void DeviceScheduler::start_on(int32_t device, double now, PlacePlan& plan) {
  std::vector<Ready>& ready = ready_[device];
  if (!idle_[device] || ready.empty()) return;
  std::pop_heap(ready.begin(), ready.end());
  const int32_t op = ready.back().node;
  ready.pop_back();
  plan.sequence.push_back(op);
  idle_[device] = 0;
  events_.push_back({now + p_.costs.time(op, device).us, op, true});
  std::push_heap(events_.begin(), events_.end());
}

void DeviceScheduler::run(First first, PlacePlan& plan) {
  find_ranks(first, plan);
  plan.sequence.clear();
  std::fill(came_.begin(), came_.end(), 0);
  std::fill(free_.begin(), free_.end(), 0);
  std::fill(idle_.begin(), idle_.end(), 1);
  for (const int32_t i : units_.order) {
    missing_[i] = g_.reads[i].size() + g_.controls[i].size();
    if (missing_[i] == 0) become_ready(i);
  }
  settle(plan);
  std::vector<int32_t> touched;
  while (!events_.empty()) {
    const double now = events_.front().at;
    touched.clear();
    while (!events_.empty() && events_.front().at == now) {
      std::pop_heap(events_.begin(), events_.end());
      const Event e = events_.back();
      events_.pop_back();
      const int32_t d = plan.device[e.node];
      touched.push_back(d);
      if (e.ends) {
        idle_[d] = 1;
        end(e.node, now, plan);
        settle(plan);
      } else {
        ready_[d].push_back({rank_[e.node], e.node});
        std::push_heap(ready_[d].begin(), ready_[d].end());
      }
    }
    for (const int32_t d : touched) start_on(d, now, plan);
  }
}

}  // namespace berth
