// CopyLog: the copies and aliases of a kept plan and of a trial that begins
// like it.
//
// A trial shares the first events of the kept plan; dropping it restores what
// it wrote. Internal to the module; one thread.

#ifndef BERTH_SIMULATE_COPY_LOG_H_
#define BERTH_SIMULATE_COPY_LOG_H_

#include <algorithm>
#include <span>
#include <vector>

#include "simulate/pair_slots.h"
#include "simulate/peak_bytes.h"
#include "simulate/timing_tables.h"

namespace berth {

class CopyLog {
 public:
  using Event = StepEvent;

  CopyLog(const TimingTables& tables, bool aliases)
      : t_(tables),
        num_aliases_(aliases ? tables.graph.kind.size() : 0),
        pairs_(t_.graph, t_.num_devices),
        done_(num_aliases_ + pairs_.size()) {
    trial_.resize(max_copies(t_.graph, t_.costs) + t_.timeless.size());
    kept_.resize(trial_.size());
    before_.resize(trial_.size());
  }

  // Begins a trial with the first `shared` events of the kept plan.
  void begin_trial(int32_t shared) {
    shared_ = num_events_ = shared;
    if (pairs_.is_full()) number_anew();
    if (++trial_number_ != 0) return;
    for (Done& d : done_) d.trial = 0;  // all numbers are used up
    trial_number_ = 1;
  }
  void add(const Event& e) {
    Done& d = done_[slot_of(e)];
    before_[num_events_] = d;
    d = {e.end_us, num_events_, trial_number_};
    trial_[num_events_++] = e;
  }
  void keep_trial() {
    std::ranges::copy(events_of_trial(), kept_.begin() + shared_);
    num_kept_ = num_events_;
  }
  void drop_trial() {
    for (int32_t e = shared_; e < num_events_; ++e) {
      done_[slot_of(trial_[e])] = before_[e];
    }
  }

  // In this trial, or in the part of the kept plan that it shares.
  bool has_alias(int32_t node) { return is_done(node); }
  bool has_copy(int32_t value, int32_t to) { return is_done(slot(value, to)); }
  // When a copy ends; null: it has not been made, unless that is `sure`.
  const double* copy_end(int32_t value, int32_t to, bool sure) {
    const size_t at = slot(value, to);
    return sure || is_done(at) ? &done_[at].end_us : nullptr;
  }

  int32_t num_events() const { return num_events_; }
  std::span<const Event> kept_events() const {
    return std::span(kept_).first(num_kept_);
  }
  std::span<const Event> events_of_trial() const {
    return std::span(trial_).subspan(shared_, num_events_ - shared_);
  }
  // All of the trial.
  std::span<const Event> events() {
    std::copy_n(kept_.begin(), shared_, trial_.begin());
    return std::span(trial_).first(num_events_);
  }

 private:
  // A finished copy or alias.
  struct Done {
    double end_us = 0;
    int32_t event = -1;  // its index
    uint32_t trial = 0;
  };

  // Aliases come first, then pairs of value and destination.
  size_t slot(int32_t value, int32_t to) {
    const size_t at = num_aliases_ + pairs_.slot(value, to);
    if (at == done_.size()) done_.emplace_back();
    return at;
  }
  size_t slot_of(const Event& e) {
    return e.to >= 0 ? slot(e.number, e.to) : e.number;
  }
  bool is_done(size_t at) {
    const Done d = done_[at];
    return d.trial == trial_number_ ||
           (d.event >= 0 && d.event < shared_ && slot_of(kept_[d.event]) == at);
  }

  // Forgets the pairs that the kept plan does not have.
  void number_anew() {
    pairs_.clear();
    done_.resize(num_aliases_);
    for (int32_t e = 0; e < num_kept_; ++e) {
      if (kept_[e].to >= 0) {
        done_[slot_of(kept_[e])] = {kept_[e].end_us, e, 0};
      }
    }
  }

  const TimingTables& t_;
  const size_t num_aliases_;
  PairSlots pairs_;
  std::vector<Done> done_;    // per slot
  std::vector<Done> before_;  // per event of the trial: what it replaced
  std::vector<Event> kept_, trial_;
  int32_t num_kept_ = 0, num_events_ = 0, shared_ = 0;
  uint32_t trial_number_ = 0;
};

}  // namespace berth

#endif  // BERTH_SIMULATE_COPY_LOG_H_
