// StepUnits: the decisions in a search for the shortest step.
//
// A unit is a group, with the nodes that cost nothing beside it: aliases of its
// values, sources that only it reads. The order of a sequence is given between
// ops that take time, seen through nodes that take none. Made once per problem,
// which must outlive it; then read-only.

#ifndef BERTH_PLANNER_STEP_UNITS_H_
#define BERTH_PLANNER_STEP_UNITS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "place/disjoint_sets.h"
#include "planner/problem.h"
#include "simulate/timing_tables.h"

namespace berth {

class StepUnits {
 public:
  explicit StepUnits(const PlanProblem& p) : problem(p) {
    order = topological_order(p.graph);
    for (const int32_t i : order) num_ops += p.takes_time(i);
    look_at_limits();
    join_nodes();
    collect_units();
    collect_neighbours();
    collect_ops_around();
  }

  const PlanProblem& problem;

  // Per node.
  std::vector<int32_t> unit;
  std::vector<int32_t> order;  // all nodes, none before what it waits for

  // Per unit.
  int32_t num_units = 0;
  std::vector<DeviceSet> allowed;  // none: no plan exists
  Rows<int32_t> nodes;
  Rows<int32_t> ops;  // those that take time
  // Bytes that a unit holds on its device from beginning to end: residents;
  // these with variables and arguments.
  std::vector<double> resident_bytes, held_bytes;
  Rows<int32_t> neighbours;  // units connected to it by a value

  // Per node: ops that take time and come before or after it, with nothing that
  // takes time between.
  Rows<int32_t> before, after;
  int32_t num_ops = 0;  // that take time

  // False: no sequence can be changed quickly, because nodes that take no time
  // tie too many ops together; `before` and `after` are empty then.
  bool ordered = true;
  // A plan may break a memory limit.
  bool limited = false;

  // True when a plan has a sequence of exactly the ops that take time, and all
  // of each unit on one device that it allows.
  bool keeps(const PlacePlan& plan) const {
    if (plan.sequence.size() != static_cast<size_t>(num_ops)) return false;
    std::vector<int32_t> device(allowed.size(), -1);
    for (int32_t i = 0; i < problem.num_ops(); ++i) {
      if (!problem.takes_time(i)) continue;
      int32_t& d = device[unit[i]];
      if (d >= 0 && d != plan.device[i]) return false;
      d = plan.device[i];
      if (!allowed[unit[i]].has(d)) return false;
    }
    return true;
  }

  // The device, or the first one that the unit allows.
  int32_t near(int32_t unit, int32_t device) const {
    const DeviceSet& mask = allowed[unit];
    return mask.has(device) || !mask ? device : mask.first();
  }

  // Gives units without a device (-1), those without ops, that of a neighbour,
  // else the one near `otherwise`.
  void place_rest(std::vector<int32_t>& device, int32_t otherwise) const {
    for (int32_t u = 0; u < num_units; ++u) {
      if (device[u] >= 0) continue;
      for (const int32_t other : neighbours[u]) {
        const int32_t d = device[other];
        if (d >= 0 && allowed[u].has(d)) device[u] = d;
      }
      if (device[u] < 0) device[u] = near(u, otherwise);
    }
  }

 private:
  // Links between ops that nodes without time may make, per link in the graph.
  static constexpr int64_t kMaxTies = 8;

  // Bytes that a node holds from beginning to end.
  static double throughout(const PlanProblem& p, int32_t i) {
    return p.resident_bytes[i] + static_cast<double>(p.graph.variable_bytes[i]);
  }

  // Aliases join the unit of what only they read, sources that of their only
  // reader, if that allows no more devices, so that nothing is lost. (With
  // other readers an alias may be better off on their device, where one copy
  // serves both; under limits a source may be better off on another one.)
  void join_nodes() {
    const SimulatedGraph& g = problem.graph;
    std::vector<DeviceSet> mask = allowed_of_groups(problem);
    std::vector<uint8_t> timed(mask.size(), 0);
    for (int32_t i = 0; i < g.num_nodes(); ++i) {
      timed[problem.group[i]] |= problem.takes_time(i);
    }
    DisjointSets groups(static_cast<size_t>(problem.num_groups));
    const auto join = [&](int32_t into, int32_t other) {
      into = groups.find(into), other = groups.find(other);
      if (into == other || timed[other] || mask[into] == 0) return;
      if (mask[into] != mask[other] && (mask[into] & ~mask[other]) != 0) return;
      groups.join(into, other);
    };
    for (const int32_t i : order) {
      const int32_t v = g.alias_of[i];
      if (v < 0 || problem.takes_time(i)) continue;
      if (g.readers[v].size() > 1 || g.everywhere[v]) continue;
      if (g.reads[i].size() + g.controls[i].size() > 1) continue;
      join(problem.group[g.producer[v]], problem.group[i]);
    }
    // Per root: its only reader, -1 none yet, -2 several.
    std::vector<int32_t> reader(mask.size(), -1);
    for (int32_t i = 0; i < g.num_nodes(); ++i) {
      const int32_t to = groups.find(problem.group[i]);
      for (const int32_t v : g.reads[i]) {
        const int32_t from = groups.find(problem.group[g.producer[v]]);
        if (from == to || reader[from] == to || g.everywhere[v]) continue;
        reader[from] = reader[from] == -1 ? to : -2;
      }
    }
    for (int32_t u = 0; u < problem.num_groups; ++u) {
      if (!limited && groups.find(u) == u && reader[u] >= 0) join(reader[u], u);
    }
    std::vector<int32_t> number(mask.size(), -1);
    unit.resize(g.num_nodes());
    for (int32_t i = 0; i < g.num_nodes(); ++i) {
      const int32_t root = groups.find(problem.group[i]);
      if (number[root] < 0) {
        number[root] = num_units++;
        allowed.push_back(mask[root]);
      }
      unit[i] = number[root];
    }
  }

  void collect_units() {
    const SimulatedGraph& g = problem.graph;
    std::vector<std::vector<int32_t>> all(num_units);
    std::vector<std::vector<int32_t>> timed(all.size());
    resident_bytes.assign(all.size(), 0);
    held_bytes.assign(all.size(), 0);
    for (int32_t i = 0; i < g.num_nodes(); ++i) {
      all[unit[i]].push_back(i);
      if (problem.takes_time(i)) timed[unit[i]].push_back(i);
      const bool source = g.kind[i] == SimulatedGraph::Kind::kSource;
      double& held = held_bytes[unit[i]];
      resident_bytes[unit[i]] += problem.resident_bytes[i];
      held += throughout(problem, i);
      for (const int64_t b : problem.costs.bytes[i]) held += source ? b : 0;
    }
    nodes = Rows<int32_t>(all);
    ops = Rows<int32_t>(timed);
  }

  void collect_neighbours() {
    const SimulatedGraph& g = problem.graph;
    std::vector<std::vector<int32_t>> lists(num_units);
    for (int32_t i = 0; i < g.num_nodes(); ++i) {
      for (const int32_t v : g.reads[i]) {
        const int32_t a = unit[i], b = unit[g.producer[v]];
        if (a == b || g.everywhere[v]) continue;
        lists[a].push_back(b);
        lists[b].push_back(a);
      }
    }
    for (std::vector<int32_t>& list : lists) sort_unique(list);
    neighbours = Rows<int32_t>(lists);
  }

  void collect_ops_around() {
    const SimulatedGraph& g = problem.graph;
    const size_t n = g.num_nodes();
    const int64_t links = g.reads.num_items() + g.controls.num_items();
    const int64_t most = kMaxTies * (links + g.num_nodes());
    int64_t ties = 0;
    std::vector<std::vector<int32_t>> lists(n);
    for (const int32_t i : order) {
      std::vector<int32_t>& list = lists[i];
      const auto add = [&](int32_t j) {
        if (problem.takes_time(j)) {
          list.push_back(j);
        } else {
          list.insert(list.end(), lists[j].begin(), lists[j].end());
        }
      };
      for_each_before(g, i, add);
      sort_unique(list);
      ties += static_cast<int64_t>(list.size());
      if (ties > most) {
        ordered = false;
        return;
      }
    }
    before = Rows<int32_t>(lists);
    for (std::vector<int32_t>& list : lists) list.clear();
    for (int32_t i = 0; i < g.num_nodes(); ++i) {
      if (!problem.takes_time(i)) continue;
      for (const int32_t j : before[i]) lists[j].push_back(i);
    }
    after = Rows<int32_t>(lists);
  }

  void look_at_limits() {
    const CostTable& costs = problem.costs;
    double most = 0, most_workspace = 0;
    for (int32_t i = 0; i < problem.num_ops(); ++i) {
      most += throughout(problem, i);
    }
    for (int32_t v = 0; v < costs.bytes.num_items(); ++v) {
      most += costs.bytes.item(v);
    }
    for (const int64_t w : costs.workspace) {
      most_workspace = std::max(most_workspace, static_cast<double>(w));
    }
    for (const DeviceCost& d : costs.devices) {
      limited |= d.memory_limit > 0 && most + most_workspace > d.memory_limit;
    }
  }
};

// The time to send a value from one device to another.
inline double copy_time(const PlanProblem& p, int32_t from, int32_t to,
                        int64_t bytes) {
  const double us = p.costs.link(from, to).time_us(bytes);
  return us > 0 ? us : 0;
}

}  // namespace berth

#endif  // BERTH_PLANNER_STEP_UNITS_H_
