// spin_until: waits a short time without giving the core away.
//
// Bounded by the clock: a count of pauses is not a time. Any thread.

#ifndef BERTH_BASE_SPIN_H_
#define BERTH_BASE_SPIN_H_

#include <chrono>

namespace berth {

// Tells the core that this is a spinning loop.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("" ::: "memory");
#endif
}

// Spins until `ready()` or until the time is over; returns what it said last.
template <class Ready>
bool spin_until(int microseconds, Ready ready) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point limit =
      Clock::now() + std::chrono::microseconds(microseconds);
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      spin_pause();
    }
  } while (Clock::now() < limit);
  return ready();
}

}  // namespace berth

#endif  // BERTH_BASE_SPIN_H_
