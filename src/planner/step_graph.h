// StepGraph: what bounds on a step's time see of a problem.
//
// Which op waits for which, the least time of every op on every kind of device,
// and the least time that a value takes when its reader is on another device
// than its producer. All numbers are minima over what is allowed, so what is
// proved with them holds for every plan: contention only adds. Made once per
// problem; then read-only.

#ifndef BERTH_PLANNER_STEP_GRAPH_H_
#define BERTH_PLANNER_STEP_GRAPH_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <ranges>
#include <vector>

#include "base/infinity.h"
#include "planner/packing.h"
#include "simulate/timing_tables.h"

namespace berth {

struct StepGraph {
  // A reader and what it waits for. Copies take the least time of the links
  // between the two ops' devices.
  struct Edge {
    int32_t from, to;
    int64_t bytes;  // of the largest value; -1: nothing is sent
    double cross;   // least time to send the value; infinite: never sent
  };

  explicit StepGraph(const PlanProblem& p)
      : group(p.group),
        num_groups(p.num_groups),
        order(topological_order(p.graph)) {
    find_kinds(p);
    find_links(p);
    find_edges(p);
  }

  int32_t num_ops() const { return static_cast<int32_t>(group.size()); }
  size_t num_kinds() const { return kind_devices.size(); }
  double time_on(int32_t op, size_t kind) const {
    return time[static_cast<size_t>(op) * num_kinds() + kind];
  }

  // Indistinguishable devices: of one class, and allowed to the same ops.
  std::vector<DeviceSet> kind_devices;

  // Per op. Ops that take no time, and are followed by none that do, are left
  // out: they have no edges.
  std::vector<DeviceSet> kinds;  // that it may run on, as bits
  std::vector<double> time;      // [op * kinds + kind]; infinite: not allowed
  std::vector<int32_t> group;
  int32_t num_groups = 0;

  std::vector<Edge> edges;
  Rows<int32_t> in, out;       // per op: edges
  std::vector<int32_t> order;  // ops, none before what it waits for

  // Returns, per op and kind [op * kinds + kind], the earliest that it can
  // start there (`back`: the least time from its end to the step's) by chains
  // of ops, each on the kind of device that is best for the chain. Infinite:
  // not allowed. `raise` may raise the starts of each op by what is known
  // otherwise; those of what it waits for are final then.
  std::vector<double> by_path(
      bool back,
      const std::function<void(int32_t op, std::vector<double>& start)>& raise)
      const {
    const size_t count = num_kinds();
    std::vector<double> start(time.size(), kInfinity);
    std::vector<double> end(time.size(), kInfinity);  // of the chain so far
    std::vector<double> ready(count);
    for (size_t at = 0; at < order.size(); ++at) {
      const int32_t op = order[back ? order.size() - 1 - at : at];
      const size_t first = static_cast<size_t>(op) * count;
      std::fill(ready.begin(), ready.end(), 0.0);
      for (const int32_t number : back ? out[op] : in[op]) {
        add_edge(edges[number], back, end, ready);
      }
      for (size_t k = 0; k < count; ++k) {
        if (kinds[op].has(static_cast<int32_t>(k))) start[first + k] = ready[k];
      }
      raise(op, start);
      for (size_t k = 0; k < count; ++k) {
        end[first + k] = start[first + k] + time[first + k];
      }
    }
    return start;
  }

  // Returns the least time to send `bytes` from a device of one kind to another
  // device of a kind.
  double copy_us(size_t from, size_t to, int64_t bytes) const {
    double us = kInfinity;
    for (const FastLink& l : links_[from * num_kinds() + to]) {
      us = std::min(us, l.latency_us + bytes * l.us_per_byte);
    }
    return std::max(us, 0.0);
  }

 private:
  // Above this many kinds, chains pay the cheapest link of all on every
  // crossing.
  static constexpr size_t kManyKinds = 8;

  void find_kinds(const PlanProblem& p) {
    const std::vector<DeviceSet> allowed = allowed_of_groups(p);
    kind_devices = devices_of_classes(p);
    std::erase(kind_devices, DeviceSet{0});
    std::vector<DeviceSet> masks = allowed;
    sort_unique(masks);
    for (const DeviceSet& mask : masks) {
      for (size_t k = kind_devices.size(); k-- > 0;) {
        const DeviceSet inside = kind_devices[k] & mask;
        if (inside == 0 || inside == kind_devices[k]) continue;
        kind_devices.push_back(kind_devices[k] & ~mask);
        kind_devices[k] = inside;
      }
    }
    const size_t n = p.num_ops();
    kinds.assign(n, 0);
    time.assign(n * num_kinds(), kInfinity);
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      const size_t at = i;
      const DeviceSet mask = allowed[p.group[at]];
      for (size_t k = 0; k < num_kinds(); ++k) {
        if (!(mask & kind_devices[k])) continue;
        kinds[at] |= device_bit(static_cast<int32_t>(k));
        const double us =
            p.takes_time(i) ? p.costs.time(i, kind_devices[k].first()).us : 0;
        time[at * num_kinds() + k] = us;
      }
    }
  }

  void find_links(const PlanProblem& p) {
    for (const DeviceSet& senders : kind_devices) {
      for (const DeviceSet& receivers : kind_devices) {
        std::vector<FastLink> best;
        for (DeviceSet from = senders; from; from.drop_first()) {
          for (DeviceSet to = receivers; to; to.drop_first()) {
            if (from.first() == to.first()) continue;
            const LinkCost& l = p.costs.link(from.first(), to.first());
            add_unless_beaten(best, {l.latency_us, 1 / l.bytes_per_us});
          }
        }
        links_.add(best);
      }
    }
  }

  void find_edges(const PlanProblem& p) {
    const SimulatedGraph& g = p.graph;
    using Kind = SimulatedGraph::Kind;
    // Least copies for (from's kinds, to's kinds, bytes) recur often.
    std::map<std::tuple<DeviceSet, DeviceSet, int64_t>, double> known;
    const auto cross = [&](int32_t from, int32_t to, int64_t bytes) {
      if (bytes < 0) return 0.0;
      const auto [it, fresh] =
          known.try_emplace({kinds[from], kinds[to], bytes}, kInfinity);
      double& least_us = it->second;
      for (DeviceSet a = kinds[from]; fresh && a; a.drop_first()) {
        for (DeviceSet b = kinds[to]; b; b.drop_first()) {
          least_us = std::min(least_us, copy_us(a.first(), b.first(), bytes));
        }
      }
      return least_us;
    };
    // Nodes that take no time, and precede none that do, do not end a step.
    std::vector<uint8_t> matters(p.num_ops(), 0);
    const std::vector<int32_t> all = order_of_ops(p);
    for (const int32_t i : all | std::views::reverse) {
      matters[i] |= p.takes_time(i);
      if (!matters[i] || g.kind[i] == Kind::kTransfer) continue;
      for_each_before(g, i, [&](int32_t b) { matters[b] = 1; });
    }
    std::vector<std::pair<int32_t, int64_t>> from;
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      if (!matters[i] || g.kind[i] == Kind::kTransfer) continue;
      from.clear();
      for (const int32_t v : g.reads[i]) {
        const bool sent = !g.everywhere[v];
        from.emplace_back(g.producer[v], sent ? p.costs.bytes.item(v) : -1);
      }
      for (const int32_t c : g.controls[i]) from.emplace_back(c, -1);
      std::sort(from.begin(), from.end());
      for (size_t k = 0; k < from.size(); ++k) {
        const auto [u, bytes] = from[k];
        if (k + 1 < from.size() && from[k + 1].first == u) continue;
        if (g.kind[u] == Kind::kTransfer) continue;
        edges.push_back({u, i, bytes, cross(u, i, bytes)});
      }
    }
    std::vector<std::vector<int32_t>> ins(p.num_ops()), outs(ins.size());
    for (size_t e = 0; e < edges.size(); ++e) {
      ins[edges[e].to].push_back(e);
      outs[edges[e].from].push_back(e);
    }
    in = Rows<int32_t>(ins);
    out = Rows<int32_t>(outs);
  }

  // When the value of an edge can be on each kind of device.
  void add_edge(const Edge& e, bool back, const std::vector<double>& end,
                std::vector<double>& ready) const {
    const size_t count = num_kinds();
    const double* of = &end[static_cast<size_t>(back ? e.to : e.from) * count];
    const double any = *std::min_element(of, of + count);
    for (size_t k = 0; k < count; ++k) {
      double us = of[k];
      if (count > kManyKinds) us = std::min(us, any + e.cross);
      for (size_t j = 0; count <= kManyKinds && j < count; ++j) {
        // Staying on one device is never worse than changing within a kind.
        if (j == k || !(of[j] < us)) continue;
        const double copy = e.bytes < 0 ? 0
                            : back      ? copy_us(k, j, e.bytes)
                                        : copy_us(j, k, e.bytes);
        us = std::min(us, of[j] + copy);
      }
      ready[k] = std::max(ready[k], us);
    }
  }

  Rows<FastLink> links_;  // [from * kinds + to]: links that no other beats
};

// Joined starts: when ops can start, by chains and by what shares their device.
//
// A value that changed devices on the way to an op may come too late for it:
// then its producer is on the op's device, and so may be what that waits for.
// Ops on one device run one after the other, which takes longer than the chains
// that they form. Considers the nearest ops only, so its time is linear in the
// size of the graph. A pure function.
//
// Returns, per op and kind [op * kinds + kind], a time before which it cannot
// start there (`back`: the least time from its end to the step's); infinite:
// not allowed. At least StepGraph::by_path().
std::vector<double> joined_starts(const StepGraph& graph, bool back);

}  // namespace berth

#endif  // BERTH_PLANNER_STEP_GRAPH_H_
