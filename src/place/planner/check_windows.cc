// Follows the deductions of a "windows" witness (docs/formats.md) one by one.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/infinity.h"
#include "place/planner/check.h"

namespace berth {

namespace {

constexpr double kUp = 1 + 1e-12;  // for rounding
// Known initially of an op: what its nearest ops on its device imply.
constexpr int kNearest = 64, kRounds = 80;

struct Row {  // docs/formats.md
  bool back;
  int target;
  double t, from, until, size;
};

// Devices are told apart by their class and by the ops that they allow: a chain
// never pays to change within a kind, and between kinds it takes the cheapest
// of all their links.
class Follow {
 public:
  Follow(const PlanProblem& p, const std::vector<double>& weight)
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
      known_[back].assign(n_ * m_, 0);
      depth_.assign(n_, 0);
      to_start_.assign(n_, -1);
      set_path(back, true);
      known_[back] = ready_[back];
    }
  }

  // The highest bound that the rows prove, up to the first wrong one.
  double follow(const std::vector<Row>& rows) {
    double bound = 0;
    for (const Row& r : rows) {
      if (!refutes(r)) break;
      if (r.target < 0) {
        bound = std::max(bound, r.t);
      } else {
        for (int d = 0; d < m_; ++d) {
          double& known = known_[r.back][r.target * m_ + d];
          known = std::max(known, r.t);
        }
        set_path(r.back, false);
      }
    }
    for (int i = 0; i < n_; ++i) {
      const double us = soonest(false, i, true);
      if (us < kInfinity) bound = std::max(bound, us);
    }
    return bound;
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
        count_.push_back(0);
        weight_.push_back(0);
      }
      kind.push_back(k);
      ++count_[k];
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
  double least(int i) const {
    return *std::min_element(&time_[i * m_], &time_[i * m_] + m_);
  }
  // The least over devices of an op's end; `whole`: plus what follows it.
  double soonest(bool back, int i, bool whole) const {
    double us = kInfinity;
    for (int d = 0; d < m_; ++d) {
      us = std::min(us, ready(back, i, d) + time_[i * m_ + d] +
                            (whole ? ready(!back, i, d) : 0));
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

  // The longest chains of ops, each on the device that is best for its chain;
  // `join`: and what must share an op's device.
  void set_path(bool back, bool join) {
    ready_[back].resize(time_.size());
    for (int k = 0; k < n_; ++k) {
      const int i = order_[back ? n_ - 1 - k : k];
      for (const Edge& e : edges_[back][i]) {
        depth_[i] = std::max(depth_[i], depth_[e.op] + 1);
      }
      for (int d = 0; d < m_; ++d) {
        double& start = ready_[back][i * m_ + d] =
            time_[i * m_ + d] < kInfinity ? known_[back][i * m_ + d]
                                          : kInfinity;
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
        for (int round = 0; join && round < kRounds; ++round) {
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
        arrives = std::max(arrives, soonest(back, next, false) +
                                        cross(sent, e.op, back) + after);
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

  // Whether the target cannot start by r.t (`back`: this long before the end).
  bool refutes(const Row& r) {
    // Longest paths to the target, per op and device; -1: none.
    lag_ = r.target < 0 ? ready_[!r.back] : std::vector<double>(n_ * m_, -1);
    std::vector<int> root(n_), first(p_.num_groups, -1);
    const auto find = [&](int i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    for (int i = 0; i < n_; ++i) root[i] = i;
    for (int k = n_ - 1; k >= 0; --k) {
      const int i = order_[r.back ? n_ - 1 - k : k];
      double* lag = &lag_[i * m_];
      if (i == r.target) std::fill(lag, lag + m_, 0.0);
      if (*lag < 0) continue;
      int& other = first[p_.group[i]];
      if (other < 0) other = i;
      root[find(i)] = find(other);
      const double then =
          *std::min_element(lag, lag + m_) + (i == r.target ? 0 : least(i));
      for (const Edge& e : edges_[r.back][i]) {
        for (int d = 0; d < m_ && r.target >= 0; ++d) {
          double& before = lag_[e.op * m_ + d];
          before = std::max(before, then);
        }
        // Too late on another device.
        if (soonest(r.back, e.op, false) + cross(e, i, r.back) + then >
            r.t * kUp) {
          root[find(e.op)] = find(i);
        }
      }
    }
    std::vector<std::vector<int>> classes(n_);
    for (int i = 0; i < n_; ++i) {
      const bool counts = lag_[i * m_] >= 0 && i != r.target && least(i) > 0;
      if (counts) classes[find(i)].push_back(i);
    }
    return do_not_fit(classes, r);
  }

  bool do_not_fit(const std::vector<std::vector<int>>& classes, const Row& r) {
    const double length = std::max(r.t - r.until - r.from, 0.0);
    double sum = 0, capacity = 0;
    std::vector<uint8_t> used(m_, 0);
    for (const std::vector<int>& ops : classes) {
      double fewest = ops.empty() ? 0 : kInfinity;
      std::vector<double> us;
      for (int d = 0; d < m_ && !ops.empty(); ++d) {
        us.push_back(need(ops, d, r));
        const double weight = r.size > 0 ? 1 : least_weight_[d];
        if (us[d] < kInfinity) fewest = std::min(fewest, us[d] * weight);
      }
      if (fewest == kInfinity) return true;  // no device is left for them
      sum += fewest;
      for (int d = 0; d < m_ && fewest > 0; ++d) used[d] |= us[d] < kInfinity;
    }
    for (int d = 0; d < m_; ++d) {
      if (!used[d]) continue;
      capacity += r.size > 0 ? count_[d] * std::floor(length / r.size)
                             : weight_[d] * length;
    }
    return sum > capacity * kUp;
  }

  // The work that ops must do between the row's times if on this device.
  double need(const std::vector<int>& ops, int d, const Row& r) const {
    const double length = std::max(r.t - r.until - r.from, 0.0);
    double inside = 0, all = 0, start = kInfinity, end = kInfinity;
    for (const int i : ops) {
      const double w = time_[i * m_ + d], head = ready(r.back, i, d);
      const double lag = lag_[i * m_ + d];
      if (!(head + w + lag <= r.t * kUp)) return kInfinity;
      if (w < r.size) continue;
      const double part =
          std::min({w, length, head + w - r.from, lag + w - r.until});
      all += r.size > 0 ? 1 : w;
      inside +=
          r.size > 0 ? head >= r.from && lag >= r.until : std::max(part, 0.0);
      start = std::min(start, head);
      end = std::min(end, lag);
    }
    if (all == 0) return 0;
    // One after the other: only so much time is outside the row's times.
    double before = std::max(r.from - start, 0.0);
    double behind = std::max(r.until - end, 0.0);
    if (r.size > 0) before = std::ceil(before / r.size);
    if (r.size > 0) behind = std::ceil(behind / r.size);
    const double least = std::max(inside, all - before - behind);
    const double room = r.size > 0 ? std::floor(length / r.size) : length * kUp;
    return least > room ? kInfinity : least;
  }

  const PlanProblem& p_;
  const int n_;
  int m_ = 0;                                  // kinds of devices
  std::vector<int> first_, count_;             // per kind: of its devices
  std::vector<double> weight_, least_weight_;  // of all of them; of any
  std::vector<std::vector<LinkCost>> links_;   // [from * m_ + to]
  // [op * m_ + kind]
  std::vector<double> time_, lag_, ready_[2], known_[2];
  std::vector<std::vector<Edge>> edges_[2];  // of predecessors; of successors
  std::vector<int> order_, depth_;
  // The longest chain from the start of what start_after_joined() found to its
  // op; -1: others.
  std::vector<double> to_start_;
};

}  // namespace

std::string check_windows(const PlanProblem& p, const Witness& w) {
  std::map<std::string, std::vector<double>> columns(w.arrays.begin(),
                                                     w.arrays.end());
  for (const char* name : {"back", "value", "from", "until", "size"}) {
    columns[name];  // a missing one has length 0
  }
  const std::vector<double>& weight = columns["weight"];
  const size_t n = columns["op"].size();
  for (const auto& [name, column] : columns) {
    const size_t expected = name == "weight" ? p.costs.devices.size() : n;
    if (column.size() != expected) return name + " has another length";
    for (const double x : column) {
      if (!(x >= (name == "op" ? -1 : 0) && x < kInfinity))
        return name + ": " + std::to_string(x);
    }
  }
  if (columns.size() != 7) return "expected 7 arrays";
  std::vector<Row> rows;
  for (size_t k = 0; k < n; ++k) {
    const double op = columns["op"][k];
    if (op >= p.num_ops()) return "op: there is none of this number";
    rows.push_back({columns["back"][k] != 0, static_cast<int>(op),
                    columns["value"][k], columns["from"][k],
                    columns["until"][k], columns["size"][k]});
  }
  const double shown = Follow(p, weight).follow(rows);
  if (shown >= w.target) return "";
  return fmt::format("the deductions show {}, not {}", shown, w.target);
}

}  // namespace berth
