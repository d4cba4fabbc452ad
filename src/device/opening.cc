#include "device/opening.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace berth {

namespace {

std::atomic<int> g_opening{0};
std::atomic<bool> g_leaving{false};

// Runs with the ends of libraries; destroys nothing.
[[gnu::destructor]] void leave() {
  g_leaving = true;
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (g_opening > 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

Opening::Opening() {
  ++g_opening;
  allowed_ = !g_leaving;
  if (!allowed_) --g_opening;
}

Opening::~Opening() {
  if (allowed_) --g_opening;
}

}  // namespace berth
