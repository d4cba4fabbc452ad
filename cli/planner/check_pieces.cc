// Checks that a path of ops cannot be done before the target, in latency as
// dnn-partitioning defines it. path: op numbers. part: first and last place on
// the path of the part that is split into pieces in every way. cuts: triples of
// first and last place of a piece and a price per byte; for these a flow adds
// the cost of ops beside the path.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/infinity.h"
#include "cli/planner/pieces.h"
#include "place/planner/check_flow.h"

namespace berth {

namespace {

class Path {
 public:
  explicit Path(const PlanProblem& p)
      : p_(p),
        allowed_(allowed_of_groups(p)),
        bytes_(p.num_groups, 0),
        elsewhere_(p.names.size(), 0) {
    for (int v = 0; v < p.num_ops(); ++v) {
      bytes_[p.group[v]] += p.resident_bytes[v];
    }
  }
  std::string check(const Witness& w);

 private:
  int input(int v, size_t k) const {
    return p_.graph.producer[p_.graph.reads[v][k]];
  }
  size_t num_inputs(int v) const { return p_.graph.reads[v].size(); }
  bool reads(int v, int u) const {
    for (size_t k = 0; k < num_inputs(v); ++k) {
      if (input(v, k) == u) return true;
    }
    return false;
  }
  bool together(int u, int v) const;   // in one piece, or not on accelerators
  double time(int v, bool cpu) const;  // on the best device it allows
  void set_sides(int begin, int end);
  double cost(int first, int last, const double* price) const;
  double least(const std::vector<double>& cuts) const;

  const PlanProblem& p_;
  const std::vector<DeviceSet> allowed_;
  std::vector<double> bytes_;    // per group
  std::vector<char> elsewhere_;  // per op: its time counts separately
  std::vector<int> path_, from_, to_;
};

bool Path::together(int u, int v) const {
  bool all = p_.group[u] == p_.group[v] && reads(v, u);
  for (size_t k = 0; k < num_inputs(v); ++k) {
    const int w = input(v, k);
    all &= w == u || num_inputs(w) == 0 || reads(u, w);
  }
  return all;
}

double Path::time(int v, bool cpu) const {
  double best = kInfinity;
  for (int d = 0; d < p_.num_devices(); ++d) {
    const bool may = allowed_[p_.group[v]].has(d);
    if (may && p_.free_of_touch[d] == cpu) {
      best = std::min(best, p_.costs.time(v, d).us);
    }
  }
  return best;
}

// Finds, per op, the last op of the path before it and the first behind it.
void Path::set_sides(int begin, int end) {
  path_ = std::vector(path_.begin() + begin, path_.begin() + end);
  from_.assign(p_.num_ops(), -1);
  to_.assign(p_.num_ops(), end - begin);
  for (int k = 0; k < end - begin; ++k) from_[path_[k]] = to_[path_[k]] = k;
  const std::vector<int32_t> order = order_of_ops(p_);
  for (size_t i = 0; i < order.size(); ++i) {
    const int v = order[i], last = order[order.size() - 1 - i];
    for (size_t k = 0; k < num_inputs(v); ++k) {
      from_[v] = std::max(from_[v], from_[input(v, k)]);
    }
    for (size_t k = 0; k < num_inputs(last); ++k) {
      to_[input(last, k)] = std::min(to_[input(last, k)], to_[last]);
    }
  }
}

// Returns the least cost of a piece with these ops of the path, or infinity.
double Path::cost(int first, int last, const double* price) const {
  CheckNetwork net;
  net.of.resize(2);
  std::vector<int> node(p_.num_ops());  // 0 inside, 1 outside, from 2: free
  std::vector<char> held(p_.num_groups, 0);
  std::vector<double> work(p_.num_devices(), 0);
  DeviceSet may = ~DeviceSet{0};
  double bytes = 0, most = 0, sum = kInfinity;
  for (int v = 0; v < p_.num_ops(); ++v) {
    if (to_[v] < first || from_[v] > last)
      node[v] = 1;
    else if (from_[v] < first || to_[v] > last)
      node[v] = net.node();
    else {
      for (size_t d = 0; d < work.size(); ++d) {
        work[d] += p_.costs.time(v, d).us;
      }
      may &= allowed_[p_.group[v]];
      if (!held[p_.group[v]]) bytes += bytes_[p_.group[v]];
      held[p_.group[v]] = 1;
    }
  }
  for (int d = 0; d < p_.num_devices(); ++d) {
    const double given = p_.costs.devices[d].memory_limit;
    const double limit = given > 0 ? given : kInfinity;
    if (p_.free_of_touch[d]) continue;
    most = std::max(most, limit);
    if (may.has(d) && bytes <= limit) sum = std::min(sum, work[d]);
  }
  if (sum == kInfinity) return sum;
  for (int v = 0; v < p_.num_ops(); ++v) {
    std::vector<int> ends = {node[v]};
    for (const int r : p_.graph.readers[p_.graph.values[v][0]]) {
      ends.push_back(node[r]);
      if (price && node[r] != node[v] && together(v, r)) {
        net.add(node[v], node[r], kInfinity, kInfinity);
      }
    }
    const bool in = std::ranges::count(ends, 0),
               out = std::ranges::count(ends, 1);
    if (in && out) sum += p_.touch_us[v];
    if (!price) continue;
    if (node[v] > 1) {
      double best = kInfinity;
      for (int d = 0; d < p_.num_devices(); ++d) {
        if (!p_.free_of_touch[d]) best = std::min(best, p_.costs.time(v, d).us);
      }
      if (elsewhere_[v]) best = 0;
      net.add(node[v], 1,
              best + (held[p_.group[v]] ? 0 : *price * p_.resident_bytes[v]),
              0);
    }
    if ((in && out) || p_.touch_us[v] <= 0) continue;
    const int a = net.node(), b = net.node();
    net.add(a, b, p_.touch_us[v], 0);
    for (const int e : ends) {
      net.add(e, a, kInfinity, 0);
      net.add(b, e, kInfinity, 0);
    }
  }
  if (!price) return sum;
  return sum + net.flow(0, 1, kInfinity, 1e-12) +
         (*price > 0 ? *price * (bytes - most) : 0);
}

double Path::least(const std::vector<double>& cuts) const {
  const int n = static_cast<int>(path_.size());
  std::map<std::pair<int, int>, double> priced;
  for (size_t k = 0; k < cuts.size(); k += 3) {
    priced[{cuts[k], cuts[k + 1]}] = cuts[k + 2];
  }
  std::vector<double> piece(n + 1, kInfinity), cpu(n + 1, kInfinity);
  piece[0] = 0;
  for (int k = 0; k < n; ++k) {
    const bool tied = k > 0 && p_.group[path_[k - 1]] == p_.group[path_[k]];
    const double other = tied ? kInfinity : 0;
    cpu[k + 1] = std::min(cpu[k], piece[k] + other) + time(path_[k], true);
    const bool one = tied && together(path_[k - 1], path_[k]);
    const double before = std::min(one ? kInfinity : piece[k], cpu[k] + other);
    if (before == kInfinity) continue;
    for (int last = k; last < n; ++last) {
      const auto cut = priced.find({k, last});
      const double c =
          cost(k, last, cut == priced.end() ? nullptr : &cut->second);
      piece[last + 1] = std::min(piece[last + 1], before + c);
      if (cut == priced.end() && c == kInfinity) break;
    }
  }
  return std::min(piece[n], cpu[n]);
}

std::string Path::check(const Witness& w) {
  std::map<std::string, std::vector<double>> a(w.arrays.begin(),
                                               w.arrays.end());
  const auto whole = [](double v, double end) {
    return v >= 0 && v < end && v == std::floor(v);
  };
  for (const double v : a["path"]) {
    if (!whole(v, p_.num_ops())) return "its path names what is no op";
    if (!path_.empty() && !reads(static_cast<int>(v), path_.back())) {
      return "its path is none: an op does not read from the one before";
    }
    path_.push_back(static_cast<int>(v));
  }
  const double length = path_.size();
  const std::vector<double>&part = a["part"], &cuts = a["cuts"];
  if (part.size() != 2 || !whole(part[0], length + 1) ||
      !whole(part[1], length + 1) || part[0] > part[1]) {
    return "its part does not lie in its path";
  }
  // Beyond this price, rounding would decide.
  const double most =
      1e7 * w.target / (1 + std::reduce(bytes_.begin(), bytes_.end()));
  for (size_t k = 0; k < cuts.size(); k += 3) {
    if (k + 2 >= cuts.size() || !whole(cuts[k], length) ||
        !whole(cuts[k + 1], length) || !(cuts[k + 2] >= 0) ||
        !(cuts[k + 2] <= most)) {
      return "its cuts are no triples of places and a price";
    }
  }
  double rest = 0;
  for (size_t k = 0; k < path_.size(); ++k) {
    if (static_cast<double>(k) < part[0] || static_cast<double>(k) >= part[1]) {
      rest += std::min(time(path_[k], true), time(path_[k], false));
      elsewhere_[path_[k]] = 1;
    }
  }
  set_sides(static_cast<int>(part[0]), static_cast<int>(part[1]));
  rest += least(cuts);
  if (rest >= w.target * (1 - 1e-9)) return "";
  return fmt::format("its path takes {} at least, not {}", rest, w.target);
}

}  // namespace

std::string check_pieces(const PlanProblem& p, const Witness& w) {
  if (!has_pieces(p) || p.free_of_touch.empty() ||
      p.touch_us.size() != p.names.size()) {
    return "it is about another model";
  }
  return Path(p).check(w);
}

}  // namespace berth
