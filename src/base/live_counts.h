// What a process did so far, counted while somebody may ask (`berth top`). Off,
// it costs one load. Thread-safe.

#ifndef BERTH_BASE_LIVE_COUNTS_H_
#define BERTH_BASE_LIVE_COUNTS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"

namespace berth::live_counts {

inline std::atomic<bool> g_is_on{false};
inline bool is_on() { return g_is_on.load(std::memory_order_relaxed); }

struct Counts {
  std::map<std::string, int64_t> calls;  // that ended, by function
  double input_wait_us = 0;
};

void add_call(const std::string& function);
void add_input_wait(double us);
Counts read();

// Adds how long it lives as a wait for input.
class InputWait {
 public:
  InputWait() : begin_us_(is_on() ? host_clock_us() : -1) {}
  ~InputWait() {
    if (begin_us_ >= 0) add_input_wait(host_clock_us() - begin_us_);
  }
  InputWait(const InputWait&) = delete;
  InputWait& operator=(const InputWait&) = delete;

 private:
  const double begin_us_;
};

}  // namespace berth::live_counts

#endif  // BERTH_BASE_LIVE_COUNTS_H_
