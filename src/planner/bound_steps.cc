// The bound on a step's time: its longest path, counting ops that must share a
// device one after the other; the largest group; the work of all devices.

#include <algorithm>
#include <cmath>
#include <set>

#include "base/infinity.h"
#include "planner/models.h"
#include "planner/step_graph.h"

namespace berth {

namespace {

constexpr size_t kNearestOps = 32;  // before one; checkers look at 64
constexpr int kJoinRounds = 40;
// What is deduced must be clear: checkers add in another order.
constexpr double kClear = 1 + 1e-9;

// What joined_starts() returns.
class JoinedStarts {
 public:
  JoinedStarts(const StepGraph& graph, bool back)
      : g_(graph),
        back_(back),
        depth_(graph.num_ops(), 0),
        end_(graph.num_ops(), kInfinity),
        behind_(graph.num_ops(), -1) {}

  std::vector<double> run() {
    return g_.by_path(back_, [&](int32_t op, std::vector<double>& start) {
      for (const int32_t e : before(op)) {
        depth_[op] = std::max(depth_[op], depth_[end_of(e, false)] + 1);
      }
      for (size_t k = 0; k < g_.num_kinds(); ++k) {
        double& us = start[at(op, k)];
        if (us == kInfinity) continue;
        if (before(op).size() > 1) us = improve(op, k, us, start);
        end_[op] = std::min(end_[op], us + g_.time_on(op, k));
      }
    });
  }

 private:
  size_t at(int32_t op, size_t kind) const {
    return static_cast<size_t>(op) * g_.num_kinds() + kind;
  }
  std::span<const int32_t> before(int32_t op) const {
    return (back_ ? g_.out : g_.in)[op];
  }
  std::span<const int32_t> after(int32_t op) const {
    return (back_ ? g_.in : g_.out)[op];
  }
  int32_t end_of(int32_t edge, bool later) const {
    return back_ == later ? g_.edges[edge].from : g_.edges[edge].to;
  }

  // Raises the start of an op on a kind while what must share its device then
  // takes longer.
  double improve(int32_t op, size_t kind, double us,
                 const std::vector<double>& start) {
    for (int round = 0; round < kJoinRounds; ++round) {
      const double until = join(op, kind, us);
      const double least = one_after_another(kind, start);
      for (const int32_t i : joined_) behind_[i] = -1;
      behind_[op] = -1;
      const double next = std::min(least, until);
      if (!(next > us * kClear) || next == kInfinity) break;
      us = next;
    }
    return us;
  }

  // Finds what must share the device of an op that starts by `us`, the nearest
  // first, and the longest chains from there to the op. Returns until when that
  // is so.
  double join(int32_t op, size_t kind, double us) {
    joined_.clear();
    near_.clear();
    behind_[op] = 0;
    double until = kInfinity;
    const auto look_before = [&](int32_t i) {
      for (const int32_t e : before(i)) {
        const int32_t other = end_of(e, false);
        near_.emplace(depth_[other], other);
      }
    };
    look_before(op);
    while (!near_.empty() && joined_.size() < kNearestOps) {
      const int32_t i = near_.extract(std::prev(near_.end())).value().second;
      double behind = -1, arrives = 0;
      for (const int32_t e : after(i)) {
        const int32_t next = end_of(e, true);
        if (behind_[next] < 0) continue;
        const double own = next == op ? 0 : g_.time_on(next, kind);
        behind = std::max(behind, behind_[next] + own);
        arrives = std::max(arrives,
                           end_[i] + g_.edges[e].cross + behind_[next] + own);
      }
      if (!(arrives > us * kClear)) continue;
      until = std::min(until, arrives);
      behind_[i] = behind;
      joined_.push_back(i);
      look_before(i);
    }
    return until;
  }

  // When the op can start at the soonest: after what starts late, one after the
  // other, and the shortest chain from one of those to the op.
  double one_after_another(size_t kind, const std::vector<double>& start) {
    std::ranges::sort(joined_, std::greater(),
                      [&](int32_t i) { return start[at(i, kind)]; });
    double sum = 0, behind = kInfinity, soonest = 0;
    for (const int32_t i : joined_) {
      sum += g_.time_on(i, kind);
      behind = std::min(behind, behind_[i]);
      soonest = std::max(soonest, start[at(i, kind)] + sum + behind);
    }
    return soonest;
  }

  const StepGraph& g_;
  const bool back_;
  std::vector<int32_t> depth_;
  std::vector<double> end_;     // the least over kinds
  std::vector<double> behind_;  // of what is joined; negative: it is not
  std::vector<int32_t> joined_;
  std::set<std::pair<int32_t, int32_t>> near_;  // by depth
};

constexpr double kBoundRounding = 1e-9;  // subtracted from what is proved

double longest_path(const StepGraph& g) {
  const std::vector<double> before = joined_starts(g, false);
  const std::vector<double> after = joined_starts(g, true);
  double longest = 0;
  for (int32_t i = 0; i < g.num_ops(); ++i) {
    double through = kInfinity;
    for (size_t k = 0; k < g.num_kinds(); ++k) {
      const size_t at = static_cast<size_t>(i) * g.num_kinds() + k;
      through = std::min(through, before[at] + g.time[at] + after[at]);
    }
    if (through < kInfinity) longest = std::max(longest, through);
  }
  return longest;
}

// Per group and kind [group * kinds + kind]: the time of its ops there.
std::vector<double> times_of_groups(const StepGraph& g) {
  const size_t kinds = g.num_kinds();
  std::vector<double> time(g.num_groups * kinds, 0);
  for (int32_t i = 0; i < g.num_ops(); ++i) {
    for (size_t k = 0; k < kinds; ++k) {
      time[g.group[i] * kinds + k] += g.time_on(i, k);
    }
  }
  return time;
}

}  // namespace

std::vector<double> joined_starts(const StepGraph& graph, bool back) {
  return JoinedStarts(graph, back).run();
}

Bound bound_steps(const PlanProblem& p, const Budget&) {
  const StepGraph g(p);
  const size_t kinds = g.num_kinds();
  const std::vector<double> time = times_of_groups(g);
  double largest = 0;
  for (size_t at = 0; at < time.size(); at += kinds) {
    largest =
        std::max(largest, *std::min_element(&time[at], &time[at] + kinds));
  }
  const SumProof work = prove_by_sum(time, g.kind_devices);
  const double path = std::max(longest_path(g), largest);
  const double value = std::max(path, work.worth) * (1 - kBoundRounding);
  Bound b;
  if (!(value > 0) || std::isinf(value)) return b;
  b.value = value;
  b.how = path >= work.worth ? "longest path" : "work of all devices";
  std::vector<double> weight(p.num_devices(), 0);
  for (size_t k = 0; k < kinds; ++k) {
    for (DeviceSet m = g.kind_devices[k]; m; m.drop_first()) {
      weight[m.first()] = work.prices[k];
    }
  }
  b.witness = {"path", value, {{"weight", std::move(weight)}}};
  return b;
}

}  // namespace berth
