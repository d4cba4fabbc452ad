// Threads: detached threads that can be awaited. Thread-safe.

#ifndef BERTH_RPC_THREADS_H_
#define BERTH_RPC_THREADS_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace berth::rpc {

class Threads {
 public:
  void start(std::function<void()> run) {
    {
      std::lock_guard lock(state_->mutex);
      ++state_->count;
    }
    std::thread([state = state_, run = std::move(run)]() mutable {
      current() = state.get();
      run();
      run = nullptr;  // release what it holds first
      std::lock_guard lock(state->mutex);
      --state->count;
      state->changed.notify_all();
    }).detach();
  }
  // Waits until none is left but the calling one, which may be the last to hold
  // what they work for; returns false on timeout.
  bool wait(double seconds) {
    const int own = current() == state_.get() ? 1 : 0;
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock,
                                    std::chrono::duration<double>(seconds),
                                    [&] { return state_->count == own; });
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    int count = 0;
  };
  static const State*& current() {
    thread_local const State* state = nullptr;
    return state;
  }
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_THREADS_H_
