// Rendezvous: how a step hands values to the tasks that run its other parts.
//
// _TaskSend and _TaskRecv name one by number; their kernels call it. It
// belongs to one compiled part of one function (remote/). Thread-safe.

#ifndef BERTH_OP_SEND_RECV_H_
#define BERTH_OP_SEND_RECV_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/immortal.h"
#include "berth/errors.h"
#include "op/kernel.h"

namespace berth {

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Hands `value`, of the host, to a task ("worker:1"); does not wait.
  virtual void send(int64_t edge, const std::string& to, const View& value) = 0;
  // Waits for the value of an edge and writes it to `value`. Throws
  // errors::Unavailable naming the task that was lost,
  // errors::DeadlineExceeded naming the one that is late, and what failed
  // there.
  virtual void receive(int64_t edge, const std::string& from,
                       const View& value) = 0;
};

// Rendezvous of this process by number. Thread-safe.
class RendezvousTable {
 public:
  // Gives it a number for as long as somebody keeps it.
  int64_t add(const std::shared_ptr<Rendezvous>& rendezvous) {
    std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& l) { return l.second.expired(); });
    all_[next_] = rendezvous;
    return next_++;
  }
  // Throws errors::FailedPrecondition for an unknown number.
  std::shared_ptr<Rendezvous> at(int64_t number) {
    {
      std::lock_guard lock(mutex_);
      const auto found = all_.find(number);
      if (found != all_.end()) {
        if (auto rendezvous = found->second.lock()) return rendezvous;
      }
    }
    throw errors::FailedPrecondition(
        "a value for another task, and no link to it; expected a step that is "
        "split over a cluster: config::connect_to_cluster()");
  }

 private:
  std::mutex mutex_;
  int64_t next_ = 1;
  std::unordered_map<int64_t, std::weak_ptr<Rendezvous>> all_;
};

inline RendezvousTable& rendezvous_table() {
  static auto& table = immortal<RendezvousTable>();
  return table;
}

}  // namespace berth

#endif  // BERTH_OP_SEND_RECV_H_
