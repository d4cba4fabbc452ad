#include "planner/step_units.h"

#include <algorithm>

#include "place/disjoint_sets.h"
#include "simulate/timing_tables.h"

namespace berth {

namespace {

// Links between ops that nodes without time may make, per link in the graph.
constexpr int64_t kMaxTies = 8;

// Bytes that a node holds from beginning to end.
double throughout(const PlanProblem& p, int32_t i) {
  return p.resident_bytes[i] + static_cast<double>(p.graph.variable_bytes[i]);
}

}  // namespace

StepUnits::StepUnits(const PlanProblem& p) : problem(p) {
  order = topological_order(p.graph);
  for (const int32_t i : order) num_ops += p.takes_time(i);
  look_at_limits();
  join_nodes();
  collect_units();
  collect_neighbours();
  collect_ops_around();
}

bool StepUnits::keeps(const PlacePlan& plan) const {
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

void StepUnits::place_rest(std::vector<int32_t>& device,
                           int32_t otherwise) const {
  for (int32_t u = 0; u < num_units; ++u) {
    if (device[u] >= 0) continue;
    for (const int32_t other : neighbours[u]) {
      const int32_t d = device[other];
      if (d >= 0 && allowed[u].has(d)) device[u] = d;
    }
    if (device[u] < 0) device[u] = near(u, otherwise);
  }
}

// Aliases join the unit of what only they read, sources that of their only
// reader, if that allows no more devices, so that nothing is lost. (With other
// readers an alias may be better off on their device, where one copy serves
// both; under limits a source may be better off on another one.)
void StepUnits::join_nodes() {
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

void StepUnits::collect_units() {
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

void StepUnits::collect_neighbours() {
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

void StepUnits::collect_ops_around() {
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

void StepUnits::look_at_limits() {
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
    limited |= d.memory_limit > 0 &&
               most + most_workspace > static_cast<double>(d.memory_limit);
  }
}

}  // namespace berth
