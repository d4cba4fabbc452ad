// RemoteTask: the line of commands from this process to one other task.
//
// Commands run there in the order in which they are posted here; only readers
// of values wait for them. They are sent in messages: the first at once, later
// ones batched while two are in flight. A failure there skips what follows
// until reset(); the loss of the task ends the line until connect().
// Thread-safe. Lives as long as the process.

#ifndef BERTH_REMOTE_REMOTE_TASK_H_
#define BERTH_REMOTE_REMOTE_TASK_H_

#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/member.h"
#include "device/failure_log.h"
#include "remote/message_codec.h"
#include "remote/protocol.h"

namespace berth::remote {

class RemoteTask {
 public:
  explicit RemoteTask(cluster::TaskId task);
  const cluster::TaskId& task() const { return task_; }
  // "/job:worker/replica:0/task:1"
  const std::string& name() const { return name_; }

  // Begins a session over `member`; the state of the last session is lost.
  void connect(std::shared_ptr<cluster::Member> member);
  // Ends the line, as if the task had been lost.
  void lose(const std::string& why);
  std::shared_ptr<cluster::Member> member() const;
  // A different number for each connect().
  uint64_t session() const;

  // Appends a command and the tensor it carries; returns its number.
  uint64_t post(const Writer& command, Tensor carried = {});
  // Posts the command and waits for its answer. Throws the failure there, and
  // errors::Unavailable if the task is lost.
  Tensor ask(const Writer& command, std::vector<Tensor> carried = {},
             const char* what = "");
  // Runs `work` now, which posts; runs `drop` once the task has done that.
  void launch(const Work& work, Stream& stream);
  void flush();

  uint64_t posted() const;
  bool done(uint64_t number);
  // Waits until the command is done. Throws any failure there up to it.
  void wait(uint64_t number);
  void wait_quietly(uint64_t number);
  // Throws any known failure up to `number`.
  void check(uint64_t number) const;
  // Throws if nothing posted from now on will run.
  void check_open() const;
  // Throws if `number` was posted before the task reconnected.
  void check_session(uint64_t number) const;
  // Waits for all commands; then the task accepts work again.
  void reset();

  // Records a local failure, at the next number.
  void fail(errors::Code code, const std::string& why);

 private:
  // Describes a command, for errors.
  struct What {
    const char* op = "";
    Site site = {};
  };
  struct Drop {
    void (*fn)(void*);
    void* context;
  };
  struct Question {
    size_t command;  // of the batch
    std::shared_ptr<std::optional<Tensor>> answer;
  };
  // Commands of one message.
  struct Batch {
    uint64_t last = 0;              // number
    std::vector<What> what;         // by command
    std::vector<uint64_t> numbers;  // the same
    std::vector<Question> questions;
    std::vector<Drop> drops;
    std::shared_future<cluster::Message> reply;
  };
  using Lock = std::unique_lock<std::mutex>;

  uint64_t append(Lock& lock, const Writer& command,
                  std::vector<Tensor> carried);
  void flush_locked(bool force);
  // Processes the answers that have arrived; run_drops() runs the drops.
  void take_answers();
  void take(Batch& batch);
  void run_drops(Lock& lock);
  void lose(uint64_t from, const std::string& why);
  void wait_for(Lock& lock, uint64_t number);
  static What& current();

  const cluster::TaskId task_;
  const std::string name_;
  mutable std::mutex mutex_;  // guards the following
  std::shared_ptr<cluster::Member> member_;
  uint64_t session_ = 0;
  uint64_t posted_ = 0, done_ = 0;
  Writer bytes_;  // not yet sent
  std::vector<Tensor> carried_;
  Batch batch_;
  std::deque<std::shared_ptr<Batch>> under_way_;
  std::vector<Drop> drops_;
  // Finished batches: destroyed outside the lock, since the owners of their
  // memory may query events of this line.
  std::vector<std::shared_ptr<Batch>> answered_;
  FailureLog failures_;
  bool lost_ = false;
  uint64_t valid_from_ = 0;  // earlier numbers are of past sessions
  std::string lost_why_;
};

}  // namespace berth::remote

#endif  // BERTH_REMOTE_REMOTE_TASK_H_
