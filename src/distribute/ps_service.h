// What tasks of a ParameterServerStrategy say to each other.
//
// A request is a word, its operands on the first line, and a text behind it.
// Errors of the one who answers come back in the answer, so that what call()
// throws is the connection's alone. Thread-safe.

#ifndef BERTH_DISTRIBUTE_PS_SERVICE_H_
#define BERTH_DISTRIBUTE_PS_SERVICE_H_

#include <functional>
#include <future>
#include <sstream>
#include <string>

#include "berth/errors.h"
#include "cluster/member.h"

namespace berth::distribute {

inline constexpr const char* kServerService = "parameter-server";
inline constexpr const char* kWorkerService = "parameter-server-worker";

// The first line and what is behind it.
struct Request {
  explicit Request(const std::string& text);
  std::string word;
  std::istringstream operands;
  std::string body;
};

// An operand. Throws errors::InvalidArgument for a line without it.
template <class T>
T operand(std::istringstream& in) {
  T t{};
  if (in >> t) return t;
  throw errors::InvalidArgument("a request lacks an operand");
}

// A task that could not be reached; not an error of what it was asked.
class TaskLost : public errors::Unavailable {
 public:
  TaskLost(cluster::TaskId task, const std::string& why)
      : errors::Unavailable(why), task_(std::move(task)) {}
  const cluster::TaskId& task() const { return task_; }

 private:
  cluster::TaskId task_;
};

// Makes a handler of a function: what it throws is answered.
cluster::Handler answering(
    std::function<cluster::Message(const cluster::TaskId&, Request&, Tensors&)>
        fn);

// Member::call() whose future has all that it throws.
std::future<cluster::Message> begin_call(cluster::Member& member,
                                         const cluster::TaskId& to,
                                         const char* service,
                                         cluster::Message request,
                                         double timeout_seconds = 0);

// Waits for an answer. Throws the error in it, with `task` before it, and
// TaskLost.
cluster::Message answer_of(std::future<cluster::Message>& answer,
                           const cluster::TaskId& task);

// The same bytes, on the host, settled: nobody changes them.
Tensor for_sending(const Tensor& t);

// A number that no other task of this kind has.
uint64_t new_incarnation();

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PS_SERVICE_H_
