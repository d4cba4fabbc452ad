// Checks a "packing" witness (docs/formats.md): no set of groups that fits a
// device is worth more than the device's price, while all groups together are
// worth more than all devices.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/infinity.h"
#include "planner/check.h"

namespace berth {

namespace {

// Flows: paths are augmented one by one, the shortest first. The provers have
// MaxFlow.
struct CheckNetwork {
  struct Arc {
    int to;
    double room;
  };
  std::vector<Arc> arcs;             // a and a ^ 1: both directions
  std::vector<std::vector<int>> of;  // per node: arcs from it

  int node() { return of.emplace_back(), static_cast<int>(of.size()) - 1; }
  void add(int a, int b, double there, double back) {
    of[a].push_back(static_cast<int>(arcs.size()));
    of[b].push_back(static_cast<int>(arcs.size()) + 1);
    arcs.insert(arcs.end(), {{b, there}, {a, back}});
  }

  // Returns a flow of at least `enough`, or the greatest. Room up to `none`
  // counts as used up.
  double flow(int from, int to, double enough, double none) {
    double sum = 0;
    while (sum < enough) {
      std::vector<int> by(of.size(), -1), queue = {from};
      for (size_t i = 0; i < queue.size() && by[to] < 0; ++i) {
        for (const int a : of[queue[i]]) {
          const Arc& arc = arcs[a];
          if (arc.room <= none || by[arc.to] >= 0 || arc.to == from) continue;
          by[arc.to] = a;
          queue.push_back(arc.to);
        }
      }
      if (by[to] < 0) break;
      double part = kInfinity;
      for (int v = to; v != from; v = arcs[by[v] ^ 1].to) {
        part = std::min(part, arcs[by[v]].room);
      }
      if (part == kInfinity) return part;
      for (int v = to; v != from; v = arcs[by[v] ^ 1].to) {
        arcs[by[v]].room -= part;
        arcs[by[v] ^ 1].room += part;
      }
      sum += part;
    }
    return sum;
  }
};

using Numbers = std::vector<double>;

// A value that several groups hold, its producer's first, and what a device of
// a kind pays when only the others, or only some of them, are on it.
struct CheckedNet {
  std::vector<int> pins;
  Numbers in, out;  // per kind
};

class Check {
 public:
  Check(const PlanProblem& p, const Witness& w) : p_(p), t_(w.target) {
    for (const auto& [name, array] : w.arrays) a_[name] = array;
    n_ = p.num_groups, m_ = p.num_devices();
    kinds_ = int(a_["price"].size());
  }

  std::string run() {
    const Numbers& worth = a_["worth"];
    const Numbers& price = a_["price"];
    for (const auto& [name, array] : a_) {
      if (name != "worth" && name != "price" && name != "kind" && name != "q") {
        return "packing has no array \"" + name + "\"";
      }
      for (const double x : array) {
        if (!std::isfinite(x)) return name + " has a number that is none";
      }
    }
    if (int(worth.size()) != n_ || int(a_["kind"].size()) != m_ || !(t_ > 0) ||
        kinds_ > m_) {
      return "arrays lack numbers";
    }
    double sum = 0;
    for (const double k : a_["kind"]) {
      if (!(k >= 0 && k < kinds_ && k == int(k))) return "a kind is none";
      if (!(price[int(k)] >= 0)) return "a price is negative";
      sum += price[int(k)];
    }
    if (!(std::accumulate(worth.begin(), worth.end(), 0.0) > sum)) {
      return "all groups are worth no more than all devices";
    }
    add_sizes();
    add_nets();
    for (int k = 0; k < kinds_; ++k) {
      const bool by_size = a_.count("q") > 0;
      const std::string wrong = by_size ? check_sizes(k) : check_count(k);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  // The least that a group takes of a device of each kind.
  void add_sizes() {
    Numbers bytes(n_, 0);
    std::vector<Numbers> us(m_, Numbers(n_, 0));
    for (int i = 0; i < p_.num_ops(); ++i) {
      const int u = p_.group[i];
      bytes[u] += p_.resident_bytes[i];
      bytes[u] += double(p_.graph.variable_bytes[i]);
      for (int d = 0; d < m_; ++d) {
        if (p_.takes_time(i)) us[d][u] += p_.costs.time(i, d).us;
        if (!p_.allowed[i].has(d)) us[d][u] = kInfinity;
      }
    }
    size_.assign(kinds_, Numbers(n_, kInfinity));
    for (int d = 0; d < m_; ++d) {
      const DeviceCost& device = p_.costs.devices[d];
      const double limit =
          device.memory_limit > 0 ? double(device.memory_limit) : kInfinity;
      for (int u = 0; u < n_; ++u) {
        if (bytes[u] > limit || us[d][u] == kInfinity) continue;
        double& size = size_[int(a_["kind"][d])][u];
        size = std::min(size, us[d][u]);
      }
    }
  }

  // Returns the links from or to a device that no other beats.
  std::vector<LinkCost> fastest_links(int d, bool from) const {
    std::vector<LinkCost> best;
    for (int e = 0; e < m_; ++e) {
      if (e == d) continue;
      LinkCost link = from ? p_.costs.link(d, e) : p_.costs.link(e, d);
      const bool free = from && p_.costs.devices[e].copies == CopyRule::kFree;
      if (free) link.latency_us = 0, link.bytes_per_us = kInfinity;
      add_unbeaten(best, link);
    }
    return best;
  }
  // The least time of a copy over one of them.
  double copy_us(const std::vector<LinkCost>& links, double bytes) const {
    double least = m_ > 1 ? kInfinity : 0;
    for (const LinkCost& l : links) {
      least = std::min(least, l.latency_us + bytes / l.bytes_per_us);
    }
    return least;
  }

  void add_nets() {
    const SimulatedGraph& g = p_.graph;
    std::vector<std::set<int>> holders(g.producer.size());
    for (int i = 0; i < p_.num_ops(); ++i) {
      for (int v : g.reads[i]) {
        for (int of;
             (of = g.alias_of[g.producer[v]]) >= 0 && !g.everywhere[of];)
          v = of;
        if (!g.everywhere[v]) holders[v].insert(p_.group[i]);
      }
    }
    std::vector<std::vector<LinkCost>> into, from;  // per device
    for (int d = 0; d < m_; ++d) {
      into.push_back(fastest_links(d, false));
      from.push_back(fastest_links(d, true));
    }
    for (size_t v = 0; v < holders.size(); ++v) {
      const int head = p_.group[g.producer[v]];
      holders[v].erase(head);
      if (holders[v].empty()) continue;
      CheckedNet net = {
          {head}, Numbers(kinds_, kInfinity), Numbers(kinds_, kInfinity)};
      net.pins.insert(net.pins.end(), holders[v].begin(), holders[v].end());
      const double bytes = double(p_.costs.bytes.item(int(v)));
      for (int d = 0; d < m_; ++d) {
        const CopyRule rule = p_.costs.devices[d].copies;
        double in = 0, out = 0;
        if (!p_.touch_us.empty()) {
          if (!p_.free_of_touch[d]) in = out = p_.touch_us[v];
        } else {
          const bool itself =
              rule == CopyRule::kReceiving || rule == CopyRule::kBoth;
          if (itself) in = copy_us(into[d], bytes);
          if (rule == CopyRule::kBoth) out = copy_us(from[d], bytes);
        }
        const int k = int(a_["kind"][d]);
        net.in[k] = std::min(net.in[k], in);
        net.out[k] = std::min(net.out[k], out);
      }
      nets_.push_back(std::move(net));
    }
  }

  // --- Single groups: made larger by the minimum cut around each; q gives the
  // rate per size and the share of the price.

  std::string check_sizes(int k) {
    if (int(a_["q"].size()) != n_ * kinds_) return "a q is missing";
    const CheckNetwork empty = network(k);
    for (int u = 0; u < n_; ++u) {
      const double worth = a_["worth"][u], price = a_["price"][k];
      const double size = size_[k][u], q = a_["q"][u * kinds_ + k];
      if (!(q <= 1 && (q >= 0 || q == -1))) return "a q is not from 0 to 1";
      if (size == kInfinity || worth * t_ <= price * size) continue;
      if (q < 0) return "a q is missing";
      const double needed = t_ - size * (1 - q) * price / worth;
      CheckNetwork net = empty;
      for (int v = 0; v < n_; ++v) net.arcs[2 * v].room = q * size_[k][v];
      if (net.flow(u, n_, needed, 1e-12 * t_) < needed * (1 - 1e-9)) {
        return "group " + std::to_string(u) + " is worth more than it takes";
      }
    }
    return "";
  }

  CheckNetwork network(int k) const {
    CheckNetwork net;
    net.of.resize(n_ + 1);
    for (int u = 0; u < n_; ++u) net.add(u, n_, 0, 0);  // arc 2 u: its size
    for (const CheckedNet& n : nets_) {
      if (n.in[k] <= 0 && n.out[k] <= 0) continue;
      const int to = int(net.of.size());
      net.of.resize(net.of.size() + 2);
      net.add(to, n.pins[0], n.in[k], 0);
      net.add(n.pins[0], to + 1, n.out[k], 0);
      for (size_t i = 1; i < n.pins.size(); ++i) {
        net.add(n.pins[i], to, kInfinity, 0);
        net.add(to + 1, n.pins[i], kInfinity, 0);
      }
    }
    return net;
  }

  // No group is worth more than 1, and no more than the price of the smallest
  // of those with a worth fit together.
  std::string check_count(int k) {
    Numbers sizes;
    for (int u = 0; u < n_; ++u) {
      if (a_["worth"][u] > 1) return "a group counts as more than one";
      if (a_["worth"][u] > 0) sizes.push_back(size_[k][u]);
    }
    std::sort(sizes.begin(), sizes.end());
    const double price = a_["price"][k];
    double sum = 0;
    for (size_t i = 0; i < sizes.size() && sum <= t_; ++i) {
      sum += sizes[i];
      if (sum <= t_ && double(i + 1) > price) {
        return "more groups fit than the price of a device";
      }
    }
    return "";
  }

  const PlanProblem& p_;
  const double t_;
  int n_ = 0, m_ = 0, kinds_ = 0;
  std::map<std::string, Numbers> a_;
  std::vector<Numbers> size_;  // per kind, per group
  std::vector<CheckedNet> nets_;
};

}  // namespace

std::string check_packing(const PlanProblem& problem, const Witness& witness) {
  if (witness.kind != "packing") return "the witness is of another kind";
  return Check(problem, witness).run();
}

}  // namespace berth
