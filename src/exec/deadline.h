// DeadlineScope: a time limit for runs of plans that others built.
//
// A run with a deadline (program/deadline.h) that hangs keeps the memory of its
// run until it has ended; a plan that goes first leaves it behind.

#ifndef BERTH_EXEC_DEADLINE_H_
#define BERTH_EXEC_DEADLINE_H_

namespace berth {

// While it stands, runs that the thread begins have a deadline of their own:
// PlanOptions::timeout_seconds for callers that did not build the plan. 0:
// none.
class DeadlineScope {
 public:
  explicit DeadlineScope(double seconds) : saved_(current()) {
    if (seconds > 0) current() = seconds;
  }
  ~DeadlineScope() { current() = saved_; }
  DeadlineScope(const DeadlineScope&) = delete;
  DeadlineScope& operator=(const DeadlineScope&) = delete;
  // The deadline of the calling thread; 0: none.
  static double& current();

 private:
  const double saved_;
};

}  // namespace berth

#endif  // BERTH_EXEC_DEADLINE_H_
