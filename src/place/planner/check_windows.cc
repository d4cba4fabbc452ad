// Follows the deductions of a "windows" witness (docs/formats.md) one by one.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "place/planner/check.h"

namespace berth {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Edge {
  int from, to;
  double bytes;  // -1: nothing is sent
};

class Follow {
 public:
  explicit Follow(const PlanProblem& p)
      : p_(p), g_(p.graph), n_(p.num_ops()), m_(p.num_devices()) {
    std::vector<uint64_t> may(p.num_groups, ~uint64_t{0});
    for (int i = 0; i < n_ * m_; ++i) {
      const int op = i / m_, d = i % m_;
      time_.push_back(p.takes_time(op) ? p.costs.time(op, d).us : 0);
      if (time_[i] == kInf || !(p.allowed[op] >> d & 1)) {
        may[p.group[op]] &= ~(uint64_t{1} << d);
      }
    }
    for (int i = 0; i < n_ * m_; ++i) {
      if (!(may[p.group[i / m_]] >> i % m_ & 1)) time_[i] = kInf;
    }
    set_edges();
    for (const bool back : {false, true}) {
      known_[back].assign(n_, 0);
      set_path(back);
    }
  }

  // The rows of the witness in turn; the highest bound that they show.
  double follow(const std::vector<double>& weight,
                const std::vector<std::vector<double>>& rows) {
    double bound = 0;
    for (int i = 0; i < n_; ++i) {
      if (p_.takes_time(i)) bound = std::max(bound, end(false, i, 0));
    }
    for (const std::vector<double>& r : rows) {
      const bool back = r[0] != 0;
      const int op = r[1] >= 0 && r[1] < n_ ? int(r[1]) : -1;
      if (!refutes(back, op, r[2], r[3], r[4], r[5], weight)) return bound;
      if (op < 0) {
        bound = std::max(bound, r[2]);
      } else {
        known_[back][op] = std::max(known_[back][op], r[2]);
        set_path(back);
      }
    }
    for (int i = 0; i < n_; ++i) {
      if (p_.takes_time(i)) bound = std::max(bound, end(false, i, 1));
    }
    return bound;
  }

 private:
  void set_edges() {
    std::vector<size_t> missing(n_, 0);
    in_.resize(n_), out_.resize(n_);
    const auto add = [&](int from, int to, double bytes) {
      if (g_.kind[from] == SimulatedGraph::Kind::kTransfer) return;
      in_[to].push_back({from, to, bytes});
      out_[from].push_back({from, to, bytes});
    };
    for (int i = 0; i < n_; ++i) {
      if (g_.kind[i] == SimulatedGraph::Kind::kTransfer) continue;
      for (const int v : g_.reads[i]) {
        add(g_.producer[v], i,
            g_.everywhere[v] ? -1.0 : double(p_.costs.bytes.item(v)));
      }
      for (const int c : g_.controls[i]) add(c, i, -1);
    }
    for (int i = 0; i < n_; ++i) {
      if ((missing[i] = in_[i].size()) == 0) order_.push_back(i);
    }
    for (size_t k = 0; k < order_.size(); ++k) {
      for (const Edge& e : out_[order_[k]]) {
        if (--missing[e.to] == 0) order_.push_back(e.to);
      }
    }
    // What takes no time, and is before nothing that does, ends no step.
    std::vector<bool> matters(n_);
    for (int k = n_ - 1; k >= 0; --k) {
      std::erase_if(out_[order_[k]],
                    [&](const Edge& e) { return !matters[e.to]; });
      matters[order_[k]] = p_.takes_time(order_[k]) || !out_[order_[k]].empty();
      if (!matters[order_[k]]) in_[order_[k]].clear();
    }
  }

  double copy(const Edge& e, int a, int b, bool back) const {
    if (a == b || e.bytes < 0) return 0;
    const LinkCost& link = p_.costs.link(back ? b : a, back ? a : b);
    return std::max(link.time_us(int64_t(e.bytes)), 0.0);
  }
  double ready(bool back, int i, int d) const {
    return ready_[back][i * m_ + d];
  }
  double time(int i, int d) const { return time_[i * m_ + d]; }
  double least(int i) const {
    return *std::min_element(&time_[i * m_], &time_[i * m_] + m_);
  }
  // The soonest end of an op; with what must come then.
  double end(bool back, int i, bool whole) const {
    double soonest = kInf;
    for (int d = 0; d < m_; ++d) {
      soonest = std::min(soonest, ready(back, i, d) + time(i, d) +
                                      (whole ? ready(!back, i, d) : 0));
    }
    return soonest;
  }
  // The least time of a copy; infinite: there is none. `apart`: no device may
  // have both.
  double cross(const Edge& e, bool& apart) const {
    double us = kInf;
    apart = true;
    for (int a = 0; a < m_; ++a) {
      for (int b = 0; b < m_; ++b) {
        if (time(e.from, a) == kInf || time(e.to, b) == kInf) continue;
        if (a == b) apart = false;
        if (a != b) us = std::min(us, copy(e, a, b, false));
      }
    }
    return e.bytes < 0 ? 0 : us;
  }

  // The longest chains of ops, each on the device that is best for its chain.
  void set_path(bool back) {
    ready_[back].resize(time_.size());
    for (int k = 0; k < n_; ++k) {
      const int i = order_[back ? n_ - 1 - k : k];
      for (int d = 0; d < m_; ++d) {
        double start = known_[back][i];
        for (const Edge& e : (back ? out_ : in_)[i]) {
          const int u = back ? e.to : e.from;
          double soonest = kInf;
          for (int c = 0; c < m_; ++c) {
            soonest = std::min(
                soonest, ready(back, u, c) + time(u, c) + copy(e, c, d, back));
          }
          start = std::max(start, soonest);
        }
        ready_[back][i * m_ + d] = start;
      }
    }
  }

  // Longest paths to the target; -1: none.
  void set_lags(bool back, int target) {
    lag_.assign(n_, target < 0 ? 0 : -1);
    if (target >= 0) lag_[target] = 0;
    for (int k = n_ - 1; k >= 0 && target >= 0; --k) {
      const int i = order_[back ? n_ - 1 - k : k];
      if (lag_[i] < 0) continue;
      for (const Edge& e : (back ? out_ : in_)[i]) {
        bool apart = false;
        const double us = cross(e, apart);
        double& lag = lag_[back ? e.to : e.from];
        lag = std::max(
            lag, lag_[i] + (i == target ? 0 : least(i)) + (apart ? us : 0));
      }
    }
  }

  bool refutes(bool back, int target, double t, double from, double until,
               double size, const std::vector<double>& weight) {
    set_lags(back, target);
    std::vector<int> root(n_), first(p_.num_groups, -1);
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](int i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    // Who shares a device: groups, and where a copy would come too late.
    for (int i = 0; i < n_; ++i) {
      if (lag_[i] < 0) continue;
      int& other = first[p_.group[i]];
      if (other < 0) other = i;
      root[find(i)] = find(other);
      double lag = i == target ? 0 : least(i) + lag_[i];
      if (target < 0) {
        lag = kInf;
        for (int d = 0; d < m_; ++d) {
          lag = std::min(lag, least(i) + ready(!back, i, d));
        }
      }
      for (const Edge& e : (back ? out_ : in_)[i]) {
        const int u = back ? e.to : e.from;
        bool apart = false;
        if (end(back, u, false) + cross(e, apart) + lag > t * (1 + 1e-12)) {
          root[find(u)] = find(i);
        }
      }
    }
    std::vector<std::vector<int>> classes(n_);
    for (int i = 0; i < n_; ++i) {
      if (lag_[i] >= 0 && i != target && least(i) > 0) {
        classes[find(i)].push_back(i);
      }
    }
    const double length = std::max(t - until - from, 0.0);
    double sum = 0, capacity = 0;
    std::vector<bool> used(m_);
    for (const std::vector<int>& ops : classes) {
      if (ops.empty()) continue;
      std::vector<double> needs;
      for (int d = 0; d < m_; ++d) {
        const double us = need(ops, d, back, target, t, from, until, size);
        needs.push_back(size > 0 || us == kInf ? us : weight[d] * us);
      }
      const double fewest = *std::min_element(needs.begin(), needs.end());
      if (fewest == kInf) return true;  // it has no device
      sum += fewest;
      for (int d = 0; d < m_ && fewest > 0; ++d) {
        used[d] = used[d] || std::all_of(ops.begin(), ops.end(), [&](int i) {
                    return time(i, d) < kInf;
                  });
      }
    }
    for (int d = 0; d < m_; ++d) {
      if (!used[d]) continue;
      capacity += size > 0 ? std::floor(length / size) : weight[d] * length;
    }
    return sum > capacity * (1 + 1e-12);
  }

  // What ops must do on one device between two times.
  double need(const std::vector<int>& ops, int d, bool back, int target,
              double t, double from, double until, double size) const {
    const double length = std::max(t - until - from, 0.0);
    double inside = 0, all = 0, soonest = kInf, latest = kInf;
    for (const int i : ops) {
      const double w = time(i, d), head = ready(back, i, d);
      const double lag = target < 0 ? ready(!back, i, d) : lag_[i];
      if (!(head + w + lag <= t * (1 + 1e-12))) return kInf;
      if (size > 0 && w < size) continue;
      all += size > 0 ? 1 : w;
      inside += size > 0 ? head >= from && lag >= until
                         : std::max(0.0, std::min({w, length, head + w - from,
                                                   lag + w - until}));
      soonest = std::min(soonest, head);
      latest = std::min(latest, lag);
    }
    if (all == 0) return 0;
    // One after the other: beside it is only so much time.
    const double before = std::max(from - soonest, 0.0);
    const double behind = std::max(until - latest, 0.0);
    const double outside =
        size > 0 ? std::ceil(before / size) + std::ceil(behind / size)
                 : before + behind;
    const double least = std::max(inside, all - outside);
    const double room =
        size > 0 ? std::floor(length / size) : length * (1 + 1e-12);
    return least > room ? kInf : least;
  }

  const PlanProblem& p_;
  const SimulatedGraph& g_;
  const int n_, m_;
  std::vector<double> time_, lag_, ready_[2], known_[2];
  std::vector<std::vector<Edge>> in_, out_;
  std::vector<int> order_;
};

}  // namespace

std::string check_windows(const PlanProblem& p, const Witness& w) {
  std::map<std::string, std::vector<double>> arrays(w.arrays.begin(),
                                                    w.arrays.end());
  const std::vector<double>& weight = arrays["weight"];
  std::vector<std::vector<double>> rows(arrays["op"].size());
  for (const char* name : {"back", "op", "value", "from", "until", "size"}) {
    if (arrays[name].size() != rows.size()) return "columns differ in length";
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back(arrays[name][k]);
  }
  for (size_t d = 0; d < weight.size(); ++d) {
    if (!(weight[d] >= 0 && weight[d] < kInf)) return "a weight is negative";
  }
  if (weight.size() != p.costs.devices.size()) return "a weight is missing";
  for (const std::vector<double>& r : rows) {
    for (const double x : r) {
      if (!std::isfinite(x)) return "a number is not finite";
    }
    if (r[3] < 0 || r[4] < 0 || r[5] < 0) return "a time is negative";
  }
  const double shown = Follow(p).follow(weight, rows);
  if (shown >= w.target) return "";
  return "the deductions show " + std::to_string(shown) + ", not " +
         std::to_string(w.target);
}

}  // namespace berth
