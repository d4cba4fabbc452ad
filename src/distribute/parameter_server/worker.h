// The worker: pulls values, runs its parts of functions, and pushes updates of
// variables. Thread-safe.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_WORKER_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_WORKER_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "berth/data.h"
#include "cluster/member.h"
#include "distribute/parameter_server/requests.h"
#include "distribute/parameter_server/step_program.h"
#include "function/graph_callable.h"

namespace berth::distribute {

// A program that is ready to run.
class StepRunner {
 public:
  StepRunner(cluster::Member& member, StepProgram program);

  // `number`: the coordinator's count of the run, which decides its random
  // numbers. Throws TaskLost for a lost server, and the errors of the function.
  Tensors run(const Tensors& args, uint64_t number);

 private:
  struct Call;
  struct RequestedPart;
  std::vector<Call> requests(
      const StepStage& stage, const Tensors& values,
      std::map<int, std::vector<RequestedPart>>& asked) const;
  void pull(const StepStage& stage, Tensors& values);
  void push(const StepStage& stage, Tensors& values, uint64_t number);
  void take(std::vector<Call>& calls);
  cluster::TaskId server(int number) const;

  cluster::Member& member_;
  const StepProgram program_;
  struct Part {
    std::unique_ptr<GraphCallable> graph;  // null: nothing to run
    bool random = false;
  };
  std::vector<Part> parts_;  // by stage
};

class PsWorker {
 public:
  explicit PsWorker(std::shared_ptr<cluster::Member> member)
      : member_(std::move(member)) {}

  // hello                     -> incarnation
  // begin                     forgets everything, for a new chief
  // program \n TEXT           a function; tensors: its large constants
  // dataset ID NAME PARTS PART  makes a registered dataset
  // iterator ID DATASET       starts to iterate over it
  // resource ID               keeps the tensors
  // run HASH NUMBER ARG...    -> results; ARG is t, a tensor of the request,
  //                           dID:COMPONENT or rID:COMPONENT
  cluster::Message handle(Request& request, Tensors& tensors);

 private:
  struct OpenIterator {
    std::mutex mutex;
    std::optional<data::Iterator> iterator;
  };
  // One function per word of a request.
  using Answer = cluster::Message (PsWorker::*)(Request&, Tensors&);
  cluster::Message hello(Request& request, Tensors& tensors);
  cluster::Message begin(Request& request, Tensors& tensors);
  cluster::Message add_program(Request& request, Tensors& tensors);
  cluster::Message add_dataset(Request& request, Tensors& tensors);
  cluster::Message add_iterator(Request& request, Tensors& tensors);
  cluster::Message add_resource(Request& request, Tensors& tensors);
  cluster::Message run(Request& request, Tensors& tensors);
  Tensors arguments(Request& request, const Tensors& tensors);
  Tensors next_of(int64_t id);

  const std::shared_ptr<cluster::Member> member_;
  const uint64_t incarnation_ = new_incarnation();
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<StepRunner>> programs_;
  std::map<int64_t, data::Dataset> datasets_;
  std::map<int64_t, std::shared_ptr<OpenIterator>> iterators_;
  std::map<int64_t, Tensors> resources_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_WORKER_H_
