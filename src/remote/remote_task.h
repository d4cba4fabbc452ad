// RemoteTask: the line of commands from this process to one other task.
//
// Commands run there in the order in which they are posted here, and nobody
// waits for them but who reads a value. They travel in messages: the first at
// once, later ones together while two are on their way. A failure there skips
// what follows until reset(); the loss of the task ends the line until
// connect(). Thread-safe. Lives as long as the process.

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
#include "remote/protocol.h"
#include "remote/wire.h"

namespace berth::remote {

class RemoteTask {
 public:
  explicit RemoteTask(cluster::TaskId task);
  const cluster::TaskId& task() const { return task_; }
  // "/job:worker/replica:0/task:1"
  const std::string& name() const { return name_; }

  // Begins a session over `member`; all that the last one made is lost.
  void connect(std::shared_ptr<cluster::Member> member);
  // Ends the line, as if the task had been lost.
  void lose(const std::string& why);
  std::shared_ptr<cluster::Member> member() const;
  // Another number for each connect().
  uint64_t session() const;

  // Appends a command and what it carries; returns its number.
  uint64_t post(const Writer& command, Tensor carried = {});
  // The same, and waits for its answer. Throws what failed there, and
  // errors::Unavailable when the task is lost.
  Tensor ask(const Writer& command, std::vector<Tensor> carried = {},
             const char* what = "");
  // Runs `work` now, which posts, and `drop` once the task has done that.
  void launch(const Work& work, Stream& stream);
  void flush();

  uint64_t posted() const;
  bool done(uint64_t number);
  // Waits until it is done. Throws what failed there up to it.
  void wait(uint64_t number);
  void wait_quietly(uint64_t number);
  // Throws what failed up to `number`, as far as is known.
  void check(uint64_t number) const;
  // Throws why nothing that is posted now will run.
  void check_open() const;
  // Throws when `number` was posted before the task was connected anew.
  void check_session(uint64_t number) const;
  // Waits for all there is; then the task works again.
  void reset();

  // Notes a failure of this side, at what is posted next.
  void fail(errors::Code code, const std::string& why);

 private:
  // What a command is, for errors.
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
  // Takes in what has been answered; the drops are run by run_drops().
  void take_answers();
  void take(Batch& batch);
  void run_drops(Lock& lock);
  void lose(uint64_t from, const std::string& why);
  void wait_for(Lock& lock, uint64_t number);
  static What& current();

  const cluster::TaskId task_;
  const std::string name_;
  mutable std::mutex mutex_;  // what follows
  std::shared_ptr<cluster::Member> member_;
  uint64_t session_ = 0;
  uint64_t posted_ = 0, done_ = 0;
  Writer bytes_;  // not yet sent
  std::vector<Tensor> carried_;
  Batch batch_;
  std::deque<std::shared_ptr<Batch>> under_way_;
  std::vector<Drop> drops_;
  // What has been answered: messages end outside of the lock, since whose
  // memory they are may ask for events of this line.
  std::vector<std::shared_ptr<Batch>> answered_;
  FailureLog failures_;
  bool lost_ = false;
  uint64_t valid_from_ = 0;  // what was posted up to here is of the past
  std::string lost_why_;
};

}  // namespace berth::remote

#endif  // BERTH_REMOTE_REMOTE_TASK_H_
