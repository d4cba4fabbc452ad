// Requests between tasks of a ParameterServerStrategy.
//
// A request is a word with its operands on the first line, followed by a text.
// Errors of the callee come back in the answer, so call() throws errors of the
// connection only. Thread-safe.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_REQUESTS_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_REQUESTS_H_

#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <sstream>
#include <string>

#include "base/interrupt.h"
#include "berth/errors.h"
#include "cluster/member.h"

namespace berth::distribute {

inline constexpr const char* kServerService = "parameter-server";
inline constexpr const char* kWorkerService = "parameter-server-worker";

// The first line and the text after it.
struct Request {
  explicit Request(const std::string& text);
  std::string word;
  std::istringstream operands;
  std::string body;
};

// Reads an operand. Throws errors::InvalidArgument if the line has none.
template <class T>
T operand(std::istringstream& in) {
  T t{};
  if (in >> t) return t;
  throw errors::InvalidArgument("a request lacks an operand");
}

// A task could not be reached; not an error of the request itself.
class TaskLost : public errors::Unavailable {
 public:
  TaskLost(cluster::TaskId task, const std::string& why)
      : errors::Unavailable(why), task_(std::move(task)) {}
  const cluster::TaskId& task() const { return task_; }

 private:
  cluster::TaskId task_;
};

// Makes a handler from a function: errors that it throws become the answer.
cluster::Handler answering(
    std::function<cluster::Message(const cluster::TaskId&, Request&, Tensors&)>
        fn);

// Member::call() that reports every error through the future.
std::future<cluster::Message> begin_call(cluster::Member& member,
                                         const cluster::TaskId& to,
                                         const char* service,
                                         cluster::Message request,
                                         double timeout_seconds = 0);

// Waits for an answer. Throws its error, prefixed with `task`, and TaskLost.
cluster::Message answer_of(std::future<cluster::Message>& answer,
                           const cluster::TaskId& task);

// Returns a copy in host memory whose bytes do not change any more.
Tensor for_sending(const Tensor& t);

// changed.wait(lock, ready). Throws errors::Cancelled at Ctrl-C, without the
// lock.
template <class Ready>
void wait_unless_interrupted(std::condition_variable& changed,
                             std::unique_lock<std::mutex>& lock,
                             const Ready& ready) {
  while (!changed.wait_for(lock, kAskEach, ready)) {
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
}

// A number that differs from that of any other task of this kind.
uint64_t new_incarnation();

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_REQUESTS_H_
