// ParameterServers: the chief of a ParameterServerStrategy. It knows where each
// variable is, what is scheduled, which worker runs it and which tasks are
// lost.
//
// One thread per worker hands it scheduled functions, in order. Thread-safe.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_COORDINATOR_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_COORDINATOR_H_

#include <any>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "berth/parameter_server.h"
#include "cluster/member.h"
#include "distribute/parameter_server/partition_function.h"
#include "distribute/parameter_server/requests.h"
#include "distribute/parameter_server/step_program.h"

namespace berth::distribute {

// A scheduled function call.
class Closure {
 public:
  enum class State : uint8_t { kWaiting, kDone, kFailed };

  int64_t number = -1;
  uint64_t run = 0;  // number of the run of its program
  std::shared_ptr<const StepProgram> program;
  std::shared_ptr<const std::any> structure;
  Tensors leaves;
  std::vector<ClosureCall::From> from;
  // Elements drawn from the chief's datasets; reused if it runs again.
  std::map<const PerWorker::State*, Tensors> drawn;

  void finish(Tensors results);
  void fail(std::exception_ptr error);
  bool done() const;
  // Throws its error if it failed.
  const Tensors& wait() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  State state_ = State::kWaiting;
  Tensors results_;
  std::exception_ptr error_;
};

// A resource with one instance per worker.
struct PerWorker::State {
  enum class Kind : uint8_t { kDataset, kIterator, kResource };
  Kind kind = Kind::kDataset;
  int64_t id = 0;
  std::weak_ptr<ParameterServers> owner;
  std::vector<TensorSpec> specs;
  std::string name;                          // of a registered dataset
  std::vector<data::Dataset> chiefs;         // else: one per worker
  std::shared_ptr<PerWorker::State> of;      // for an iterator: its dataset
  std::shared_ptr<const StepProgram> makes;  // makes a resource
  std::mutex mutex;                          // guards the following
  std::map<int, data::Iterator> passes;      // over `chiefs`, by worker
  std::map<int, uint64_t> there;  // incarnations of workers that have it
};

class ParameterServers : public std::enable_shared_from_this<ParameterServers> {
 public:
  // Throws errors::InvalidArgument for a cluster that lacks a chief (this task
  // must be it), a worker or a ps.
  ParameterServers(std::shared_ptr<cluster::Member> chief,
                   ParameterServerOptions options, Site site);
  ~ParameterServers();
  ParameterServers(const ParameterServers&) = delete;
  ParameterServers& operator=(const ParameterServers&) = delete;
  // Ends workers and servers: running functions are awaited, waiting ones
  // cancelled. Later calls throw errors::FailedPrecondition.
  void end();

  int num_workers() const { return static_cast<int>(workers_.size()); }
  int num_servers() const { return static_cast<int>(servers_.size()); }
  const ParameterServerOptions& options() const { return options_; }

  // `run`: which run of the function it is, for its random numbers; none:
  // counted here.
  std::shared_ptr<Closure> schedule(const ClosureCall& call, Site site,
                                    std::optional<uint64_t> run = {});
  void join(Site site);
  bool done(Site site);
  // Updates the chief's copies of these variables from the servers.
  void refresh(const std::vector<Variable>& variables);
  CoordinatorStatistics statistics() const;
  std::vector<std::string> servers_of(const Tensor& handle) const;

  PerWorkerDataset make_dataset(const std::string& name, Site site);
  PerWorkerDataset make_dataset(std::vector<data::Dataset> by_worker);
  PerWorkerIterator make_iterator(const std::shared_ptr<PerWorker::State>& of);
  PerWorkerResource make_resource(const std::function<Tensors()>& fn,
                                  Site site);

 private:
  struct Traced {
    std::shared_ptr<const StepProgram> program;
    std::shared_ptr<const std::any> structure;
    std::shared_ptr<const void> keep;
    std::vector<TensorSpec> results;
  };
  struct Placed : ServerVariable {
    uint64_t version = 0;  // of the chief's copy, as the servers have it
    bool stale = false;    // servers changed it since the last join()
  };
  struct Server {
    cluster::TaskId task;
    uint64_t incarnation = 0;
    bool lost = false;
    std::set<std::string> defined;
  };
  struct Worker {
    cluster::TaskId task;
    uint64_t incarnation = 0;
    std::set<std::string> programs;
    std::thread thread;
  };

  // variable_placement.cc: variables and programs. The caller holds placing_.
  Traced trace(const ClosureCall& call, const std::vector<TensorSpec>& specs);
  void place(const ServerSplit& split);
  void place_group(const ServerGroup& group);
  const Placed* placed_one_of(const ServerGroup& group) const;
  std::vector<ServerShard> new_shards(const ServerGroup& group);
  int64_t shards_wanted(const ServerGroup& group) const;
  void create(const std::vector<Placed*>& placed);
  void define(const StepProgram& program);
  const ServerVariable& placed(const Tensor& handle) const;
  void send_changed(bool all);
  // Fetches everything that servers changed, or only the variables in `only`,
  // which may change again.
  void fetch_changed(const std::vector<Variable>* only = nullptr);
  void recover_servers();
  // Sends all requests at once; throws the error of a lost server.
  std::vector<cluster::Message> ask_all(
      std::map<int, cluster::Message> requests, std::vector<int>* order);

  // coordinator.cc: the queue.
  void start();
  void serve_worker(int w);
  std::shared_ptr<Closure> take();
  Tensors run_on(Worker& worker, int w, Closure& closure);
  Tensors gather_arguments(Worker& worker, int w, Closure& closure,
                           std::string* text);
  void ensure_there(Worker& worker, int w, PerWorker::State& state);
  void ensure_program(Worker& worker, const StepProgram& program);
  Tensors element_of(int w, PerWorker::State& state);
  cluster::Message ask_worker(const Worker& worker,
                              cluster::Message request) const;
  bool wait_for_worker(Worker& worker);
  bool was_restarted(Worker& worker);
  bool stopping_now() const;
  // Returns the error of a server that was restarted; null: none was.
  std::exception_ptr restarted_server();
  void form_again();
  void put_back(const std::shared_ptr<Closure>& closure);
  void settle(const std::shared_ptr<Closure>& closure, bool failed);
  void fail_all(std::exception_ptr error);
  void raise_first_error(std::unique_lock<std::mutex>& lock);
  std::exception_ptr loss_of(const TaskLost& lost);

  const std::shared_ptr<cluster::Member> member_;
  const ParameterServerOptions options_;
  std::vector<Worker> workers_;
  std::vector<Server> servers_;

  // Held while tracing, placing or talking to servers; taken before mutex_.
  mutable std::mutex placing_;
  std::map<std::string, Traced> traces_;
  std::unordered_map<const TensorImpl*, Placed> variables_;
  std::vector<const TensorImpl*> order_;  // variables in order of placement
  std::map<std::string, uint64_t> runs_;  // by program
  int64_t next_id_ = 0;
  int next_server_ = 0;

  mutable std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Closure>> queue_;
  std::set<int64_t> unfinished_;
  int running_ = 0;
  int64_t next_number_ = 0, next_source_ = 0;
  std::exception_ptr first_error_;
  std::exception_ptr broken_;  // set: no more scheduling is possible
  bool started_ = false, stopping_ = false;
  CoordinatorStatistics statistics_;
  std::atomic<int> lost_workers_{0};
  std::mutex forming_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_COORDINATOR_H_
