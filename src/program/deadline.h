// Deadline: a time by which a run must have ended.
//
// A run with a deadline is waited for, by polling, so that a device that hangs
// cannot hang the caller. A value; thread-safe.

#ifndef BERTH_PROGRAM_DEADLINE_H_
#define BERTH_PROGRAM_DEADLINE_H_

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

}  // namespace berth

#endif  // BERTH_PROGRAM_DEADLINE_H_
