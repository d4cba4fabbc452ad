// TaskLink: this task's way to the others that train with it.
//
// One per strategy over several tasks. Exchanges that plans begin (_TaskStart)
// go on beside what is computed until somebody needs them (_TaskEnd): a thread
// per channel does them in the order in which they were begun, or the thread
// that waits for one, if it comes first. Thread-safe.

#ifndef BERTH_DISTRIBUTE_TASK_LINK_H_
#define BERTH_DISTRIBUTE_TASK_LINK_H_

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

// One exchange of a plan, made again and again.
struct TaskExchange {
  enum class How : uint8_t { kSum, kOrdered, kGather };
  How how = How::kSum;
  DType dtype = float32;
  std::vector<int64_t> sizes;           // of items, in elements
  std::vector<int64_t> starts, counts;  // of pieces (kOrdered)
  int32_t slices = 0;
  std::vector<int64_t> lengths;  // elements by rank (kGather)
  int channel = 0;
  cluster::Tag tag;

  // What was begun, and what came of it, one item behind the other.
  std::shared_ptr<void> values, results;
  size_t value_bytes = 0, result_bytes = 0;

  enum class State : uint8_t { kIdle, kBegun, kRunning, kDone };
  State state = State::kIdle;  // guarded by its channel
  std::exception_ptr error;
  uint64_t generation = 0;  // of the buffers
};

// What a task's exchanges took since it was asked last.
struct TaskTimes {
  int64_t exchanges = 0, bytes = 0;
  double exchange_us = 0;  // of which all tasks were there for some
  double waited_us = 0;    // by threads that compute
};

class TaskLink {
 public:
  static constexpr int kChannels = 2;

  explicit TaskLink(std::shared_ptr<cluster::Member> member);
  ~TaskLink();
  TaskLink(const TaskLink&) = delete;
  TaskLink& operator=(const TaskLink&) = delete;

  // Makes a link that lives for ever: plans name it by its number.
  static std::shared_ptr<TaskLink> make(
      std::shared_ptr<cluster::Member> member);
  // Throws errors::Internal for a number that no link has.
  static TaskLink& find(int64_t id);

  int64_t id() const { return id_; }
  cluster::Member& member() const { return *member_; }
  std::shared_ptr<cluster::Member> shared_member() const { return member_; }
  // They change when the cluster has formed again without some task.
  int rank() const { return rank_.load(); }
  int ranks() const { return ranks_.load(); }

  // The exchange of a plan, which its Start and End share while they live.
  std::shared_ptr<TaskExchange> exchange(int64_t program, int64_t number);
  // Fixes what is exchanged, once.
  void prepare(TaskExchange& x);

  // Waits until the exchange is over, if it was begun: its values are about to
  // be written.
  void before_begin(TaskExchange& x);
  void begin(const std::shared_ptr<TaskExchange>& x);
  // Waits for the results. Throws what the exchange threw.
  void end(TaskExchange& x);

  // True once per variable: the tasks have not agreed on its value.
  bool is_new(uint64_t variable);

  void forget_variables();

  // The step that errors name.
  void set_step(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  int64_t step() const { return step_.load(std::memory_order_relaxed); }
  TaskTimes take_times();

  // After a failure: waits until every task is back, or, with `shrink`, goes on
  // with those that are left. What was exchanged before is forgotten, so all
  // agree again on what they compile and on variables.
  void form_again(double timeout_seconds, bool shrink = false);

 private:
  struct Channel {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<TaskExchange>> queue;
    bool busy = false, stop = false;
    std::thread thread;
    std::string name;
  };

  void work(Channel& c);
  // Does the first of the queue; `lock` is open meanwhile.
  void do_first(Channel& c, std::unique_lock<std::mutex>& lock);
  void run(TaskExchange& x, const std::string& channel);

  const std::shared_ptr<cluster::Member> member_;
  std::atomic<int> rank_, ranks_;
  int64_t id_ = 0;
  std::array<Channel, kChannels> channels_;
  std::mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, std::weak_ptr<TaskExchange>> exchanges_;
  std::set<uint64_t> agreed_;  // serials of variables
  std::atomic<int64_t> step_{-1};
  std::atomic<int64_t> count_{0}, bytes_{0}, exchange_ns_{0}, waited_ns_{0};
  std::atomic<uint64_t> generation_{1};  // that buffers are of
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_TASK_LINK_H_
