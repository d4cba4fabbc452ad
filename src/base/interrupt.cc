#include "base/interrupt.h"

#include "base/clock.h"
#include "berth/errors.h"

namespace berth {

namespace {

std::atomic<bool (*)() noexcept> g_ask{nullptr};

constinit thread_local std::atomic<bool> t_interrupted{false};
constinit thread_local std::atomic<bool>* t_works_for = nullptr;
constinit thread_local double t_asked_us = 0;
constinit std::atomic<bool> g_never{false};

}  // namespace

void set_interrupt_ask(bool (*ask)() noexcept) { g_ask = ask; }

void ask_interrupt() noexcept {
  const auto ask = g_ask.load(std::memory_order_relaxed);
  if (ask == nullptr || t_works_for != nullptr) return;
  const double now = host_clock_us();
  if (now - t_asked_us < std::chrono::microseconds(kAskEach).count()) return;
  t_asked_us = now;
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
