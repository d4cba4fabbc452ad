// StopLink: the stop of one stage with threads, which follows an outer one.
//
// A stage stops its own threads when it is destroyed, and all stages stop at
// once when the reader of the whole chain goes away. Thread-safe.

#ifndef BERTH_DATA_STOP_LINK_H_
#define BERTH_DATA_STOP_LINK_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/interrupt.h"
#include "data/node.h"

namespace berth::data {

class StopLink {
 public:
  explicit StopLink(const std::stop_token& outer)
      : forward_(outer, Forward{&own_}) {}
  ~StopLink() { own_.request_stop(); }

  void request_stop() { own_.request_stop(); }
  std::stop_token token() const { return own_.get_token(); }
  // The pass that the stages before this one see.
  PassInfo inner(const PassInfo& pass) const {
    PassInfo own = pass;
    own.stop = token();
    return own;
  }

 private:
  struct Forward {
    std::stop_source* own;
    void operator()() const { own->request_stop(); }
  };
  std::stop_source own_;
  std::stop_callback<Forward> forward_;
};

// The reader's: waits until `ready`; false after a stop. Throws
// errors::Cancelled at Ctrl-C, without the lock.
template <class Ready>
bool wait_for_element(std::condition_variable_any& changed,
                      std::unique_lock<std::mutex>& lock,
                      const std::stop_token& stop, const Ready& ready) {
  while (!changed.wait_for(lock, stop, kAskEach, ready)) {
    if (stop.stop_requested()) return false;
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  return true;
}

// Calls `fn` at the end of a block.
template <class F>
class Finally {
 public:
  explicit Finally(F fn) : fn_(std::move(fn)) {}
  ~Finally() { fn_(); }
  Finally(const Finally&) = delete;
  Finally& operator=(const Finally&) = delete;

 private:
  F fn_;
};

// Starts a thread of the host that runs `body`. Throws
// errors::ResourceExhausted naming `node` when the system refuses.
std::jthread start_thread(const Node& node, std::function<void()> body);

}  // namespace berth::data

#endif  // BERTH_DATA_STOP_LINK_H_
