// Deadline: a time by which a run must have ended.
//
// A run with a deadline is waited for, by polling, so that a device that hangs
// cannot hang the caller. What hangs keeps the memory of its run until it has
// ended; a plan that goes first leaves it behind. A value; thread-safe.

#ifndef BERTH_EXEC_DEADLINE_H_
#define BERTH_EXEC_DEADLINE_H_

#include <chrono>

#include "device/stream.h"

namespace berth {

class Deadline {
 public:
  Deadline() = default;
  // `seconds` from now; 0: never.
  explicit Deadline(double seconds);

  bool is_set() const { return set_; }
  double seconds() const { return seconds_; }  // that there were
  // Polls until the event is reached, failed or not; false when the time is
  // over. Returns at once when there is no deadline.
  bool wait(const Event& event) const;

 private:
  bool set_ = false;
  double seconds_ = 0;
  std::chrono::steady_clock::time_point end_ = {};
};

// While it stands, runs that the thread begins have a deadline of their own:
// PlanOptions::timeout_seconds for whoever did not build the plan. 0: none.
class DeadlineScope {
 public:
  explicit DeadlineScope(double seconds) : saved_(current()) {
    if (seconds > 0) current() = seconds;
  }
  ~DeadlineScope() { current() = saved_; }
  DeadlineScope(const DeadlineScope&) = delete;
  DeadlineScope& operator=(const DeadlineScope&) = delete;
  // Of the calling thread; 0: none.
  static double& current();

 private:
  const double saved_;
};

}  // namespace berth

#endif  // BERTH_EXEC_DEADLINE_H_
