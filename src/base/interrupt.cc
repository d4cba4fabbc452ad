#include "base/interrupt.h"

#include <time.h>

#include <cstdint>

#include "berth/errors.h"

namespace berth {

namespace {

std::atomic<bool (*)() noexcept> g_ask{nullptr};

constinit thread_local std::atomic<bool> t_interrupted{false};
constinit thread_local std::atomic<bool>* t_works_for = nullptr;
constinit thread_local int64_t t_asked_ms = 0;
constinit std::atomic<bool> g_never{false};

}  // namespace

void set_interrupt_ask(bool (*ask)() noexcept) { g_ask = ask; }

void ask_interrupt() noexcept {
  const auto ask = g_ask.load(std::memory_order_relaxed);
  if (ask == nullptr || t_works_for != nullptr) return;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // each turn of a loop is here
  const int64_t now_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
  if (now_ms - t_asked_ms < kAskEach.count()) return;
  t_asked_ms = now_ms;
  if (ask()) t_interrupted = true;
}

void check_interrupt() {
  ask_interrupt();
  if (!interrupt_of_call()->load(std::memory_order_relaxed)) return;
  throw errors::Cancelled("interrupted");
}

void clear_interrupt() noexcept { t_interrupted = false; }

std::atomic<bool>* interrupt_of_call() noexcept {
  return t_works_for != nullptr ? t_works_for : &t_interrupted;
}

WorksFor::WorksFor(std::atomic<bool>* caller) noexcept : before_(t_works_for) {
  if (caller == nullptr) {
    t_works_for = &g_never;
  } else {
    t_works_for = caller == &t_interrupted ? nullptr : caller;
  }
}
WorksFor::~WorksFor() { t_works_for = before_; }

}  // namespace berth
