#include "program/deadline.h"

#include <algorithm>
#include <thread>

namespace berth {

Deadline::Deadline(double seconds) : set_(seconds > 0), seconds_(seconds) {
  if (!set_) return;
  // Longer than anybody waits, and far from where the clock ends.
  constexpr double kMost = 1e8;
  end_ = std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::duration<double>(std::min(seconds, kMost)));
}

bool Deadline::wait(const Event& event) const {
  if (!set_ || event.stream == nullptr) return true;
  constexpr int kPolls = 1000;  // before sleeping in between
  for (int i = 0; !event.stream->done(event); ++i) {
    if (std::chrono::steady_clock::now() >= end_) return false;
    if (i > kPolls) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace berth
