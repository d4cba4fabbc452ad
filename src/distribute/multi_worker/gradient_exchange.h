// CollectiveExecutor: the all-reduces of gradients, sums and gathers between
// this task and the others that train with it.
//
// There is one per strategy over several tasks. Exchanges that plans begin
// (_TaskStart) run beside the computation until their results are needed
// (_TaskEnd). A thread per channel runs them in the order in which they began,
// or the thread that waits for one runs it, if it comes first. Thread-safe.

#ifndef BERTH_DISTRIBUTE_MULTI_WORKER_GRADIENT_EXCHANGE_H_
#define BERTH_DISTRIBUTE_MULTI_WORKER_GRADIENT_EXCHANGE_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/member.h"

namespace berth::distribute {

// One exchange of a plan, repeated in each run.
struct StepExchange {
  enum class Method : uint8_t { kSum, kOrdered, kGather };
  Method method = Method::kSum;
  DType dtype = float32;
  std::vector<int64_t> sizes;           // of items, in elements
  std::vector<int64_t> starts, counts;  // of pieces (kOrdered)
  int32_t slices = 0;
  std::vector<int64_t> lengths;  // elements by rank (kGather)
  int channel = 0;
  cluster::Tag tag;

  // Inputs and results, items concatenated.
  std::shared_ptr<void> values, results;
  size_t value_bytes = 0, result_bytes = 0;

  enum class State : uint8_t { kIdle, kBegun, kRunning, kDone };
  State state = State::kIdle;  // guarded by its channel
  std::exception_ptr error;
  uint64_t generation = 0;  // of the buffers
};

// Times of a task's exchanges since the last query.
struct TaskTimes {
  int64_t exchanges = 0, bytes = 0;
  double exchange_us = 0;  // with all tasks present for a part of it
  double waited_us = 0;    // by compute threads
};

class CollectiveExecutor {
 public:
  static constexpr int kChannels = 2;

  explicit CollectiveExecutor(std::shared_ptr<cluster::Member> member);
  ~CollectiveExecutor();
  CollectiveExecutor(const CollectiveExecutor&) = delete;
  CollectiveExecutor& operator=(const CollectiveExecutor&) = delete;

  // Makes one that lives for ever: plans refer to it by its number.
  static std::shared_ptr<CollectiveExecutor> make(
      std::shared_ptr<cluster::Member> member);
  // Throws errors::Internal for an unknown number.
  static CollectiveExecutor& find(int64_t id);

  int64_t id() const { return id_; }
  cluster::Member& member() const { return *member_; }
  std::shared_ptr<cluster::Member> shared_member() const { return member_; }
  // Changes when the cluster has formed again without some task.
  int rank() const { return rank_.load(); }
  int ranks() const { return ranks_.load(); }

  // The exchange of a plan, shared by its Start and End while they live.
  std::shared_ptr<StepExchange> exchange(int64_t program, int64_t number);
  // Fixes what is exchanged, once.
  void prepare(StepExchange& x);

  // If the exchange was begun, waits for its end: values will be overwritten.
  void before_begin(StepExchange& x);
  void begin(const std::shared_ptr<StepExchange>& x);
  // Waits for the results. Throws the error of the exchange.
  void end(StepExchange& x);

  // Returns true once per variable: the tasks have not agreed on its value yet.
  bool is_new(uint64_t variable);

  // The step that errors name.
  void set_step(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  int64_t step() const { return step_.load(std::memory_order_relaxed); }
  TaskTimes take_times();

  // After a failure: waits until every task is back or, with `shrink`,
  // continues with the remaining tasks. Earlier exchanges are forgotten, so all
  // tasks agree again on the steps they compile and on variables.
  void form_again(double timeout_seconds, bool shrink = false);

 private:
  struct Channel {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<StepExchange>> queue;
    bool busy = false, stop = false;
    std::thread thread;
    std::string name;
  };

  void work(Channel& c);
  // Runs the first exchange of the queue; `lock` is released meanwhile.
  void do_first(Channel& c, std::unique_lock<std::mutex>& lock);
  void run(StepExchange& x, const std::string& channel);

  const std::shared_ptr<cluster::Member> member_;
  std::atomic<int> rank_, ranks_;
  int64_t id_ = 0;
  std::array<Channel, kChannels> channels_;
  std::mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, std::weak_ptr<StepExchange>> exchanges_;
  std::set<uint64_t> agreed_;  // serials of variables
  std::atomic<int64_t> step_{-1};
  std::atomic<int64_t> count_{0}, bytes_{0}, exchange_ns_{0}, waited_ns_{0};
  std::atomic<uint64_t> generation_{1};  // of the current buffers
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_MULTI_WORKER_GRADIENT_EXCHANGE_H_
