// Two loops over a plan's sequence: one for machines whose copies wait for
// nothing, where an op's end follows from its inputs alone, and one for all.

#include "simulate/step_timer.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <vector>

#include "simulate/pair_slots.h"
#include "simulate/peak_bytes.h"
#include "simulate/timing_tables.h"

namespace berth {

namespace {

using Kind = SimulatedGraph::Kind;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Every stride_-th position stores when each resource becomes free: every 8th,
// or fewer where that would be too many numbers.
constexpr int32_t kLeastStride = 8;
constexpr size_t kMostRowNumbers = size_t{1} << 23;

// A finished copy or alias.
struct Done {
  double end_us = 0;
  int32_t event = -1;  // its index
  uint32_t trial = 0;
};

}  // namespace

class StepTimer::Impl {
 public:
  Impl(const SimulatedGraph& graph, const CostTable& costs) : t_(graph, costs) {
    const auto n = graph.kind.size();
    const auto ops = static_cast<size_t>(t_.num_ops);
    aliases_ = std::find(graph.kind.begin(), graph.kind.end(), Kind::kAlias) !=
               graph.kind.end();
    no_log_ = t_.all_free && !aliases_;
    const size_t devices = t_.num_devices;
    // Then the latest end of all and the remaining work.
    const size_t resources =
        no_log_ ? devices : static_cast<size_t>(t_.links.end);
    free_.assign(resources + 2, 0);
    latest_ = resources;
    left_ = resources + 1;
    while ((ops / stride_ + 1) * free_.size() > kMostRowNumbers &&
           stride_ < t_.num_ops) {
      stride_ *= 2;
    }
    rows_.assign((ops / stride_ + 1) * free_.size(), 0);
    tried_rows_ = rows_;
    span_.resize(n);
    kept_span_ = span_;
    kept_.sequence.resize(ops);
    kept_.device.assign(n, -1);
    if (no_log_) return;
    make_log();
    log_.resize(tried_log_.size());
    before_.resize(tried_log_.size());
    row_events_.assign(ops / stride_ + 1, 0);
    tried_row_events_ = row_events_;
    kept_stand_.assign(n, -1);
    if (!aliases_) return;
    stand_ = kept_stand_;
    behind_.assign(ops + 1, -1);
    next_behind_.assign(n, -1);
  }

  double decode(const PlacePlan& plan) {
    drop_tried();
    rows_[left_] = t_.work_us;  // before the first op all else is 0
    std::copy(plan.device.begin(), plan.device.end(), kept_.device.begin());
    first_ = 0;
    plan_ = &plan;
    tried_us_ = no_log_ ? run_free(kNever) : run_all(kNever);
    tried_ = true;
    accept();
    return kept_us_;
  }

  double try_from(const PlacePlan& changed, int32_t first, double stop_above) {
    drop_tried();
    plan_ = &changed;
    first_ = std::clamp(first, 0, t_.num_ops);
    find_first();
    tried_us_ = no_log_ ? run_free(stop_above) : run_all(stop_above);
    if (tried_us_ == kNever) {
      take_back(changed.sequence.data());
      plan_ = &kept_;
    } else {
      tried_ = true;
    }
    return tried_us_;
  }

  void accept() {
    if (!tried_) return;
    tried_ = false;
    kept_us_ = tried_us_;
    for (int32_t k = first_; k < t_.num_ops; ++k) {
      const int32_t op = plan_->sequence[k];
      kept_.sequence[k] = op;
      kept_.device[op] = plan_->device[op];
      kept_span_[op] = span_[op];
    }
    for (const int32_t i : t_.timeless) kept_.device[i] = plan_->device[i];
    plan_ = &kept_;
    const auto row = static_cast<ptrdiff_t>(first_ / stride_ + 1);
    const auto at = row * static_cast<ptrdiff_t>(free_.size());
    std::copy(tried_rows_.begin() + at, tried_rows_.end(), rows_.begin() + at);
    if (no_log_) return;
    std::copy(tried_row_events_.begin() + row, tried_row_events_.end(),
              row_events_.begin() + row);
    std::copy(tried_log_.begin() + first_event_, tried_log_.begin() + events_,
              log_.begin() + first_event_);
    for (int32_t e = first_event_; e < events_; ++e) {
      const int32_t number = log_[e].number;
      if (log_[e].to < 0) kept_span_[number] = span_[number];
    }
    kept_events_ = events_;
    if (aliases_) {
      kept_stand_.swap(stand_);
    } else {
      for (int32_t k = first_; k < t_.num_ops; ++k) {
        kept_stand_[kept_.sequence[k]] = k;
      }
    }
  }

  double step_us() const { return kept_us_; }
  std::span<const Span> spans() const { return span_; }
  const TimingTables& tables() const { return t_; }

  std::span<const Event> events() {
    if (no_log_) {
      list_copies();
      return {tried_log_.data(), static_cast<size_t>(events_)};
    }
    if (!tried_) return {log_.data(), static_cast<size_t>(kept_events_)};
    // The trial has only its own part.
    std::copy(log_.begin(), log_.begin() + first_event_, tried_log_.begin());
    return {tried_log_.data(), static_cast<size_t>(events_)};
  }

  std::span<const int64_t> peak_bytes() {
    if (!peak_) peak_.emplace(t_.graph, t_.costs, t_.order);
    return peak_->compute(*plan_, span_, events());
  }

 private:
  // --- Trials that are not kept.

  void drop_tried() {
    if (tried_) take_back(kept_.sequence.data());
    tried_ = false;
    plan_ = &kept_;
    reached_ = t_.num_ops;
  }

  // Restores the spans and the log of the kept plan; from first_ to reached_,
  // `sequence` names the ops that may differ.
  void take_back(const int32_t* sequence) {
    for (int32_t k = first_; k < reached_; ++k) {
      span_[sequence[k]] = kept_span_[sequence[k]];
    }
    if (no_log_) return;
    for (int32_t e = first_event_; e < events_; ++e) {
      const Event& event = tried_log_[e];
      done_[slot_of(event)] = before_[e];
      if (event.to < 0) span_[event.number] = kept_span_[event.number];
    }
  }

  // --- What has finished: copies by value and destination, then aliases.

  size_t copy_slot(int32_t value, int32_t to) {
    if (pairs_) {
      const auto slot =
          num_alias_slots_ + static_cast<size_t>(pairs_->slot(value, to));
      if (slot == done_.size()) done_.emplace_back();
      return slot;
    }
    return num_alias_slots_ + static_cast<size_t>(value) * t_.num_devices +
           static_cast<size_t>(to);
  }
  size_t alias_slot(int32_t node) const { return static_cast<size_t>(node); }
  size_t slot_of(const Event& e) {
    return e.to >= 0 ? copy_slot(e.number, e.to) : alias_slot(e.number);
  }
  // In this trial, or in the part of the kept plan before it.
  bool is_done(size_t slot) {
    const Done d = done_[slot];
    return d.trial == trial_ || (d.event >= 0 && d.event < first_event_ &&
                                 slot_of(log_[d.event]) == slot);
  }
  void note(const Event& e) {
    Done& d = done_[slot_of(e)];
    if (!no_log_) before_[events_] = d;
    d = {e.end_us, events_, trial_};
    tried_log_[events_++] = e;
  }
  void begin_trial() {
    if (pairs_ && pairs_->is_full()) number_anew();
    if (++trial_ != 0) return;
    for (Done& d : done_) d.trial = 0;  // all numbers are used up
    trial_ = 1;
  }

  void make_log() {
    num_alias_slots_ = aliases_ ? t_.graph.kind.size() : 0;
    done_.resize(num_alias_slots_);
    if (t_.num_values * t_.num_devices > PairSlots::kMostInTable) {
      pairs_.emplace(reads_of(t_.graph));
    } else {
      done_.resize(num_alias_slots_ + t_.num_values * t_.num_devices);
    }
    tried_log_.resize(max_copies(t_.graph, t_.costs) + t_.timeless.size());
  }

  // Forgets the pairs that the kept plan does not have.
  void number_anew() {
    pairs_->clear();
    done_.resize(num_alias_slots_);
    for (int32_t e = 0; e < kept_events_; ++e) {
      if (log_[e].to >= 0) done_[slot_of(log_[e])] = {log_[e].end_us, e, 0};
    }
  }

  // For copies that wait for nothing and are not logged.
  void list_copies() {
    if (tried_log_.empty()) make_log();
    begin_trial();
    events_ = position_ = 0;
    for (const int32_t i : t_.timeless) send_values(i);
    for (const int32_t op : plan_->sequence) {
      ++position_;
      send_values(op);
    }
  }

  // --- Rows.

  void load_row(int32_t row) {
    const double* from = rows_.data() + static_cast<size_t>(row) * free_.size();
    std::copy(from, from + free_.size(), free_.begin());
  }
  void save_row(int32_t row) {
    std::copy(
        free_.begin(), free_.end(),
        tried_rows_.begin() +
            static_cast<ptrdiff_t>(static_cast<size_t>(row) * free_.size()));
  }

  // --- Copies that wait for nothing.

  double run_free(double stop_above) {
    const int32_t* sequence = plan_->sequence.data();
    const int32_t* device = plan_->device.data();
    const TimingTables::Edge* edges = t_.edges.data();
    const int32_t* edges_of = t_.edges_of.data();
    const double* behind = t_.behind_us.data();
    double* free = free_.data();
    Span* span = span_.data();
    const int32_t row = first_ / stride_;
    load_row(row);
    double latest = free[latest_], left = free[left_];
    for (int32_t k = row * stride_; k < first_; ++k) {
      const int32_t op = sequence[k];
      free[device[op]] = span[op].end_us;
      latest = std::max(latest, span[op].end_us);
      left -= t_.least_us[op];
    }
    double area = area_now();
    const double most = most_area(stop_above);
    for (int32_t k = first_; k < t_.num_ops;) {
      const int32_t op = sequence[k];
      const int32_t on = device[op];
      const double before = free[on];
      double start = before;
      for (int32_t e = edges_of[op]; e < edges_of[op + 1]; ++e) {
        const int32_t from = device[edges[e].producer];
        start = std::max(start, span[edges[e].producer].end_us +
                                    free_copy_us(edges[e], from, on));
      }
      const double end = start + t_.us(op, on);
      span[op] = {start, end};
      free[on] = end;
      latest = std::max(latest, end);
      left -= t_.least_us[op];
      area += end - before;
      ++k;
      if (end + behind[op] > stop_above || area + left > most) {
        reached_ = k;
        return kNever;
      }
      if (k % stride_ != 0) continue;
      free[latest_] = latest;
      free[left_] = left;
      save_row(k / stride_);
    }
    reached_ = t_.num_ops;
    return latest > stop_above ? kNever : latest;
  }

  double free_copy_us(const TimingTables::Edge& edge, int32_t from,
                      int32_t to) const {
    if (t_.few_kinds) {
      return t_
          .kind_us[static_cast<size_t>(edge.times) + t_.kind_of_link(from, to)];
    }
    const auto value = static_cast<size_t>(edge.times) / t_.num_kinds;
    return value == t_.num_values
               ? 0
               : t_.copy_us(static_cast<int32_t>(value), from, to);
  }

  // The sum over devices of when each is free: each remaining op adds its time,
  // and no device may be free after the end.
  double area_now() const {
    double area = 0;
    for (size_t d = 0; d < t_.num_devices; ++d) area += free_[d];
    return area;
  }
  double most_area(double stop_above) const {
    const double most = stop_above * static_cast<double>(t_.num_devices);
    return t_.work_us < kNever ? most * (1 + 1e-9) : kNever;
  }

  // --- All rules.

  double run_all(double stop_above) {
    first_ = first_ / stride_ * stride_;
    const int32_t* sequence = plan_->sequence.data();
    const int32_t* device = plan_->device.data();
    const int32_t row = first_ / stride_;
    load_row(row);
    events_ = first_event_ = first_ == 0 ? 0 : row_events_[row];
    begin_trial();
    double latest = free_[latest_], left = free_[left_];
    double area = area_now();
    const double most = most_area(stop_above);
    position_ = first_;
    const bool lists = t_.eager != 0 && aliases_;
    if (aliases_) find_stands();
    if (first_ == 0 && t_.eager != 0) send_front();
    for (int32_t k = first_; k < t_.num_ops;) {
      const int32_t op = sequence[k];
      const int32_t on = device[op];
      position_ = k;
      const double before = free_[on];
      double start = 0;
      for (const TimingTables::Read& r : t_.reads[op]) {
        start = std::max(start, arrive(r, on));
      }
      for (const int32_t c : t_.graph.controls[op]) {
        start = std::max(start, done(c));
      }
      start = std::max(start, free_[on]);
      const double end = start + t_.us(op, on);
      area += end - before;  // leaves out copies to others: a lower bound
      left -= t_.least_us[op];
      span_[op] = {start, end};
      free_[on] = end;
      latest = std::max(latest, end);
      ++k;
      if (end + t_.behind_us[op] > stop_above || area + left > most) {
        reached_ = k;
        return kNever;
      }
      position_ = k;
      if (t_.eager != 0) send_values(op);
      if (lists) send_behind(k - 1);
      if (k % stride_ != 0) continue;
      free_[latest_] = latest;
      free_[left_] = left;
      save_row(k / stride_);
      tried_row_events_[k / stride_] = events_;
    }
    for (const int32_t i : t_.timeless) latest = std::max(latest, done(i));
    reached_ = t_.num_ops;
    return latest > stop_above ? kNever : latest;
  }

  // Moves first_ to the first position where something changes.
  void find_first() {
    const auto n = static_cast<int32_t>(kept_.device.size());
    const int32_t* now = plan_->device.data();
    const int32_t* kept = kept_.device.data();
    constexpr int32_t kBlock = 64;
    for (int32_t i = 0; i < n; i += kBlock) {
      int32_t differ = 0;
      if (i + kBlock <= n) {
        for (int32_t k = 0; k < kBlock; ++k) differ |= now[i + k] ^ kept[i + k];
        if (differ == 0) continue;
      }
      for (int32_t k = i; k < std::min(n, i + kBlock); ++k) {
        if (now[k] != kept[k]) find_first_of(k);
      }
    }
  }

  // The same for a node that has moved to another device.
  void find_first_of(int32_t node) {
    const Kind kind = t_.graph.kind[node];
    if (kind == Kind::kTransfer) return;
    if (no_log_) {
      if (kind != Kind::kOp) first_ = 0;
      return;
    }
    bool copied = false;  // something that it reads or makes
    for (const TimingTables::Read& r : t_.reads[node]) {
      if (r.everywhere || !are_apart(node, r.producer)) continue;
      copied = true;
      // Eager copies come right after their producers.
      if (t_.eager != 0) begin_at(kept_stand_[r.producer]);
    }
    // What an op makes comes after it, no earlier than the caller knows.
    if (kind == Kind::kOp) return;
    for (const int32_t v : t_.graph.values[node]) {
      if (t_.graph.everywhere[v]) continue;
      for (const int32_t r : t_.graph.readers[v]) copied |= are_apart(node, r);
    }
    if (copied) begin_at(kept_stand_[node]);
  }
  // In the kept plan or in the trial.
  bool are_apart(int32_t a, int32_t b) const {
    return plan_->device[a] != plan_->device[b] ||
           kept_.device[a] != kept_.device[b];
  }
  void begin_at(int32_t position) {
    first_ = std::min(first_, std::max(0, position));
  }

  // Finds the position after which each node comes (-1: before the first), and
  // lists the nodes that take no time by position.
  void find_stands() {
    for (int32_t k = 0; k < t_.num_ops; ++k) stand_[plan_->sequence[k]] = k;
    std::fill(behind_.begin() + (first_ == 0 ? 0 : first_ + 1), behind_.end(),
              -1);
    for (const int32_t i : t_.timeless) {
      int32_t stand = -1;
      for (const TimingTables::Read& r : t_.reads[i]) {
        stand = std::max(stand, stand_[r.producer]);
      }
      for (const int32_t c : t_.graph.controls[i]) {
        stand = std::max(stand, stand_[c]);
      }
      stand_[i] = stand;
    }
    // In reverse, as each goes to the head of its list.
    for (auto it = t_.timeless.rbegin(); it != t_.timeless.rend(); ++it) {
      const int32_t stand = stand_[*it];
      if (stand < first_ && first_ > 0) continue;
      next_behind_[*it] = behind_[stand + 1];
      behind_[stand + 1] = *it;
    }
  }

  void send_front() {
    if (aliases_) return send_behind(-1);
    for (const int32_t i : t_.timeless) send_values(i);
  }
  void send_behind(int32_t position) {
    for (int32_t i = behind_[position + 1]; i >= 0; i = next_behind_[i]) {
      send_values(i);
    }
  }

  // Copies the values of a node to the overlapping devices that read them.
  void send_values(int32_t node) {
    const int32_t home = plan_->device[node];
    for (const int32_t v : t_.graph.values[node]) {
      if (t_.graph.everywhere[v]) continue;
      DeviceSet targets;
      for (const int32_t r : t_.graph.readers[v]) {
        targets |= device_bit(plan_->device[r]);
      }
      targets &= t_.eager & ~device_bit(home);
      for (; targets; targets.drop_first()) {
        copy(v, home, targets.first(), done(node));
      }
    }
  }

  // The time at which a node has ended.
  double done(int32_t node) {
    if (!aliases_ || t_.graph.kind[node] != Kind::kAlias) {
      return span_[node].end_us;
    }
    const size_t slot = alias_slot(node);
    return is_done(slot) ? done_[slot].end_us : settle(node);
  }

  bool waits_for_settling(int32_t node) {
    return t_.graph.kind[node] == Kind::kAlias && !is_done(alias_slot(node));
  }

  // Chains of aliases may be deeper than the stack: each frame holds an alias
  // and how many of its inputs have been handled.
  double settle(int32_t alias) {
    settling_.assign(1, {alias, 0, 0});
    while (true) {
      Settling& s = settling_.back();
      const int32_t on = plan_->device[s.alias];
      const auto& reads = t_.reads[s.alias];
      const auto& controls = t_.graph.controls[s.alias];
      if (s.next < reads.size()) {
        const TimingTables::Read& r = reads[s.next];
        if (needs_end(r, on) && waits_for_settling(r.producer)) {
          settling_.push_back({r.producer, 0, 0});
          continue;
        }
        s.at = std::max(s.at, arrive(r, on));
        ++s.next;
      } else if (s.next < reads.size() + controls.size()) {
        const int32_t c = controls[s.next - reads.size()];
        if (waits_for_settling(c)) {
          settling_.push_back({c, 0, 0});
          continue;
        }
        s.at = std::max(s.at, done(c));
        ++s.next;
      } else {
        const double at = s.at;
        note({s.alias, -1, position_, at, at});
        span_[s.alias] = {at, at};
        settling_.pop_back();
        if (settling_.empty()) return at;
      }
    }
  }

  // Whether arrive() needs to know when the producer ended.
  bool needs_end(const TimingTables::Read& r, int32_t on) {
    if (plan_->device[r.producer] == on || r.everywhere) return true;
    return !t_.eager.has(on) && !is_done(copy_slot(r.value, on));
  }

  // The time at which what is read is on a device.
  double arrive(const TimingTables::Read& r, int32_t on) {
    const int32_t home = plan_->device[r.producer];
    if (home == on || r.everywhere) return done(r.producer);
    const size_t slot = copy_slot(r.value, on);
    // Eager ones have been made.
    if (t_.eager.has(on) || is_done(slot)) return done_[slot].end_us;
    return copy(r.value, home, on, done(r.producer));
  }

  double copy(int32_t value, int32_t from, int32_t to, double ready) {
    const CopyRoute route = t_.route(from, to);
    double start = ready;
    for (const int32_t n : route) start = std::max(start, free_[n]);
    const double end = start + t_.copy_us(value, from, to);
    for (const int32_t n : route) free_[n] = end;
    note({value, to, position_, start, end});
    return end;
  }

  const TimingTables t_;
  bool aliases_ = false;  // whether there are any
  bool no_log_ = false;   // copies are not logged: run_free()
  int32_t stride_ = kLeastStride;

  struct Settling {
    int32_t alias;
    size_t next;  // among its reads, then its controls
    double at;
  };
  std::vector<Settling> settling_;

  // State of the plan decoded last.
  std::vector<Span> span_;    // per node
  std::vector<double> free_;  // per resource; [latest_], [left_]
  size_t latest_ = 0;         // index of the latest end of all
  size_t left_ = 0;           // index of the work not yet decoded
  std::vector<Done> done_;    // per slot
  size_t num_alias_slots_ = 0;
  std::optional<PairSlots> pairs_;  // copies have slots as they come up

  // The steps of the kept plan and of the trial (tried_), from first_ on.
  double kept_us_ = 0, tried_us_ = 0;
  std::vector<Span> kept_span_;
  PlacePlan kept_;
  std::vector<double> rows_, tried_rows_;
  std::vector<Event> log_, tried_log_;
  std::vector<Done> before_;  // per event of the trial: the slot's old contents
  int32_t kept_events_ = 0, events_ = 0;
  std::vector<int32_t> row_events_, tried_row_events_;
  std::vector<int32_t> kept_stand_, stand_;  // per node: at or after position

  // The trial.
  const PlacePlan* plan_ = nullptr;
  uint32_t trial_ = 0;                // its number
  int32_t position_ = 0;              // before the op being decoded
  bool tried_ = false;                // there is a trial to accept
  int32_t first_ = 0;                 // position where decoding began
  int32_t first_event_ = 0;           // index of the first event from there
  int32_t reached_ = 0;               // position after the last op decoded
  std::vector<int32_t> behind_;       // per position + 1: first of a list
  std::vector<int32_t> next_behind_;  // per node
  std::optional<PeakBytes> peak_;
};

StepTimer::StepTimer(const SimulatedGraph& graph, const CostTable& costs)
    : impl_(std::make_unique<Impl>(graph, costs)) {}
StepTimer::~StepTimer() = default;
StepTimer::StepTimer(StepTimer&&) noexcept = default;
StepTimer& StepTimer::operator=(StepTimer&&) noexcept = default;

double StepTimer::decode(const PlacePlan& plan) { return impl_->decode(plan); }
double StepTimer::try_from(const PlacePlan& changed, int32_t first,
                           double stop_above) {
  return impl_->try_from(changed, first, stop_above);
}
void StepTimer::accept() { impl_->accept(); }
double StepTimer::step_us() const { return impl_->step_us(); }
std::span<const StepTimer::Span> StepTimer::spans() const {
  return impl_->spans();
}
std::span<const int64_t> StepTimer::peak_bytes() { return impl_->peak_bytes(); }
std::span<const int32_t> StepTimer::topological_order() const {
  return impl_->tables().order;
}
double StepTimer::path_behind_us(int32_t node) const {
  return impl_->tables().behind_us[static_cast<size_t>(node)];
}
std::span<const StepTimer::Event> StepTimer::events() {
  return impl_->events();
}
double StepTimer::copy_us(int32_t value, int32_t from, int32_t to) const {
  return impl_->tables().copy_us(value, from, to);
}

}  // namespace berth
