// Small random throughput problems, for tests of its searches and bounds.

#ifndef BERTH_PLANNER_RANDOM_LOAD_GRAPHS_TESTING_H_
#define BERTH_PLANNER_RANDOM_LOAD_GRAPHS_TESTING_H_

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "planner/problem.h"

namespace berth::planner_tests {

struct RandomLoads {
  int ops = 8;
  int groups = 0;  // 0: one per op
  int devices = 3;
  int classes = 2;        // of devices
  bool by_links = false;  // else touch rule
  bool limits = false;    // memory limits that matter
  bool masks = false;     // some ops may not run everywhere
  bool aliases = false;   // some ops are aliases or sources
  bool backward = false;  // the second half of the ops is a backward pass
  bool shared = false;    // links in groups that carry one transfer at a time
};

class RandomLoadsMaker {
 public:
  RandomLoadsMaker(const RandomLoads& o, uint64_t seed) : o_(o), rng_(seed) {}

  PlanProblem make() {
    p_.name = "random";
    p_.model = PlanModel::kLoad;
    add_devices();
    for (int i = 0; i < o_.ops; ++i) add_op(i);
    p_.graph.finish();
    add_groups();
    const auto values = p_.graph.producer.size();
    if (o_.by_links) return std::move(p_);
    for (size_t v = 0; v < values; ++v) p_.touch_us.push_back(number(0, 6));
    for (int d = 0; d < o_.devices; ++d) {
      p_.free_of_touch.push_back(d > 0 && chance(0.3));
    }
    return std::move(p_);
  }

 private:
  int number(int low, int high) {
    return low +
           static_cast<int>(rng_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(double share) { return number(0, 999) < 1000 * share; }

  void add_devices() {
    for (int c = 0; c < o_.classes; ++c) {
      DeviceClass of;
      of.name = std::to_string(c);
      p_.costs.classes.push_back(of);
    }
    for (int d = 0; d < o_.devices; ++d) {
      DeviceCost device;
      device.name = "/device:X:" + std::to_string(d);
      device.device_class = d % o_.classes;
      if (o_.limits) device.memory_limit = number(8 * o_.ops, 16 * o_.ops) / 2;
      device.copies = static_cast<CopyRule>(number(0, 3));
      p_.costs.devices.push_back(device);
    }
    for (int k = 0; k < o_.devices * o_.devices; ++k) {
      LinkCost link;
      link.latency_us = number(0, 2);
      link.bytes_per_us = number(1, 4);
      for (int n = 0; o_.shared && n < 2; ++n) {
        if (chance(0.5)) link.shared.add(number(0, 2) * 3);
      }
      p_.costs.links.push_back(link);
    }
  }

  void add_op(int i) {
    using Kind = SimulatedGraph::Kind;
    SimulatedGraph& g = p_.graph;
    std::vector<int32_t> reads;
    const int32_t old = g.values.num_items();
    for (int k = number(0, 2); k > 0 && old > 0; --k) {
      reads.push_back(number(std::max(0, old - 5), old - 1));
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    Kind kind = Kind::kOp;
    if (o_.aliases && chance(0.3)) {
      kind = reads.empty() ? Kind::kSource : Kind::kAlias;
    }
    g.kind.push_back(kind);
    g.alias_of.push_back(kind == Kind::kAlias ? reads[0] : -1);
    g.variable_bytes.push_back(kind == Kind::kSource ? number(0, 6) : 0);
    g.reads.add(reads);
    g.controls.add({});
    std::vector<int32_t> values(kind == Kind::kAlias ? 1 : number(1, 2));
    std::vector<int64_t> bytes;
    for (int32_t& v : values) {
      v = static_cast<int32_t>(g.producer.size());
      g.producer.push_back(i);
      g.everywhere.push_back(kind == Kind::kSource && chance(0.3));
      g.lives_on.push_back(0);
      bytes.push_back(number(0, 9));
    }
    g.values.add(values);
    p_.costs.bytes.add(bytes);
    p_.names.push_back("op" + std::to_string(i));
    DeviceSet mask = DeviceSet::below(o_.devices);
    if (o_.masks && chance(0.3)) mask &= ~device_bit(number(0, o_.devices - 1));
    if (o_.devices == 1) mask = 1;
    p_.allowed.push_back(mask);
    p_.resident_bytes.push_back(number(0, 10));
    p_.backward.push_back(o_.backward && 2 * i >= o_.ops);
    for (int c = 0; c < o_.classes; ++c) {
      const bool none = o_.masks && o_.classes > 1 && chance(0.05);
      p_.costs.times.push_back(
          {none ? kNoKernel : number(0, 20), 0, CostOrigin::kDeclared});
    }
  }

  void add_groups() {
    p_.num_groups = o_.groups > 0 ? std::min(o_.groups, o_.ops) : o_.ops;
    for (int i = 0; i < o_.ops; ++i) {
      p_.group.push_back(i < p_.num_groups ? i : number(0, p_.num_groups - 1));
    }
  }

  RandomLoads o_;
  std::mt19937_64 rng_;
  PlanProblem p_;
};

inline PlanProblem random_loads(const RandomLoads& options, uint64_t seed) {
  return RandomLoadsMaker(options, seed).make();
}

}  // namespace berth::planner_tests

#endif  // BERTH_PLANNER_RANDOM_LOAD_GRAPHS_TESTING_H_
