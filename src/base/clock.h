// The host's clock, as times of work are read. Thread-safe.

#ifndef BERTH_BASE_CLOCK_H_
#define BERTH_BASE_CLOCK_H_

#include <chrono>

namespace berth {

// Microseconds of a clock that never goes back.
inline double host_clock_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace berth

#endif  // BERTH_BASE_CLOCK_H_
