#include "device/opening.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace berth {

namespace {

std::atomic<int> g_opening{0};
std::atomic<bool> g_leaving{false};

// Waits for threads that open libraries, once; destroys nothing.
void leave(int = 0, void* = nullptr) {
  if (g_leaving.exchange(true)) return;
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (g_opening > 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (g_opening > 0) {
    std::fputs(
        "berth: a thread has been opening devices for ten seconds since the "
        "process began to exit; it exits without waiting any longer\n",
        stderr);
  }
}

// For a process in which nothing was opened before it left.
[[gnu::destructor]] void leave_at_end_of_library() { leave(); }

}  // namespace

Opening::Opening() {
  // Registered by a running program, so that it comes before all libraries end.
  [[maybe_unused]] static const int registered = on_exit(leave, nullptr);
  ++g_opening;
  allowed_ = !g_leaving;
  if (!allowed_) --g_opening;
}

Opening::~Opening() {
  if (allowed_) --g_opening;
}

}  // namespace berth
