// Checks a "packing" witness (docs/formats.md): no set of groups that fits a
// device is worth more than the device's price, while all groups together are
// worth more than all devices.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/infinity.h"
#include "place/planner/check.h"
#include "place/planner/check_flow.h"

namespace berth {

namespace {

constexpr double kGrid = 20000;  // loads that are distinguished
constexpr size_t kMostStates = 1000000;
constexpr size_t kMostLabels = 20000000;
using Numbers = std::vector<double>;

// A value that several groups hold, its producer's first, and what a device of
// a kind pays when only the others, or only some of them, are on it.
struct Net {
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
      for (const double x : array) {
        if (!std::isfinite(x)) return name + " has a number that is none";
      }
    }
    if (int(worth.size()) != n_ || int(a_["kind"].size()) != m_ ||
        a_["weights"].size() != 3 || !(t_ > 0) || kinds_ > m_) {
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
    if (std::string wrong = add_sizes(); !wrong.empty()) return wrong;
    add_nets();
    for (int k = 0; k < kinds_; ++k) {
      const bool by_size = a_.count("q") > 0;
      const std::string wrong = by_size ? check_sizes(k) : check_sets(k);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  // The least that a group takes of a device of each kind.
  std::string add_sizes() {
    const double copies = a_["weights"][0], memory = a_["weights"][1];
    const double memory_at = a_["weights"][2];
    if (!(copies >= 0 && copies <= 1 && memory >= 0 && memory <= 1 &&
          memory_at >= 0 && memory_at <= t_)) {
      return "weights are not those of an average";
    }
    Numbers bytes(n_, 0);
    std::vector<Numbers> us(m_, Numbers(n_, 0));
    for (int i = 0; i < p_.num_ops(); ++i) {
      const int u = p_.group[i];
      bytes[u] += p_.resident_bytes[i];
      if (!p_.graph.variable_bytes.empty()) {
        bytes[u] += double(p_.graph.variable_bytes[i]);
      }
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
      const bool engine =
          p_.touch_us.empty() && device.copies == CopyRule::kOverlap;
      const double m = limit < kInfinity ? memory : 0;
      const double c = engine ? copies * (1 - m) : 0;
      rate_.push_back(1 - m - c);
      engine_rate_.push_back(engine ? c : 1 - m);
      for (int u = 0; u < n_; ++u) {
        if (bytes[u] > limit || us[d][u] == kInfinity) continue;
        double& size = size_[int(a_["kind"][d])][u];
        const double of_memory = m > 0 ? m * memory_at * bytes[u] / limit : 0;
        size = std::min(size, rate_[d] * us[d][u] + of_memory);
      }
    }
    return "";
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
      Net net = {
          {head}, Numbers(kinds_, kInfinity), Numbers(kinds_, kInfinity)};
      net.pins.insert(net.pins.end(), holders[v].begin(), holders[v].end());
      const double bytes = double(p_.costs.bytes.item(int(v)));
      for (int d = 0; d < m_; ++d) {
        const CopyRule rule = p_.costs.devices[d].copies;
        double in = 0, out = 0;
        if (!p_.touch_us.empty()) {
          if (!p_.free_of_touch[d]) in = out = rate_[d] * p_.touch_us[v];
        } else {
          if (rule != CopyRule::kFree) {
            in = engine_rate_[d] * copy_us(into[d], bytes);
          }
          if (rule == CopyRule::kBoth) out = rate_[d] * copy_us(from[d], bytes);
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
      if (size == kInfinity || worth * t_ <= price * size) continue;
      if (!(q >= 0 && q <= 1)) return "a q is not from 0 to 1";
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
    for (const Net& n : nets_) {
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

  // --- All sets at once, group by group in the order: of earlier groups only
  // the states of open nets matter; each keeps its best loads and worths.

  struct Link {
    int from;
    bool in;
    double load;
  };
  using Layer = std::vector<std::vector<Link>>;  // per state: its origin

  std::string check_sets(int k) const {
    const auto given = a_.find("order");
    std::vector<int> at(n_, -1), order;
    for (const double u : given == a_.end() ? Numbers() : given->second) {
      if (!(u >= 0 && u < n_) || at[int(u)] >= 0) return "an order is none";
      at[int(u)] = int(order.size());
      order.push_back(int(u));
    }
    if (int(order.size()) != n_) return "the order lacks groups";
    const std::vector<Layer> layers = all_layers(k, at, order);
    if (layers.empty()) return "the order has too many states";
    const double price = a_.at("price")[k];
    const Numbers& worth = a_.at("worth");
    // What may still come, at several prices of load: any bound is valid.
    std::vector<std::vector<Numbers>> rest;
    for (const double share : {0.3, 0.6, 0.8, 0.9, 1.0, 1.1, 1.25, 1.6}) {
      const double per_load = share * price / t_;
      rest.push_back({Numbers(layers.back().size(), 0)});
      for (int i = n_ - 1; i >= 0; --i) {
        const Numbers& after = rest.back().back();
        Numbers now(i > 0 ? layers[i - 1].size() : 1, -kInfinity);
        for (size_t s = 0; s < after.size(); ++s) {
          for (const Link& l : layers[i][s]) {
            now[l.from] =
                std::max(now[l.from], after[s] + (l.in ? worth[order[i]] : 0) -
                                          per_load * l.load);
          }
        }
        rest.back().push_back(std::move(now));
      }
      rest.back().push_back({per_load});
    }
    using Label = std::pair<double, double>;  // load, worth
    std::vector<std::vector<Label>> before = {{{0, 0}}}, now;
    size_t labels = 0;
    for (int i = 0; i < n_; ++i) {
      now.assign(layers[i].size(), {});
      for (size_t s = 0; s < now.size(); ++s) {
        std::vector<Label> all;
        for (const Link& l : layers[i][s]) {
          for (const Label& b : before[l.from]) {
            const Label next = {b.first + l.load,
                                b.second + (l.in ? worth[order[i]] : 0)};
            double most = next.first > t_ ? -kInfinity : kInfinity;
            for (const std::vector<Numbers>& r : rest) {
              most = std::min(most, next.second + r[n_ - 1 - i][s] +
                                        r.back()[0] * (t_ - next.first));
            }
            if (most > price) all.push_back(next);
          }
        }
        if ((labels += all.size()) > kMostLabels) return "too many sets";
        std::sort(all.begin(), all.end());
        // Merges similar loads into the least load and the most worth of them.
        for (const Label& l : all) {
          if (now[s].empty() || l.first > now[s].back().first + t_ / kGrid) {
            if (now[s].empty() || l.second > now[s].back().second) {
              now[s].push_back(l);
            }
          } else {
            now[s].back().second = std::max(now[s].back().second, l.second);
          }
        }
      }
      before.swap(now);
    }
    for (const std::vector<Label>& last : before) {
      for (const Label& l : last) {
        if (l.second > price) return "a set is worth more than its device";
      }
    }
    return "";
  }

  std::vector<Layer> all_layers(int k, const std::vector<int>& at,
                                const std::vector<int>& order) const {
    std::vector<Net> nets;
    std::vector<std::vector<int>> of(n_);
    std::vector<int> last;
    for (Net n : nets_) {
      if (n.in[k] <= 0 && n.out[k] <= 0) continue;
      // If both cost the same, any may stand for the producer.
      const auto first =
          std::min_element(n.pins.begin(), n.pins.end(),
                           [&](int a, int b) { return at[a] < at[b]; });
      if (n.in[k] == n.out[k]) std::iter_swap(n.pins.begin(), first);
      last.push_back(0);
      for (const int u : n.pins) {
        of[u].push_back(int(nets.size()));
        last.back() = std::max(last.back(), at[u]);
      }
      nets.push_back(std::move(n));
    }
    std::vector<Layer> layers;
    using State = std::map<int, char>;
    struct To {
      int number;
      double least;  // least load to reach
    };
    std::map<State, To> states = {{State(), {0, 0}}}, next;
    size_t all = 0;
    for (int i = 0; i < n_; ++i) {
      const int u = order[i];
      next.clear();
      layers.emplace_back();
      for (const auto& [state, from] : states) {
        for (const bool in : {false, true}) {
          if (in && size_[k][u] == kInfinity) continue;
          std::map<int, char> after = state;
          double load = in ? size_[k][u] : 0;
          for (const int n : of[u]) {
            load += take(nets[n], k, u == nets[n].pins[0], in, after[n]);
            if (last[n] == i) after.erase(n);
          }
          const double sum = from.least + load;
          if (sum > t_ * (1 + 1e-9)) continue;
          To& to = next.try_emplace(std::move(after),
                                    To{int(layers[i].size()), kInfinity})
                       .first->second;
          to.least = std::min(to.least, sum);
          layers[i].resize(next.size());
          layers[i][to.number].push_back({from.number, in, load});
        }
      }
      if ((all += next.size()) > kMostStates) return {};
      states.swap(next);
    }
    return layers;
  }

  // Adds a pin of a net; returns the payment that this causes. Bits: the head
  // is in, is out, another is in, another is out; all: nothing more is paid.
  static double take(const Net& n, int k, bool head, bool in, char& state) {
    if (state == 15) return 0;
    state |= char((in ? 1 : 2) << (head ? 0 : 2));
    if (!(state & 3)) return 0;
    const double cost = state & 1 ? n.out[k] : n.in[k];
    const bool paid = state & (state & 1 ? 8 : 4);
    state = paid || cost <= 0 ? 15 : char(state & 3);
    return paid ? cost : 0;
  }

  const PlanProblem& p_;
  const double t_;
  int n_ = 0, m_ = 0, kinds_ = 0;
  std::map<std::string, Numbers> a_;
  std::vector<Numbers> size_;   // per kind, per group
  Numbers rate_, engine_rate_;  // per device: for computing, for copies in
  std::vector<Net> nets_;
};

}  // namespace

std::string check_packing(const PlanProblem& problem, const Witness& witness) {
  if (witness.kind != "packing") return "the witness is of another kind";
  return Check(problem, witness).run();
}

}  // namespace berth
