// StepAnnealer: moves a plan towards the shortest step.
//
// A state is a sequence and a device per unit. A move gives units another
// device, or an op another position; the StepTimer prices it from the first
// position that changes, and stops once it exceeds the threshold drawn for the
// move. One per thread; arrays are made once.

#ifndef BERTH_PLANNER_ANNEAL_STEPS_H_
#define BERTH_PLANNER_ANNEAL_STEPS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/infinity.h"
#include "planner/budget.h"
#include "planner/step_units.h"
#include "simulate/step_timer.h"

namespace berth {

class StepAnnealer {
 public:
  StepAnnealer(const StepUnits& units, StreamRandom& random)
      : units_(units),
        p_(units.problem),
        random_(random),
        timer_(units.problem.graph, units.problem.costs),
        best_us_(kInfinity) {
    for (int32_t u = 0; u < units.num_units; ++u) {
      if (units.allowed[u].several()) movable_.push_back(u);
    }
    device_.resize(units.num_units);
    previous_.assign(p_.num_ops(), -1);
    last_.resize(p_.num_devices());
    resident_.resize(p_.num_devices());
    position_.assign(p_.num_ops(), -1);
  }

  // Sets the plan to continue from. Returns its energy: its step, or more if it
  // breaks limits. Limits of a step longer than `most_us` are not looked at.
  double start(const PlacePlan& plan, double most_us = kInfinity) {
    plan_ = plan;
    std::fill(resident_.begin(), resident_.end(), 0);
    for (int32_t u = 0; u < units_.num_units; ++u) {
      // Aliases and sources may be apart from their unit: ops decide.
      const int32_t one =
          units_.ops[u].empty() ? units_.nodes[u][0] : units_.ops[u][0];
      device_[u] = plan_.device[one];
      resident_[device_[u]] += units_.resident_bytes[u];
      for (const int32_t i : units_.nodes[u]) plan_.device[i] = device_[u];
    }
    for (size_t k = 0; k < plan_.sequence.size(); ++k) {
      position_[plan_.sequence[k]] = static_cast<int32_t>(k);
    }
    us_ = timer_.run(plan_);
    over_ = 0;
    if (us_ > most_us) return us_;
    over_ = over_limits();
    keep_if_best();
    over_weight_ = kOverLast;
    return energy();
  }

  // Makes at most `most_moves`, until `spent` (called every few moves with the
  // moves so far) returns 1 or there is nothing to move. The thresholds are
  // shares of the energy, `hot` at first and `cold` at the end. Returns the
  // moves made.
  struct Cooling {
    double hot = 0.02, cold = 0.0005;
  };

  int64_t run(Cooling cooling, int64_t most_moves,
              const std::function<double(int64_t)>& spent) {
    if (units_.num_ops == 0) return 0;
    const int64_t per_look =
        std::clamp<int64_t>(kOpsPerLook / units_.num_ops, 1, kMovesPerLook);
    int64_t idle = 0, k = 0;
    double heat = 0;
    for (; k < most_moves; ++k) {
      if (k % per_look == 0) {
        const double share = spent(k);
        if (share >= 1) break;
        heat = cooling.hot * std::pow(cooling.cold / cooling.hot, share);
        over_weight_ = kOverFirst * std::pow(kOverLast / kOverFirst, share);
      }
      if (k % kMovesPerPath == 0) find_critical();
      first_ = plan_.sequence.size();
      changes_.clear();
      shift_from_ = -1;
      if (!propose()) {
        if (++idle > 2000) break;
        continue;
      }
      idle = 0;
      const double limit =
          energy() * (1 - heat * std::log(1 - random_.uniform()));
      // What is held throughout already rules out many plans.
      const double held = units_.limited ? over_limits({}) : 0;
      const double us =
          timer_.try_from(plan_, first_, limit / (1 + over_weight_ * held));
      const double over = us < kInfinity ? over_limits() : 0;
      if (us == kInfinity || us * (1 + over_weight_ * over) > limit) {
        take_back();
        continue;
      }
      timer_.accept();
      us_ = us, over_ = over;
      keep_if_best();
    }
    return k;
  }

  // The shortest plan of all runs that keeps all limits; infinite: none yet.
  double best_us() const { return best_us_; }
  const PlacePlan& best() const { return best_; }
  // The current plan and its energy.
  const PlacePlan& plan() const { return plan_; }
  double energy() const { return us_ * (1 + over_weight_ * over_); }
  bool fits() const { return over_ == 0; }

 private:
  // Moves between two checks of the clock: fewer if each takes long.
  static constexpr int64_t kMovesPerLook = 64, kOpsPerLook = 1 << 16;
  // Moves between two searches for the critical path, and how many of 10 moves
  // begin on it.
  static constexpr int64_t kMovesPerPath = 16;
  static constexpr uint32_t kCritical = 7;
  // The share by which limits are exceeded, times this, is added to the energy
  // as a share of the step: from a little to more than any step saves.
  static constexpr double kOverFirst = 1, kOverLast = 1000;
  static constexpr int kMaxCluster = 100;

  struct Change {
    int32_t unit, device;
  };

  bool propose() {
    const uint32_t kind = random_.below(100);
    if (movable_.empty()) return units_.ordered && reposition();
    if (!units_.ordered) return kind < 80 ? move_cluster() : swap_devices();
    // When limits bind, little can move except in exchange.
    if (kind < (units_.limited ? 15 : 50)) return move_cluster();
    if (kind < 55) return swap_devices();
    if (kind < 85) return reposition();
    return move_op();
  }

  // Moves connected units of one device to another.
  bool move_cluster() {
    const int32_t unit = pick_unit();
    const int32_t d = pick_device(unit);
    if (d < 0) return false;
    const int32_t from = device_[unit];
    cluster_.assign(1, unit);
    give(unit, d);
    int wanted = 1;
    while (wanted < kMaxCluster && random_.below(20) != 0) ++wanted;
    for (int tries = 0; tries < 2 * wanted; ++tries) {
      if (static_cast<int>(cluster_.size()) >= wanted) break;
      const auto around =
          units_.neighbours[cluster_[random_.below(cluster_.size())]];
      if (around.empty()) break;
      const int32_t next = around[random_.below(around.size())];
      if (device_[next] != from || !units_.allowed[next].has(d)) continue;
      cluster_.push_back(next);
      give(next, d);
    }
    return true;
  }

  bool swap_devices() {
    const int32_t a = pick_unit();
    const int32_t b = movable_[random_.below(movable_.size())];
    const int32_t da = device_[a], db = device_[b];
    if (da == db || !units_.allowed[a].has(db) || !units_.allowed[b].has(da)) {
      return false;
    }
    give(a, db);
    give(b, da);
    return true;
  }

  // Moves an op past others on its device.
  bool reposition() {
    const int32_t op = pick_op();
    const auto [low, high] = window(op);
    if (low >= high) return false;
    const int32_t at = position_[op];
    const int32_t step = random_.below(2) == 0 ? 1 : -1;
    int past = 1;
    while (past < 16 && random_.below(2) == 0) ++past;
    int32_t to = at;
    for (int32_t k = at + step; k >= low && k <= high && past > 0; k += step) {
      if (plan_.device[plan_.sequence[k]] != plan_.device[op]) continue;
      to = k;
      --past;
    }
    if (to == at) return false;
    shift(at, to);
    return true;
  }

  // Gives an op another device and any position.
  bool move_op() {
    const int32_t op = pick_op();
    const int32_t unit = units_.unit[op];
    const int32_t d = pick_device(unit);
    const auto [low, high] = window(op);
    if (d >= 0) give(unit, d);
    if (low < high) {
      const int32_t to = low + random_.below(high - low + 1);
      if (to != position_[op]) shift(position_[op], to);
    }
    return d >= 0 || shift_from_ >= 0;
  }

  int32_t pick_unit() {
    if (!critical_.empty() && random_.below(10) < kCritical) {
      const int32_t unit =
          units_.unit[critical_[random_.below(critical_.size())]];
      if (units_.allowed[unit].several()) return unit;
    }
    return movable_[random_.below(movable_.size())];
  }

  int32_t pick_op() {
    if (!critical_.empty() && random_.below(10) < kCritical) {
      return critical_[random_.below(critical_.size())];
    }
    return plan_.sequence[random_.below(units_.num_ops)];
  }

  // A device for a unit: usually that of a neighbour; -1: its current one.
  int32_t pick_device(int32_t unit) {
    int32_t d = -1;
    const auto around = units_.neighbours[unit];
    if (!around.empty() && random_.below(4) != 0) {
      d = device_[around[random_.below(around.size())]];
    }
    if (d < 0 || d == device_[unit]) d = random_.below(p_.num_devices());
    if (d == device_[unit] || !units_.allowed[unit].has(d)) return -1;
    return d;
  }

  void give(int32_t unit, int32_t device) {
    changes_.push_back({unit, device_[unit]});
    set_device(unit, device);
    for (const int32_t i : units_.ops[unit]) {
      first_ = std::min(first_, position_[i]);
    }
  }

  void set_device(int32_t unit, int32_t device) {
    resident_[device_[unit]] -= units_.resident_bytes[unit];
    resident_[device] += units_.resident_bytes[unit];
    device_[unit] = device;
    for (const int32_t i : units_.nodes[unit]) plan_.device[i] = device;
  }

  void shift(int32_t from, int32_t to) {
    shift_from_ = from, shift_to_ = to;
    first_ = std::min({first_, from, to});
    int32_t* s = plan_.sequence.data();
    if (from < to) {
      std::rotate(s + from, s + from + 1, s + to + 1);
    } else {
      std::rotate(s + to, s + from, s + from + 1);
    }
    for (int32_t k = std::min(from, to); k <= std::max(from, to); ++k) {
      position_[s[k]] = k;
    }
  }

  // From the last op that it waits for to the first that waits for it.
  std::pair<int32_t, int32_t> window(int32_t op) const {
    int32_t low = 0, high = units_.num_ops - 1;
    for (const int32_t b : units_.before[op]) {
      low = std::max(low, position_[b] + 1);
    }
    for (const int32_t a : units_.after[op]) {
      high = std::min(high, position_[a] - 1);
    }
    return {low, high};
  }

  void take_back() {
    if (shift_from_ >= 0) shift(shift_to_, shift_from_);
    for (auto c = changes_.rbegin(); c != changes_.rend(); ++c) {
      set_device(c->unit, c->device);
    }
  }

  // The shares by which the plan timed last exceeds the limits of devices.
  double over_limits() {
    if (!units_.limited) return 0;
    return over_limits(timer_.peak_bytes());
  }

  double over_limits(std::span<const int64_t> peaks) const {
    double over = 0;
    for (size_t d = 0; d < resident_.size(); ++d) {
      const double limit = p_.costs.devices[d].memory_limit;
      if (limit <= 0) continue;
      double bytes = resident_[d];
      if (!peaks.empty()) bytes += peaks[d];
      over += std::max(bytes / limit - 1, 0.0);
    }
    return over;
  }

  void keep_if_best() {
    if (over_ > 0 || !(us_ < best_us_)) return;
    best_us_ = us_;
    best_ = plan_;
  }

  // Collects a path of ops delayed only by each other: the last op, the one it
  // waited for, and so on. Only moves of these shorten the step. Copies that
  // wait for each other are ignored: the latest one is taken then.
  void find_critical() {
    critical_.clear();
    std::fill(last_.begin(), last_.end(), -1);
    int32_t node = -1;
    const std::span<const TimeSpan> spans = timer_.spans();
    for (const int32_t op : plan_.sequence) {
      int32_t& last = last_[plan_.device[op]];
      previous_[op] = last;
      last = op;
      if (node < 0 || spans[op].end_us > spans[node].end_us) node = op;
    }
    while (node >= 0) {
      int32_t next = -1;
      double latest = 0;
      int ties = 0;
      const auto look = [&](int32_t other, double end) {
        if (end < latest || end <= 0) return;
        ties = end > latest ? 1 : ties + 1;
        latest = end;
        if (ties == 1 || random_.below(ties) == 0) next = other;
      };
      if (p_.takes_time(node)) {
        critical_.push_back(node);
        const int32_t previous = previous_[node];
        if (previous >= 0) look(previous, spans[previous].end_us);
      }
      for (const int32_t v : p_.graph.reads[node]) {
        const int32_t from = p_.graph.producer[v];
        look(from, spans[from].end_us + timer_.copy_us(v, plan_.device[from],
                                                       plan_.device[node]));
      }
      for (const int32_t c : p_.graph.controls[node]) look(c, spans[c].end_us);
      node = next;
    }
  }

  const StepUnits& units_;
  const PlanProblem& p_;
  StreamRandom& random_;
  StepTimer timer_;
  PlacePlan plan_, best_;
  double us_ = 0, over_ = 0, over_weight_ = 1, best_us_;
  std::vector<int32_t> device_;    // per unit
  std::vector<double> resident_;   // per device: bytes held throughout
  std::vector<int32_t> position_;  // per node
  std::vector<int32_t> movable_;   // units that allow several devices
  std::vector<int32_t> critical_;  // ops of a critical path
  std::vector<int32_t> previous_;  // per node: the op before it on its device
  std::vector<int32_t> last_;      // per device

  // The current move.
  int32_t first_ = 0;
  std::vector<Change> changes_;  // previous devices
  int32_t shift_from_ = -1, shift_to_ = -1;
  std::vector<int32_t> cluster_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_ANNEAL_STEPS_H_
