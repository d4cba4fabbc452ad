// Mailbox: values that other tasks have sent and that are not yet received.
//
// Values have keys "OWNER/SESSION/RUN/EDGE": the task that drives the run, and
// which of its runs. A run that fails in one task fails in all: a thread that
// waits for its values gets the error. One per member. Thread-safe.

#ifndef BERTH_REMOTE_MAILBOX_H_
#define BERTH_REMOTE_MAILBOX_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/member.h"
#include "tensor/tensor_impl.h"

namespace berth::remote {

// "OWNER/SESSION/RUN/" of a key.
inline std::string run_of(const std::string& key) {
  return key.substr(0, key.rfind('/') + 1);
}

class Mailbox {
 public:
  // The mailbox of a member; the first call starts to serve it.
  static std::shared_ptr<Mailbox> of(
      const std::shared_ptr<cluster::Member>& member);

  // Sends `value`, in host memory, to a task, or keeps it if that is this one.
  void send(const cluster::TaskId& to, const std::string& key, Tensor value);
  // Waits for a value. `from` and `what` are for messages. Throws the failure
  // of the run, errors::Unavailable when the cluster fails, and
  // errors::DeadlineExceeded.
  Tensor receive(const std::string& key, const std::string& from,
                 const std::string& what);
  // Fails a run ("OWNER/SESSION/RUN/") here and at `others`.
  void fail_run(const std::string& run, errors::Code code,
                const std::string& why,
                const std::vector<cluster::TaskId>& others);
  // The failure of the run; nothing if it has not failed.
  std::optional<cluster::ClusterFailure> failed(const std::string& run) const;

  void set_timeout(double seconds) { timeout_seconds_ = seconds; }

 private:
  explicit Mailbox(cluster::Member& member) : member_(member) {}
  void put(const std::string& key, Tensor value);
  void fail(const std::string& run, errors::Code code, const std::string& why);
  void fail_as_told(const std::string& text);
  void lost(const cluster::ClusterFailure& failure);
  void check(const std::string& key) const;

  cluster::Member& member_;  // owns this
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Tensor> values_;
  std::map<std::string, cluster::ClusterFailure> failed_;
  std::deque<std::string> failed_first_;
  std::optional<cluster::ClusterFailure> lost_;
  std::atomic<double> timeout_seconds_{600};
};

}  // namespace berth::remote

#endif  // BERTH_REMOTE_MAILBOX_H_
