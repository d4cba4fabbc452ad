// Interrupts: how Ctrl-C reaches a call that takes long.
//
// A binding of another language says whether the calling thread is to give up
// what it does: Python runs its signal handlers then. Waits of that thread ask
// now and then; loops, also those that another thread runs for it, look at the
// answer in each turn. Without a binding nothing is asked. Any thread.

#ifndef BERTH_BASE_INTERRUPT_H_
#define BERTH_BASE_INTERRUPT_H_

#include <atomic>
#include <chrono>

namespace berth {

constexpr std::chrono::milliseconds kAskEach{50};

// `ask` is true when the thread that calls it is to give up. It is called with
// no lock held, on any thread, and throws nothing.
void set_interrupt_ask(bool (*ask)() noexcept);

// Asks for the calling thread, unless it asked less than kAskEach ago.
void ask_interrupt() noexcept;
// Throws errors::Cancelled when the call that the thread works for has been
// interrupted; asks first where the thread works for itself.
void check_interrupt();
// The binding has told the user.
void clear_interrupt() noexcept;

// The interrupt of the calling thread's call, for a thread that works for it.
// Null: what runs in this block is not to be interrupted.
std::atomic<bool>* interrupt_of_call() noexcept;
class WorksFor {
 public:
  explicit WorksFor(std::atomic<bool>* caller) noexcept;
  ~WorksFor();
  WorksFor(const WorksFor&) = delete;
  WorksFor& operator=(const WorksFor&) = delete;

 private:
  std::atomic<bool>* before_;
};

// changed.wait(lock, ready) that asks.
template <class Changed, class Lock, class Ready>
void wait_asking(Changed& changed, Lock& lock, const Ready& ready) {
  while (!changed.wait_for(lock, kAskEach, ready)) {
    lock.unlock();
    ask_interrupt();
    lock.lock();
  }
}

}  // namespace berth

#endif  // BERTH_BASE_INTERRUPT_H_
