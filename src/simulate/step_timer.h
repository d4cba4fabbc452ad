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

#include <cstdint>
#include <memory>
#include <span>

#include "simulate/copy_route.h"
#include "simulate/simulate.h"

namespace berth {

class StepTimer {
 public:
  // A copy of a value, or (to = -1) an alias.
  struct Event {
    int32_t number;    // of the value, or of the alias node
    int32_t to;        // device
    int32_t position;  // in the sequence, before the op there
    double start_us, end_us;
  };

  // Throws errors::InvalidArgument when the costs belong to another graph or
  // machine, or the graph has a cycle.
  StepTimer(const SimulatedGraph& graph, const CostTable& costs);
  ~StepTimer();
  StepTimer(StepTimer&&) noexcept;
  StepTimer& operator=(StepTimer&&) noexcept;

  // Plans given below must have a device for every node, and every op that
  // takes time once in the sequence, after what it waits for (check_plan); this
  // is not checked here. Impossible steps, where a device has no kernel for an
  // op, take infinitely long.

  // Times a plan from its beginning and keeps it. Returns its step time.
  double run(const PlacePlan& plan);

  // Times a plan that differs from the kept one only in the sequence from
  // position `first` on, in the devices of ops from there on, and in those of
  // nodes that take no time. Returns its step time; infinity as soon as it is
  // certain to exceed `stop_above`, that is, when an op's end plus the least
  // time of the longest path after it does. The kept plan stays.
  double try_from(const PlacePlan& changed, int32_t first, double stop_above);

  // Keeps the plan that was tried last, which must not have changed since and
  // whose step was finite. O(positions from `first` + nodes without time).
  void accept();

  // The step of the kept plan.
  double step_us() const;

  // Spans of the plan timed last: the trial, or the kept plan if the trial
  // was stopped.
  std::span<const TimeSpan> spans() const;

  // The most bytes that are live at once on each device, by the simulator's
  // rules, in the plan timed last; if that one is not kept, it must not have
  // changed since. O(n log n).
  std::span<const int64_t> peak_bytes();

  // All nodes in an order in which none comes before what it waits for.
  std::span<const int32_t> topological_order() const;

  // Copies, and the aliases between them, of the plan timed last (as above),
  // in its order. Valid until the next call.
  std::span<const Event> events();

  // The time of one copy.
  double copy_us(int32_t value, int32_t from, int32_t to) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth

#endif  // BERTH_SIMULATE_STEP_TIMER_H_
