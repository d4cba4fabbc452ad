// Random graphs (as arrays), machines and plans for tests of the simulator, the
// searches and the bounds.

#ifndef BERTH_SIMULATE_RANDOM_STEPS_TESTING_H_
#define BERTH_SIMULATE_RANDOM_STEPS_TESTING_H_

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "simulate/simulate.h"

namespace berth::place_tests {

struct RandomSteps {
  int32_t nodes = 20;
  int32_t devices = 3;
  bool aliases = true;  // as well as sources and controls
  bool shared_links = true;
  std::vector<CopyRule> rules;  // one of them per device; empty: any
};

struct RandomStep {
  SimulatedGraph graph;
  CostTable costs;
};

inline int32_t pick(std::mt19937& r, int32_t n) {
  return static_cast<int32_t>(r() % static_cast<uint32_t>(n));
}

// Small integral times and bytes, so that ties are common and sums exact.
inline RandomStep random_step(std::mt19937& r, const RandomSteps& o) {
  using Kind = SimulatedGraph::Kind;
  RandomStep s;
  SimulatedGraph& g = s.graph;
  CostTable& c = s.costs;
  const int32_t classes = 1 + pick(r, std::min(o.devices, 2));
  c.classes.resize(static_cast<size_t>(classes));
  for (int32_t d = 0; d < o.devices; ++d) {
    DeviceCost device;
    device.name = "D" + std::to_string(d);
    device.device_class = pick(r, classes);
    device.copies = o.rules.empty()
                        ? static_cast<CopyRule>(pick(r, 4))
                        : o.rules[static_cast<size_t>(
                              pick(r, static_cast<int32_t>(o.rules.size())))];
    c.devices.push_back(device);
  }
  for (int32_t k = 0; k < o.devices * o.devices; ++k) {
    LinkCost link{static_cast<double>(pick(r, 3)), 1.0 / (1 << pick(r, 2))};
    for (int n = 0; o.shared_links && n < 2; ++n) {
      if (pick(r, 4) == 0) link.shared.add(pick(r, 3));
    }
    c.links.push_back(link);
  }
  std::vector<int32_t> row;
  for (int32_t i = 0; i < o.nodes; ++i) {
    const int32_t what = o.aliases ? pick(r, 10) : 9;
    const int32_t before = static_cast<int32_t>(g.producer.size());
    const Kind kind = what == 0                ? Kind::kSource
                      : what < 3 && before > 0 ? Kind::kAlias
                                               : Kind::kOp;
    g.kind.push_back(kind);
    row.clear();
    const int32_t reads = kind == Kind::kSource || before == 0
                              ? 0
                              : pick(r, 3) + (kind == Kind::kAlias);
    for (int32_t k = 0; k < reads; ++k) {
      // Usually a recent one.
      const int32_t back = pick(r, pick(r, 3) ? std::min(before, 6) : before);
      row.push_back(before - 1 - back);
    }
    const int32_t renamed = row.empty() ? -1 : row[0];
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
    g.reads.add(row);
    g.alias_of.push_back(kind == Kind::kAlias ? renamed : -1);
    std::vector<int32_t> controls;
    if (o.aliases && kind != Kind::kSource && i > 0 && pick(r, 5) == 0) {
      const int32_t other = pick(r, i);
      if (std::none_of(row.begin(), row.end(),
                       [&](int32_t v) { return g.producer[v] == other; })) {
        controls.push_back(other);
      }
    }
    g.controls.add(controls);
    std::vector<int32_t> values;
    std::vector<int64_t> bytes;
    const int32_t outputs = kind == Kind::kOp ? 1 + (pick(r, 4) == 0) : 1;
    for (int32_t k = 0; k < outputs; ++k) {
      values.push_back(static_cast<int32_t>(g.producer.size()));
      g.producer.push_back(i);
      g.everywhere.push_back(kind == Kind::kSource && pick(r, 3) == 0);
      g.lives_on.push_back(pick(r, 8) == 0);
      bytes.push_back(kind == Kind::kAlias ? c.bytes.item(renamed)
                                           : pick(r, 5));
    }
    g.values.add(values);
    c.bytes.add(bytes);
    g.variable_bytes.push_back(kind == Kind::kSource ? pick(r, 3) : 0);
    for (int32_t k = 0; k < classes; ++k) {
      OpTime time;
      time.us = kind == Kind::kOp ? pick(r, 6) : 0;
      c.times.push_back(time);
      c.workspace.push_back(kind == Kind::kOp ? pick(r, 4) : 0);
    }
  }
  g.finish();
  return s;
}

// Any devices, and a random feasible order.
inline PlacePlan random_plan(std::mt19937& r, const RandomStep& s) {
  const SimulatedGraph& g = s.graph;
  PlacePlan plan;
  std::vector<size_t> missing;
  std::vector<int32_t> ready;
  for (int32_t i = 0; i < g.num_nodes(); ++i) {
    plan.device.push_back(
        pick(r, static_cast<int32_t>(s.costs.devices.size())));
    missing.push_back(g.reads[i].size() + g.controls[i].size());
    if (missing.back() == 0) ready.push_back(i);
  }
  const auto arrive = [&](int32_t i) {
    if (--missing[static_cast<size_t>(i)] == 0) ready.push_back(i);
  };
  while (!ready.empty()) {
    const size_t k = r() % ready.size();
    const int32_t i = ready[k];
    ready.erase(ready.begin() + static_cast<ptrdiff_t>(k));
    if (g.kind[static_cast<size_t>(i)] == SimulatedGraph::Kind::kOp) {
      plan.sequence.push_back(i);
    }
    for (const int32_t v : g.values[i]) {
      for (const int32_t reader : g.readers[v]) arrive(reader);
    }
    for (const int32_t f : g.followers[i]) arrive(f);
  }
  return plan;
}

}  // namespace berth::place_tests

#endif  // BERTH_SIMULATE_RANDOM_STEPS_TESTING_H_
