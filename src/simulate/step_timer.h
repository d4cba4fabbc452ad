// StepTimer: how long a plan's step takes, many thousand times a second.
//
// Applies the simulator's rules (simulate.h) in one straight loop over the
// plan's sequence, and again from a changed position, as a search does after
// each move. It ignores buses: its time is then a lower bound, and the
// Simulator gives the exact one. The constructor makes all arrays: no call
// allocates except the first of peak_bytes() and of events(). One thread per
// StepTimer; graph and costs are only read and must outlive it.

#ifndef BERTH_SIMULATE_STEP_TIMER_H_
#define BERTH_SIMULATE_STEP_TIMER_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/infinity.h"
#include "simulate/copy_log.h"
#include "simulate/peak_bytes.h"
#include "simulate/timing_tables.h"

namespace berth {

class StepTimer {
 public:
  using Event = StepEvent;

  // Throws errors::InvalidArgument when the costs belong to another graph or
  // machine, or the graph has a cycle.
  StepTimer(const SimulatedGraph& graph, const CostTable& costs)
      : t_(graph, costs),
        aliases_(std::ranges::count(graph.kind, Kind::kAlias) > 0),
        log_(t_, aliases_) {
    const auto ops = static_cast<size_t>(t_.num_ops);
    const size_t resources = t_.routes.num_resources();
    free_.assign(resources, 0);
    while ((ops / stride_ + 1) * (resources + 2) > kMostCheckpointNumbers &&
           stride_ < t_.num_ops) {
      stride_ *= 2;
    }
    const size_t checkpoints = ops / stride_ + 1;
    kept_.span.resize(graph.kind.size());
    kept_.free.assign(checkpoints * resources, 0);
    kept_.progress.resize(checkpoints);
    kept_.progress[0].left_us = t_.work_us;
    kept_plan_.sequence.resize(ops);
    kept_plan_.device.assign(graph.kind.size(), -1);
    kept_.events.assign(checkpoints, 0);
    kept_.position.assign(graph.kind.size(), -1);
    trial_ = kept_;
    if (!aliases_) return;
    first_after_.assign(ops + 1, -1);
    next_after_.assign(graph.kind.size(), -1);
  }

  // Plans given below must have a device for every node, and every op that
  // takes time once in the sequence, after what it waits for (check_plan); this
  // is not checked here. Impossible steps, where a device has no kernel for an
  // op, take infinitely long.

  // Times a plan from its beginning and keeps it. Returns its step time.
  double run(const PlacePlan& plan) {
    drop_trial();
    std::ranges::copy(plan.device, kept_plan_.device.begin());
    first_ = 0;
    plan_ = &plan;
    trial_.us = time_from_first(kInfinity);
    has_trial_ = true;
    accept();
    return kept_.us;
  }

  // Times a plan that differs from the kept one only in the sequence from
  // position `first` on, in the devices of ops from there on, and in those of
  // nodes that take no time. Returns its step time; infinity as soon as it is
  // certain to exceed `stop_above`, that is, when an op's end plus the least
  // time of the longest path after it does. The kept plan stays.
  double try_from(const PlacePlan& changed, int32_t first, double stop_above) {
    drop_trial();
    plan_ = &changed;
    first_ = std::clamp(first, 0, t_.num_ops);
    find_first();
    trial_.us = time_from_first(stop_above);
    has_trial_ = trial_.us != kInfinity;
    if (!has_trial_) {
      take_back(changed);
      plan_ = &kept_plan_;
    }
    return trial_.us;
  }

  // Keeps the plan that was tried last, which must not have changed since and
  // whose step was finite. O(positions from `first` + nodes without time).
  void accept() {
    if (!has_trial_) return;
    has_trial_ = false;
    kept_.us = trial_.us;
    for (int32_t k = first_; k < t_.num_ops; ++k) {
      const int32_t op = plan_->sequence[k];
      kept_plan_.sequence[k] = op;
      kept_plan_.device[op] = plan_->device[op];
      kept_.span[op] = trial_.span[op];
      if (!aliases_) kept_.position[op] = k;
    }
    for (const int32_t i : t_.timeless) kept_plan_.device[i] = plan_->device[i];
    plan_ = &kept_plan_;
    const int32_t row = first_ / stride_ + 1;
    copy_from(row, trial_.progress, kept_.progress);
    copy_from(row * free_.size(), trial_.free, kept_.free);
    copy_from(row, trial_.events, kept_.events);
    for (const Event& e : log_.events_of_trial()) {
      if (e.to < 0) kept_.span[e.number] = trial_.span[e.number];
    }
    log_.keep_trial();
    if (aliases_) kept_.position.swap(trial_.position);
  }

  // The step of the kept plan.
  double step_us() const { return kept_.us; }

  // Spans of the plan timed last: the trial, or the kept plan if the trial
  // was stopped.
  std::span<const TimeSpan> spans() const { return trial_.span; }

  // The most bytes that are live at once on each device, by the simulator's
  // rules, in the plan timed last; if that one is not kept, it must not have
  // changed since. O(n log n).
  std::span<const int64_t> peak_bytes() {
    if (!peak_) peak_.emplace(t_.graph, t_.costs, t_.order);
    return peak_->compute(*plan_, trial_.span, events());
  }

  // All nodes in an order in which none comes before what it waits for.
  std::span<const int32_t> topological_order() const { return t_.order; }

  // Copies, and the aliases between them, of the plan timed last (as above),
  // in its order. Valid until the next call.
  std::span<const Event> events() {
    return has_trial_ ? log_.events() : log_.kept_events();
  }

  // The time of one copy.
  double copy_us(int32_t value, int32_t from, int32_t to) const {
    return t_.copy_us(value, from, to);
  }

 private:
  using Kind = SimulatedGraph::Kind;

  // Every stride-th position is kept as a checkpoint: every 8th, or fewer where
  // that would be too many numbers.
  static constexpr int32_t kLeastStride = 8;
  static constexpr size_t kMostCheckpointNumbers = size_t{1} << 23;

  // How far a step has come, besides what each resource does.
  struct Progress {
    double latest_us = 0;  // end of what has run
    double left_us = 0;    // least times of the ops to come
  };

  // The times of one plan, and its state at every checkpoint.
  struct TimedStep {
    double us = 0;
    std::vector<TimeSpan> span;  // per node
    // Per node: the position of the op that it comes right after, its own if it
    // is one; -1: before all.
    std::vector<int32_t> position;
    std::vector<double> free;  // [checkpoint * resources + resource]
    std::vector<Progress> progress;
    std::vector<int32_t> events;  // made before it
  };

  // What the loops add up, and whether a step is certain to exceed a limit.
  struct Tally {
    Progress now;
    double area_us;  // sum over devices of when each is free
    double most_area_us, stop_above_us;

    // Adds an op that ends at `end` on a device that was free at `before`:
    // copies to others are left out of the area, which is then a lower bound.
    // `after`: the longest path from its end. Returns whether the step may
    // still be shorter.
    bool add(double before, double end, double least, double after) {
      now.latest_us = std::max(now.latest_us, end);
      now.left_us -= least;
      area_us += end - before;
      return !(end + after > stop_above_us ||
               area_us + now.left_us > most_area_us);
    }
    double result() const {
      return now.latest_us > stop_above_us ? kInfinity : now.latest_us;
    }
  };

  template <class T>
  static void copy_from(int32_t begin, const std::vector<T>& from,
                        std::vector<T>& to) {
    std::copy(from.begin() + begin, from.end(), to.begin() + begin);
  }

  // --- Trials that are not kept.

  void drop_trial() {
    if (has_trial_) take_back(kept_plan_);
    has_trial_ = false;
    plan_ = &kept_plan_;
    reached_ = t_.num_ops;
  }

  // Restores the spans and the log of the kept plan; the sequence of `plan`
  // names the ops that may differ.
  void take_back(const PlacePlan& plan) {
    for (int32_t k = first_; k < reached_; ++k) {
      const int32_t op = plan.sequence[k];
      trial_.span[op] = kept_.span[op];
    }
    for (const Event& e : log_.events_of_trial()) {
      if (e.to < 0) trial_.span[e.number] = kept_.span[e.number];
    }
    log_.drop_trial();
  }

  // --- Checkpoints.

  Tally load(int32_t checkpoint, double stop_above) {
    const auto from = kept_.free.begin() + checkpoint * free_.size();
    std::copy_n(from, free_.size(), free_.begin());
    const double most = stop_above * static_cast<double>(t_.num_devices);
    double area = 0;
    for (size_t d = 0; d < t_.num_devices; ++d) area += free_[d];
    return {kept_.progress[checkpoint], area,
            t_.work_us < kInfinity ? most * (1 + 1e-9) : kInfinity, stop_above};
  }
  void save(int32_t checkpoint, const Progress& progress) {
    std::ranges::copy(free_, trial_.free.begin() + checkpoint * free_.size());
    trial_.progress[checkpoint] = progress;
  }
  double time_from_first(double stop_above) {
    const int32_t checkpoint = first_ / stride_;
    first_ = checkpoint * stride_;
    Tally tally = load(checkpoint, stop_above);
    log_.begin_trial(kept_.events[checkpoint]);
    position_ = first_;
    const bool early = t_.early != 0;
    const int32_t* sequence = plan_->sequence.data();
    const int32_t* device = plan_->device.data();
    if (aliases_) find_positions();
    if (first_ == 0 && early) send_sources();
    for (reached_ = first_; reached_ < t_.num_ops;) {
      const int32_t op = sequence[reached_];
      const int32_t on = device[op];
      position_ = reached_++;
      const double before = free_[on];
      double start = 0;
      for (const TimingTables::Read& r : t_.reads[op]) {
        start = std::max(start, arrive(r, on));
      }
      for (const int32_t c : t_.graph.controls[op]) {
        start = std::max(start, end_of(c));
      }
      start = std::max(start, free_[on]);
      const double end = start + t_.us(op, on);
      trial_.span[op] = {start, end};
      free_[on] = end;
      if (!tally.add(before, end, t_.least_us[op], t_.behind_us[op])) {
        return kInfinity;
      }
      ++position_;
      if (early) send_values(op);
      if (early && aliases_) send_after(position_ - 1);
      if (reached_ % stride_ != 0) continue;
      save(reached_ / stride_, tally.now);
      trial_.events[reached_ / stride_] = log_.num_events();
    }
    for (const int32_t i : t_.timeless) {
      tally.now.latest_us = std::max(tally.now.latest_us, end_of(i));
    }
    return tally.result();
  }

  // Moves first_ to the first position where something changes.
  void find_first() {
    const auto n = static_cast<int32_t>(kept_plan_.device.size());
    const int32_t* now = plan_->device.data();
    const int32_t* kept = kept_plan_.device.data();
    for (int32_t i = 0; i < n; ++i) {
      if (now[i] != kept[i]) find_first_of(i);
    }
  }

  // As above, for a node that has moved to another device.
  void find_first_of(int32_t node) {
    const Kind kind = t_.graph.kind[node];
    if (kind == Kind::kTransfer) return;
    bool copied = false;  // something that it reads or makes
    for (const TimingTables::Read& r : t_.reads[node]) {
      if (r.everywhere || !are_apart(node, r.producer)) continue;
      copied = true;
      // Early copies come right after their producers.
      if (t_.early != 0) begin_at(kept_.position[r.producer]);
    }
    // What an op makes comes after it, no earlier than the caller knows.
    if (kind == Kind::kOp) return;
    for (const int32_t v : t_.graph.values[node]) {
      if (t_.graph.everywhere[v]) continue;
      for (const int32_t r : t_.graph.readers[v]) copied |= are_apart(node, r);
    }
    if (copied) begin_at(kept_.position[node]);
  }
  // In the kept plan or in the trial.
  bool are_apart(int32_t a, int32_t b) const {
    return plan_->device[a] != plan_->device[b] ||
           kept_plan_.device[a] != kept_plan_.device[b];
  }
  void begin_at(int32_t position) {
    first_ = std::min(first_, std::max(0, position));
  }

  // Finds the positions of all nodes, and lists those that take no time by
  // position.
  void find_positions() {
    std::vector<int32_t>& position = trial_.position;
    for (int32_t k = 0; k < t_.num_ops; ++k) position[plan_->sequence[k]] = k;
    std::fill(first_after_.begin() + (first_ == 0 ? 0 : first_ + 1),
              first_after_.end(), -1);
    for (const int32_t i : t_.timeless) {
      int32_t last = -1;
      for (const TimingTables::Read& r : t_.reads[i]) {
        last = std::max(last, position[r.producer]);
      }
      for (const int32_t c : t_.graph.controls[i]) {
        last = std::max(last, position[c]);
      }
      position[i] = last;
    }
    // In reverse, as each goes to the head of its list.
    for (auto it = t_.timeless.rbegin(); it != t_.timeless.rend(); ++it) {
      if (position[*it] < first_ && first_ > 0) continue;
      int32_t& head = first_after_[position[*it] + 1];
      next_after_[*it] = head;
      head = *it;
    }
  }

  void send_sources() {
    if (aliases_) return send_after(-1);
    for (const int32_t i : t_.timeless) send_values(i);
  }
  void send_after(int32_t position) {
    for (int32_t i = first_after_[position + 1]; i >= 0; i = next_after_[i]) {
      send_values(i);
    }
  }

  // Makes the early copies of the values of a node.
  void send_values(int32_t node) {
    const int32_t home = plan_->device[node];
    for (const int32_t v : t_.graph.values[node]) {
      if (t_.graph.everywhere[v]) continue;
      DeviceSet targets;
      for (const int32_t r : t_.graph.readers[v]) {
        targets |= device_bit(plan_->device[r]);
      }
      targets &= t_.early & ~device_bit(home);
      for (; targets; targets.drop_first()) {
        copy(v, home, targets.first(), end_of(node));
      }
    }
  }

  double end_of(int32_t node) {
    return must_settle(node) ? settle(node) : trial_.span[node].end_us;
  }
  bool must_settle(int32_t node) {
    return aliases_ && t_.graph.kind[node] == Kind::kAlias &&
           !log_.has_alias(node);
  }

  // Finds when an alias is there. Chains of aliases may be deeper than the
  // stack: each frame holds an alias and how many of its inputs have been
  // handled.
  double settle(int32_t alias) {
    settling_.assign(1, {alias, 0, 0});
    while (true) {
      Settling& s = settling_.back();
      const int32_t on = plan_->device[s.alias];
      const auto& reads = t_.reads[s.alias];
      const auto& controls = t_.graph.controls[s.alias];
      if (s.next < reads.size()) {
        const TimingTables::Read& r = reads[s.next];
        if (needs_end(r, on) && must_settle(r.producer)) {
          settling_.push_back({r.producer, 0, 0});
          continue;
        }
        s.at = std::max(s.at, arrive(r, on));
        ++s.next;
      } else if (s.next < reads.size() + controls.size()) {
        const int32_t c = controls[s.next - reads.size()];
        if (must_settle(c)) {
          settling_.push_back({c, 0, 0});
          continue;
        }
        s.at = std::max(s.at, end_of(c));
        ++s.next;
      } else {
        const double at = s.at;
        log_.add({s.alias, -1, position_, at, at});
        trial_.span[s.alias] = {at, at};
        settling_.pop_back();
        if (settling_.empty()) return at;
      }
    }
  }

  // Whether arrive() needs to know when the producer ended.
  bool needs_end(const TimingTables::Read& r, int32_t on) {
    if (plan_->device[r.producer] == on || r.everywhere) return true;
    return !t_.early.has(on) && !log_.has_copy(r.value, on);
  }

  // The time at which what is read is on a device. Early copies have been made.
  double arrive(const TimingTables::Read& r, int32_t on) {
    const int32_t home = plan_->device[r.producer];
    if (home == on || r.everywhere) return end_of(r.producer);
    if (const double* end = log_.copy_end(r.value, on, t_.early.has(on))) {
      return *end;
    }
    return copy(r.value, home, on, end_of(r.producer));
  }

  double copy(int32_t value, int32_t from, int32_t to, double ready) {
    const TimeSpan span = t_.routes.between(from, to).run(
        ready, t_.copy_us(value, from, to), free_.data());
    log_.add({value, to, position_, span.start_us, span.end_us});
    return span.end_us;
  }

  const TimingTables t_;
  const bool aliases_;  // whether there are any
  int32_t stride_ = kLeastStride;

  // The kept plan, and the one timed last; both are the same unless there is a
  // trial to accept.
  PlacePlan kept_plan_;
  const PlacePlan* plan_ = &kept_plan_;
  TimedStep kept_, trial_;
  CopyLog log_;
  bool has_trial_ = false;
  int32_t first_ = 0;    // position where timing began
  int32_t reached_ = 0;  // position after the last op timed

  // While a step is timed.
  std::vector<double> free_;          // per resource: when it is free
  int32_t position_ = 0;              // before the op being timed
  std::vector<int32_t> first_after_;  // per position + 1: head of a list
  std::vector<int32_t> next_after_;   // per node
  struct Settling {
    int32_t alias;
    size_t next;  // among its reads, then its controls
    double at;
  };
  std::vector<Settling> settling_;
  std::optional<PeakBytes> peak_;
};

}  // namespace berth

#endif  // BERTH_SIMULATE_STEP_TIMER_H_
