#include "place/planner/memory_needs.h"

#include <algorithm>
#include <utility>

namespace berth {

using Kind = SimulatedGraph::Kind;

MemoryNeeds::MemoryNeeds(const PlanProblem& p) : p_(p) {
  const SimulatedGraph& g = p.graph;
  held_ = p.resident_bytes;
  if (p.model != PlanModel::kOther) add_sources();
  kept_ = held_;
  if (p.model != PlanModel::kStep) return;
  beside_.resize(static_cast<size_t>(p.num_ops()));
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    if (!p.takes_time(i)) continue;
    beside_[static_cast<size_t>(i)] = values_of(i);
    for (const int32_t v : g.values[i]) {
      if (!g.lives_on[static_cast<size_t>(v)]) continue;
      kept_[static_cast<size_t>(i)] +=
          static_cast<double>(p.costs.bytes.item(v));
    }
  }
}

void MemoryNeeds::add_sources() {
  const PlanProblem& p = p_;
  const SimulatedGraph& g = p.graph;
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (at < g.variable_bytes.size()) {
      held_[at] += static_cast<double>(g.variable_bytes[at]);
    }
    if (p.model != PlanModel::kStep || g.kind[at] != Kind::kSource) continue;
    for (const int32_t v : g.values[i]) {
      held_[at] += static_cast<double>(p.costs.bytes.item(v));
    }
  }
}

double MemoryNeeds::beside(int32_t op, int32_t device) const {
  if (beside_.empty() || !p_.takes_time(op)) return 0;
  if (!(p_.costs.time(op, device).us > 0)) return 0;  // nothing is live
  const auto at = static_cast<size_t>(op);
  double bytes = beside_[at];
  if (!p_.costs.workspace.empty()) {
    bytes += static_cast<double>(
        p_.costs.workspace[at * p_.costs.classes.size() +
                           static_cast<size_t>(
                               p_.costs.devices[static_cast<size_t>(device)]
                                   .device_class)]);
  }
  return bytes;
}

// The values it writes, and those it reads except its group's own. If values
// share bytes only one counts, the smallest if they differ.
double MemoryNeeds::values_of(int32_t op) const {
  const SimulatedGraph& g = p_.graph;
  double bytes = 0;
  for (const int32_t v : g.values[op]) {
    bytes += static_cast<double>(p_.costs.bytes.item(v));
  }
  std::vector<std::pair<int32_t, double>> roots;
  for (const int32_t read : g.reads[op]) {
    if (g.everywhere[static_cast<size_t>(read)]) continue;
    int32_t root = read;
    int32_t from = g.producer[static_cast<size_t>(root)];
    double least = static_cast<double>(p_.costs.bytes.item(read));
    while (g.alias_of[static_cast<size_t>(from)] >= 0) {
      root = g.alias_of[static_cast<size_t>(from)];
      from = g.producer[static_cast<size_t>(root)];
      const auto at = static_cast<size_t>(from);
      least = std::min(least,
                       std::max(static_cast<double>(p_.costs.bytes.item(root)),
                                at < g.variable_bytes.size()
                                    ? static_cast<double>(g.variable_bytes[at])
                                    : 0.0));
    }
    const auto at = static_cast<size_t>(from);
    if (g.kind[at] == Kind::kSource &&
        p_.group[at] == p_.group[static_cast<size_t>(op)]) {
      continue;
    }
    roots.emplace_back(root, least);
  }
  std::sort(roots.begin(), roots.end());
  for (size_t k = 0; k < roots.size(); ++k) {
    if (k == 0 || roots[k].first != roots[k - 1].first) {
      bytes += roots[k].second;
    }
  }
  return bytes;
}

}  // namespace berth
