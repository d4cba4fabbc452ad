// Checks a "path" witness (docs/formats.md): the longest path, the largest
// group, and the work of all devices at the weights given.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/infinity.h"
#include "planner/check.h"

namespace berth {

namespace {

constexpr double kUp = 1 + 1e-12;  // for rounding
// What an op's nearest ops on its device imply.
constexpr int kNearest = 64, kRounds = 80;

// Devices are told apart by their class and by the ops that they allow: a chain
// never pays to change within a kind, and between kinds it takes the cheapest
// of all their links.
class Paths {
 public:
  Paths(const PlanProblem& p, const std::vector<double>& weight)
      : p_(p), n_(p.num_ops()) {
    find_kinds(weight);
    std::vector<std::vector<uint8_t>> able(
        m_, std::vector<uint8_t>(p.num_groups, 1));
    for (int x = 0; x < n_ * m_; ++x) {
      const int i = x / m_, d = first_[x % m_];
      time_.push_back(p.takes_time(i) ? p.costs.time(i, d).us : 0);
      if (!(time_[x] < kInfinity && p.allowed[i].has(d))) {
        able[x % m_][p.group[i]] = 0;
      }
    }
    for (int x = 0; x < n_ * m_; ++x) {
      if (!able[x % m_][p.group[x / m_]]) time_[x] = kInfinity;
    }
    set_edges();
    for (const bool back : {false, true}) {
      depth_.assign(n_, 0);
      to_start_.assign(n_, -1);
      set_path(back);
    }
  }

  // The highest bound that all this proves.
  double bound() const {
    double bound = 0, sum = 0, all = 0;
    for (int i = 0; i < n_; ++i) {
      const double us = through(i);
      if (us < kInfinity) bound = std::max(bound, us);
    }
    std::vector<double> of_group(p_.num_groups * m_, 0);
    for (int x = 0; x < n_ * m_; ++x) {
      of_group[p_.group[x / m_] * m_ + x % m_] += time_[x];
    }
    for (int group = 0; group < p_.num_groups; ++group) {
      double us = kInfinity, worth = kInfinity;
      for (int d = 0; d < m_; ++d) {
        const double own = of_group[group * m_ + d];
        if (own == kInfinity) continue;
        us = std::min(us, own);
        worth = std::min(worth, least_weight_[d] * own);
      }
      if (us == kInfinity) continue;
      bound = std::max(bound, us);
      sum += worth;
    }
    for (const double weight : weight_) all += weight;
    return all > 0 ? std::max(bound, sum / all) : bound;
  }

 private:
  struct Edge {
    int op;
    double bytes;  // -1: nothing is sent
  };

  void find_kinds(const std::vector<double>& weight) {
    const std::set<DeviceSet> masks(p_.allowed.begin(), p_.allowed.end());
    std::vector<int> kind;  // per device
    for (int d = 0; d < p_.num_devices(); ++d) {
      int k = 0;
      while (k < m_ && !alike(d, first_[k], masks)) ++k;
      if (k == m_) {
        ++m_;
        first_.push_back(d);
        least_weight_.push_back(kInfinity);
        weight_.push_back(0);
      }
      kind.push_back(k);
      weight_[k] += weight[d];
      least_weight_[k] = std::min(least_weight_[k], weight[d]);
    }
    links_.resize(m_ * m_);
    for (int a = 0; a < p_.num_devices(); ++a) {
      for (int b = 0; b < p_.num_devices(); ++b) {
        if (a == b) continue;
        add_unbeaten(links_[kind[a] * m_ + kind[b]], p_.costs.link(a, b));
      }
    }
  }
  bool alike(int d, int e, const std::set<DeviceSet>& masks) const {
    return p_.costs.devices[d].device_class ==
               p_.costs.devices[e].device_class &&
           std::ranges::all_of(
               masks, [&](const DeviceSet& m) { return m.has(d) == m.has(e); });
  }
  void set_edges() {
    const SimulatedGraph& g = p_.graph;
    for (auto& of : edges_) of.resize(n_);
    std::vector<size_t> missing(n_, 0);
    const auto add = [&](int u, int i, double bytes) {
      if (g.kind[u] == SimulatedGraph::Kind::kTransfer) return;
      edges_[0][i].push_back({u, bytes});
      edges_[1][u].push_back({i, bytes});
      ++missing[i];
    };
    for (int i = 0; i < n_; ++i) {
      if (g.kind[i] == SimulatedGraph::Kind::kTransfer) continue;
      for (const int v : g.reads[i]) {
        const double bytes = p_.costs.bytes.item(v);
        add(g.producer[v], i, g.everywhere[v] ? -1 : bytes);
      }
      for (const int c : g.controls[i]) add(c, i, -1);
    }
    for (int i = 0; i < n_; ++i) {
      if (missing[i] == 0) order_.push_back(i);
    }
    for (size_t k = 0; k < order_.size(); ++k) {
      for (const Edge& e : edges_[1][order_[k]]) {
        if (--missing[e.op] == 0) order_.push_back(e.op);
      }
    }
    // Nodes that take no time, and precede none that do, do not end a step.
    for (int k = n_ - 1; k >= 0; --k) {
      auto& after = edges_[1][order_[k]];
      std::erase_if(after, [&](const Edge& e) {
        return edges_[1][e.op].empty() && !p_.takes_time(e.op);
      });
    }
    for (int i = 0; i < n_; ++i) {
      if (edges_[1][i].empty() && !p_.takes_time(i)) edges_[0][i].clear();
    }
  }

  double ready(bool back, int i, int d) const {
    return ready_[back][i * m_ + d];
  }
  // The least over devices of an op's end.
  double soonest(bool back, int i) const {
    double us = kInfinity;
    for (int d = 0; d < m_; ++d) {
      us = std::min(us, ready(back, i, d) + time_[i * m_ + d]);
    }
    return us;
  }
  // The longest path through the op.
  double through(int i) const {
    double us = kInfinity;
    for (int d = 0; d < m_; ++d) {
      us = std::min(us,
                    ready(false, i, d) + time_[i * m_ + d] + ready(true, i, d));
    }
    return us;
  }
  // The least time between two devices of these kinds.
  double copy(double bytes, int from, int to) const {
    double us = kInfinity;
    for (const LinkCost& link : links_[from * m_ + to]) {
      us = std::min(us, link.time_us(static_cast<int64_t>(bytes)));
    }
    return std::max(us, 0.0);
  }
  // The least time from one op's device to another op's device.
  double cross(const Edge& e, int i, bool back) const {
    double us = e.bytes < 0 ? 0 : kInfinity;
    for (int a = 0; a < m_ && us > 0; ++a) {
      for (int b = 0; b < m_; ++b) {
        if (time_[e.op * m_ + a] + time_[i * m_ + b] == kInfinity) continue;
        us = std::min(us, copy(e.bytes, back ? b : a, back ? a : b));
      }
    }
    return us;
  }

  // The longest chains of ops, each on the device that is best for its chain,
  // and what must share an op's device.
  void set_path(bool back) {
    ready_[back].resize(time_.size());
    for (int k = 0; k < n_; ++k) {
      const int i = order_[back ? n_ - 1 - k : k];
      for (const Edge& e : edges_[back][i]) {
        depth_[i] = std::max(depth_[i], depth_[e.op] + 1);
      }
      for (int d = 0; d < m_; ++d) {
        double& start = ready_[back][i * m_ + d] =
            time_[i * m_ + d] < kInfinity ? 0 : kInfinity;
        for (const Edge& e : edges_[back][i]) {
          double us = kInfinity;
          for (int c = 0; c < m_; ++c) {
            const double end = ready(back, e.op, c) + time_[e.op * m_ + c];
            if (!(end < us)) continue;
            const bool stays = c == d || e.bytes < 0;
            us = std::min(
                us,
                end + (stays ? 0 : copy(e.bytes, back ? d : c, back ? c : d)));
          }
          start = std::max(start, us);
        }
        for (int round = 0; round < kRounds; ++round) {
          const double later = start_after_joined(back, i, d, start);
          if (!(later > start && later < kInfinity)) break;
          start = later;
        }
      }
    }
  }

  // If op i starts by `us` on device d: what cannot be elsewhere is before it
  // on d, in a row. Returns the start that this leaves, or the one from which
  // on something can be elsewhere, if that is sooner.
  double start_after_joined(bool back, int i, int d, double us) {
    struct Joined {
      int op;
      double head, time, lag;
    };
    std::vector<Joined> joined;
    std::set<std::pair<int, int>> near;  // by depth
    to_start_[i] = 0;
    double until = kInfinity;
    for (int next = i; joined.size() <= kNearest;) {
      for (const Edge& e : edges_[back][next]) {
        if (to_start_[next] >= 0) near.emplace(depth_[e.op], e.op);
      }
      if (near.empty()) break;
      next = near.extract(std::prev(near.end())).value().second;
      double lag = 0, arrives = 0;
      for (const Edge& e : edges_[!back][next]) {
        const double after = to_start_[e.op];
        if (after < 0) continue;
        const Edge sent = {next, e.bytes};
        lag = std::max(lag, after);
        arrives = std::max(
            arrives, soonest(back, next) + cross(sent, e.op, back) + after);
      }
      if (!(arrives > us * kUp)) continue;
      until = std::min(until, arrives);
      const double own = time_[next * m_ + d];
      to_start_[next] = lag + own;
      joined.push_back({next, ready(back, next, d), own, lag});
    }
    to_start_[i] = -1;
    std::ranges::sort(joined, std::greater(), &Joined::head);
    double sum = 0, lag = kInfinity, soonest = 0;
    for (const Joined& j : joined) {
      to_start_[j.op] = -1;
      sum += j.time;
      lag = std::min(lag, j.lag);
      soonest = std::max(soonest, j.head + sum + lag);
    }
    return std::min(soonest, until);
  }

  const PlanProblem& p_;
  const int n_;
  int m_ = 0;                                  // kinds of devices
  std::vector<int> first_;                     // per kind: of its devices
  std::vector<double> weight_, least_weight_;  // of all of them; of any
  std::vector<std::vector<LinkCost>> links_;   // [from * m_ + to]
  // [op * m_ + kind]
  std::vector<double> time_, ready_[2];
  std::vector<std::vector<Edge>> edges_[2];  // of predecessors; of successors
  std::vector<int> order_, depth_;
  // The longest chain from the start of what start_after_joined() found to its
  // op; -1: others.
  std::vector<double> to_start_;
};

}  // namespace

std::string check_path(const PlanProblem& p, const Witness& w) {
  if (w.arrays.size() != 1 || w.arrays[0].first != "weight") {
    return "expected the array \"weight\"";
  }
  const std::vector<double>& weight = w.arrays[0].second;
  if (weight.size() != p.costs.devices.size()) {
    return "weight has another length";
  }
  for (const double x : weight) {
    if (!(x >= 0 && x < kInfinity)) return "weight: " + std::to_string(x);
  }
  const double shown = Paths(p, weight).bound();
  if (shown >= w.target) return "";
  return fmt::format("paths and work show {}, not {}", shown, w.target);
}

}  // namespace berth
