// FakeCluster: members in one process, for tests of code built on a cluster.
//
//   FakeCluster cluster({.workers = 2});
//   cluster.member({"worker", 0})->barrier("start");   // from two threads
//
// No sockets, no plug-in. abort() and lose() cause failures.

#ifndef BERTH_CLUSTER_TESTING_H_
#define BERTH_CLUSTER_TESTING_H_

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/half.h"
#include "cluster/member.h"
#include "tensor/visit_dtype.h"

namespace berth::cluster {

struct FakeClusterOptions {
  int workers = 2;
  int ps = 0;
  bool chief = false;
};

class FakeCluster {
 public:
  explicit FakeCluster(FakeClusterOptions options);
  ~FakeCluster();
  const ClusterSpec& spec() const { return spec_; }
  std::shared_ptr<Member> member(const TaskId& task) {
    return members_.at(task);
  }
  // Ends the cluster as if the task had died. Members that form again with
  // `shrink` continue without it.
  void lose(const TaskId& task, const std::string& cause = "killed");
  // Loses a task of an elastic job: calls from and to it throw, its answers are
  // lost, and the others continue. It may return with new handlers.
  void drop(const TaskId& task);
  void come_back(const TaskId& task);

 private:
  struct State;
  class FakeMember;
  class FakeExchange;
  ClusterSpec spec_;
  std::shared_ptr<State> state_;
  std::map<TaskId, std::shared_ptr<Member>> members_;
};

namespace fake {

using Bytes = std::vector<std::byte>;

// a += b, or the minimum or maximum of both.
inline void combine(Bytes& a, const Bytes& b, int64_t count, DType dtype,
                    Reduction reduction) {
  const auto run = [&]<class T>(T*) {
    T* x = reinterpret_cast<T*>(a.data());
    const T* y = reinterpret_cast<const T*>(b.data());
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, bfloat16_t> ||
                    std::is_same_v<T, float16_t>) {
        const float p = static_cast<float>(x[i]), q = static_cast<float>(y[i]);
        x[i] = T(reduction == Reduction::kSum   ? p + q
                 : reduction == Reduction::kMin ? std::min(p, q)
                                                : std::max(p, q));
      } else {
        x[i] = reduction == Reduction::kSum   ? static_cast<T>(x[i] + y[i])
               : reduction == Reduction::kMin ? std::min(x[i], y[i])
                                              : std::max(x[i], y[i]);
      }
    }
  };
  if (dtype == float32) return run(static_cast<float*>(nullptr));
  if (dtype == float64) return run(static_cast<double*>(nullptr));
  if (dtype == int32) return run(static_cast<int32_t*>(nullptr));
  if (dtype == int64) return run(static_cast<int64_t*>(nullptr));
  if (dtype == float16) return run(static_cast<float16_t*>(nullptr));
  if (dtype == bfloat16) return run(static_cast<bfloat16_t*>(nullptr));
  throw errors::InvalidArgument("FakeExchange: a dtype that it does not add");
}

}  // namespace fake

struct FakeCluster::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<ClusterFailure> failure;
  std::map<std::string, std::string> store;
  std::map<std::string, int> arrived;  // barriers by "name/round"
  // Collectives: by "channel/sequence", the input of each rank.
  struct Meeting {
    std::map<int, fake::Bytes> given;
    std::map<int, uint64_t> hashes;
    int left = 0;
  };
  std::map<std::string, Meeting> meetings;
  std::map<std::pair<TaskId, std::string>, Handler> handlers;
  std::vector<std::function<void(const ClusterFailure&)>> listeners;
  std::set<TaskId> dropped;
  uint64_t generation = 1;
  std::set<TaskId> inside;         // in this generation
  std::set<TaskId> lost;           // not in it any more
  std::vector<TaskId> order;       // tasks that train, inside or not
  std::map<TaskId, bool> forming;  // waits for the next one; may shrink

  std::vector<TaskId> ranks() const {
    std::vector<TaskId> in;
    for (const TaskId& t : order) {
      if (inside.contains(t)) in.push_back(t);
    }
    return in;
  }
  int rank_of(const TaskId& task) const {
    const std::vector<TaskId> in = ranks();
    const auto found = std::find(in.begin(), in.end(), task);
    return found == in.end() ? -1 : static_cast<int>(found - in.begin());
  }
  // Begins the next generation once all required tasks are ready.
  void try_form() {
    if (forming.empty()) return;
    for (const TaskId& t : inside) {
      if (forming.contains(t)) continue;
      const bool without =
          lost.contains(t) &&
          std::all_of(forming.begin(), forming.end(),
                      [](const auto& task) { return task.second; });
      if (!without) return;
    }
    inside.clear();
    for (const auto& [task, shrinks] : forming) inside.insert(task);
    forming.clear();
    ++generation;
    failure.reset();
    meetings.clear();
    arrived.clear();
    changed.notify_all();
  }

  // Called with the lock held.
  void check_reachable(const TaskId& from, const TaskId& to) const {
    for (const TaskId& t : {from, to}) {
      if (dropped.contains(t)) {
        throw errors::Unavailable(t.str() + " died: connection reset by peer");
      }
    }
  }
  void fail(ClusterFailure f) {
    std::vector<std::function<void(const ClusterFailure&)>> told;
    {
      std::lock_guard lock(mutex);
      if (failure) return;
      failure = f;
      told.swap(listeners);
      changed.notify_all();
    }
    for (const auto& fn : told) fn(f);
  }
  void check() const {
    if (!failure) return;
    if (failure->code == errors::Code::kInvalidArgument) {
      throw errors::InvalidArgument(failure->message);
    }
    throw errors::Unavailable(failure->message);
  }
  // Waits for `ready` with the lock held; throws the failure.
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready) {
    // The state that `ready` reads may end with the generation.
    const uint64_t begun = generation;
    changed.wait(lock,
                 [&] { return failure || generation != begun || ready(); });
    if (generation != begun) {
      throw errors::Unavailable("the generation of this call has ended");
    }
    check();
  }
};

class FakeCluster::FakeExchange final : public Exchange {
 public:
  FakeExchange(State& state, TaskId task)
      : state_(state), task_(std::move(task)) {}
  int rank() const override {
    std::lock_guard lock(state_.mutex);
    return state_.rank_of(task_);
  }
  int size() const override {
    std::lock_guard lock(state_.mutex);
    return static_cast<int>(state_.ranks().size());
  }

  void all_reduce(void* data, int64_t count, DType dtype, Reduction reduction,
                  const Tag& tag) override {
    const size_t bytes = count * size_of(dtype);
    auto given = meet(data, bytes, tag);
    fake::Bytes sum = given.at(0);
    for (int r = 1; given.contains(r); ++r) {
      fake::combine(sum, given.at(r), count, dtype, reduction);
    }
    if (bytes > 0) std::memcpy(data, sum.data(), bytes);
  }

  void ordered_sum(std::span<const SlicePart> parts, int32_t slices, void* sum,
                   int64_t count, DType dtype, const Tag& tag) override {
    const size_t bytes = count * size_of(dtype);
    fake::Bytes mine;
    for (const SlicePart& p : parts) {
      const auto* at = reinterpret_cast<const std::byte*>(&p.first);
      mine.insert(mine.end(), at, at + sizeof(p.first));
      at = static_cast<const std::byte*>(p.data);
      mine.insert(mine.end(), at, at + bytes);
    }
    std::map<int32_t, fake::Bytes> tree;
    for (const auto& [rank, all] : meet(mine.data(), mine.size(), tag)) {
      for (size_t i = 0; i < all.size(); i += sizeof(int32_t) + bytes) {
        int32_t first;
        std::memcpy(&first, &all[i], sizeof(first));
        const auto begin = all.begin() + i + sizeof(first);
        tree[first] = fake::Bytes(begin, begin + bytes);
      }
    }
    for (int32_t w = 1; w < slices; w *= 2) {
      for (int32_t s = 0; s + w < slices; s += 2 * w) {
        if (!tree.contains(s) || !tree.contains(s + w)) continue;
        fake::combine(tree[s], tree[s + w], count, dtype, Reduction::kSum);
        tree.erase(s + w);
      }
    }
    if (bytes > 0) std::memcpy(sum, tree.at(0).data(), bytes);
  }

  void all_gather(const void* data, std::span<const int64_t> bytes_by_rank,
                  void* out, const Tag& tag) override {
    auto* to = static_cast<std::byte*>(out);
    for (const auto& [rank, all] : meet(data, bytes_by_rank[rank()], tag)) {
      if (!all.empty()) std::memcpy(to, all.data(), all.size());
      to += all.size();
    }
  }
  void broadcast(void* data, int64_t bytes, int root, const Tag& tag) override {
    auto given = meet(data, bytes, tag);
    if (bytes > 0) std::memcpy(data, given.at(root).data(), bytes);
  }
  void barrier(const Tag& tag) override { meet(nullptr, 0, tag); }
  std::shared_ptr<void> shared_buffer(int64_t bytes) override {
    return std::shared_ptr<void>(new std::byte[bytes](), [](void* p) {
      delete[] static_cast<std::byte*>(p);
    });
  }

 private:
  std::map<int, fake::Bytes> meet(const void* data, size_t bytes,
                                  const Tag& tag) {
    std::unique_lock lock(state_.mutex);
    state_.check();
    if (std::exchange(generation_, state_.generation) != state_.generation) {
      sequence_.clear();
    }
    const std::string key =
        fmt::format("{}/{}", tag.channel, sequence_[tag.channel]++);
    const int me = state_.rank_of(task_);
    if (me < 0) throw errors::Unavailable(task_.str() + " was given up");
    const size_t size = state_.ranks().size();
    State::Meeting& m = state_.meetings[key];
    const auto* from = static_cast<const std::byte*>(data);
    m.given[me] = from ? fake::Bytes(from, from + bytes) : fake::Bytes();
    m.hashes[me] = tag.hash;
    for (const auto& [rank, hash] : m.hashes) {
      if (hash == tag.hash || state_.failure) continue;
      ClusterFailure f;
      f.code = errors::Code::kInvalidArgument;
      f.message =
          fmt::format("{}: rank {} and rank {} differ", tag.what, rank, me);
      state_.failure = f;
    }
    state_.changed.notify_all();
    state_.wait(lock, [&] { return m.given.size() == size; });
    std::map<int, fake::Bytes> given = m.given;
    if (++m.left == static_cast<int>(size)) state_.meetings.erase(key);
    return given;
  }

  State& state_;
  const TaskId task_;
  std::map<std::string, int64_t> sequence_;
  uint64_t generation_ = 1;
};

class FakeCluster::FakeMember final : public Member {
 public:
  FakeMember(std::shared_ptr<State> state, const ClusterSpec& spec,
             const TaskId& task)
      : state_(std::move(state)),
        spec_(spec),
        task_(task),
        tasks_(spec.tasks()) {
    exchange_ = std::make_unique<FakeExchange>(*state_, task);
  }
  ~FakeMember() override {
    std::map<std::pair<TaskId, std::string>, std::shared_ptr<Queue>> queues;
    {
      std::lock_guard lock(queues_mutex_);
      queues.swap(queues_);
    }
  }

  const ClusterSpec& spec() const override { return spec_; }
  const TaskId& task() const override { return task_; }
  const std::vector<TaskId>& tasks() const override { return tasks_; }
  std::vector<TaskId> ranks() const override {
    std::lock_guard lock(state_->mutex);
    return state_->ranks();
  }
  int rank() const override {
    std::lock_guard lock(state_->mutex);
    return state_->rank_of(task_);
  }
  int num_ranks() const override { return static_cast<int>(ranks().size()); }
  bool is_coordinator() const override { return task_ == spec_.coordinator(); }
  uint64_t generation() const override {
    std::lock_guard lock(state_->mutex);
    return state_->generation;
  }
  bool same_host(const TaskId&) const override { return true; }

  void barrier(const std::string& name, double) override {
    std::unique_lock lock(state_->mutex);
    const std::string key = fmt::format("{}/{}", name, rounds_[name]++);
    ++state_->arrived[key];
    state_->changed.notify_all();
    state_->wait(lock, [&] {
      return state_->arrived[key] == static_cast<int>(state_->inside.size());
    });
  }
  void put(const std::string& key, const std::string& value) override {
    std::lock_guard lock(state_->mutex);
    state_->store[key] = value;
    state_->changed.notify_all();
  }
  std::string get(const std::string& key, double) override {
    std::unique_lock lock(state_->mutex);
    state_->wait(lock, [&] { return state_->store.contains(key); });
    return state_->store[key];
  }

  void abort(errors::Code code, const std::string& cause,
             int64_t step) override {
    ClusterFailure f{
        .code = code,
        .task = task_,
        .cause = cause,
        .step = step,
        .message = fmt::format("{}: {}, step {}", task_.str(), cause, step)};
    state_->fail(std::move(f));
  }
  std::optional<ClusterFailure> failure() const override {
    std::lock_guard lock(state_->mutex);
    return state_->failure;
  }
  void check() const override {
    std::lock_guard lock(state_->mutex);
    state_->check();
  }
  void on_failure(std::function<void(const ClusterFailure&)> fn) override {
    std::unique_lock lock(state_->mutex);
    if (!state_->failure) return state_->listeners.push_back(std::move(fn));
    const ClusterFailure f = *state_->failure;
    lock.unlock();
    fn(f);
  }
  void leave(double) override {}
  void set_elastic(int, int) override {}
  void announce_end() override {}
  // Waits until all tasks have called it; lost ones are excluded if all shrink.
  void form_again(double, bool shrink) override {
    std::unique_lock lock(state_->mutex);
    const uint64_t before = state_->generation;
    state_->forming[task_] = shrink;
    state_->try_form();
    state_->changed.wait(lock, [&] { return state_->generation != before; });
    rounds_.clear();
  }

  void serve(const std::string& service, Handler handler) override {
    std::lock_guard lock(state_->mutex);
    state_->handlers[{task_, service}] = std::move(handler);
    state_->changed.notify_all();
  }
  std::future<Message> call(const TaskId& to, const std::string& service,
                            Message request, double) override {
    std::lock_guard lock(queues_mutex_);
    std::shared_ptr<Queue>& queue = queues_[{to, service}];
    if (!queue) queue = std::make_shared<Queue>(*this, to, service);
    return queue->push(std::move(request));
  }
  Exchange& exchange() override {
    if (rank() >= 0) return *exchange_;
    throw errors::FailedPrecondition(task_.str() + " does not train");
  }

 private:
  // Calls to one service of one task, one after another.
  class Queue {
   public:
    Queue(FakeMember& self, TaskId to, std::string service)
        : self_(self),
          to_(std::move(to)),
          service_(std::move(service)),
          thread_([this] { run(); }) {}
    ~Queue() {
      {
        std::lock_guard lock(mutex_);
        stop_ = true;
        changed_.notify_all();
      }
      thread_.join();
    }
    std::future<Message> push(Message request) {
      std::packaged_task<Message()> task(
          [this, request = std::move(request)] { return answer(request); });
      std::future<Message> result = task.get_future();
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      changed_.notify_all();
      return result;
    }

   private:
    Message answer(const Message& request) {
      Handler handler;
      {
        State& state = *self_.state_;
        std::unique_lock lock(state.mutex);
        state.check();
        state.wait(lock, [&] {
          return state.handlers.contains({to_, service_}) ||
                 state.dropped.contains(to_);
        });
        state.check_reachable(self_.task_, to_);
        handler = state.handlers[{to_, service_}];
      }
      Message answer = handler(self_.task_, request);
      std::lock_guard lock(self_.state_->mutex);
      self_.state_->check_reachable(self_.task_, to_);
      return answer;
    }
    void run() {
      for (;;) {
        std::packaged_task<Message()> task;
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
          if (tasks_.empty()) return;
          task = std::move(tasks_.front());
          tasks_.pop_front();
        }
        task();
      }
    }

    FakeMember& self_;
    const TaskId to_;
    const std::string service_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::packaged_task<Message()>> tasks_;
    bool stop_ = false;
    std::thread thread_;
  };

  const std::shared_ptr<State> state_;
  const ClusterSpec spec_;
  const TaskId task_;
  const std::vector<TaskId> tasks_;
  std::unique_ptr<FakeExchange> exchange_;
  std::map<std::string, int> rounds_;
  std::mutex queues_mutex_;
  std::map<std::pair<TaskId, std::string>, std::shared_ptr<Queue>> queues_;
};

inline FakeCluster::FakeCluster(FakeClusterOptions options)
    : state_(std::make_shared<State>()) {
  std::map<std::string, std::vector<std::string>> jobs;
  int port = 20000;
  const auto add = [&](const std::string& job, int count) {
    for (int i = 0; i < count; ++i) {
      jobs[job].push_back(fmt::format("127.0.0.1:{}", port++));
    }
  };
  add("chief", options.chief ? 1 : 0);
  add("worker", options.workers);
  add("ps", options.ps);
  spec_ = ClusterSpec(std::move(jobs));
  state_->order = spec_.ranks();
  for (const TaskId& task : spec_.tasks()) {
    state_->inside.insert(task);
    members_[task] = std::make_shared<FakeMember>(state_, spec_, task);
  }
}

inline FakeCluster::~FakeCluster() {
  lose({"test", 0}, "the test is over");
  // Handlers and listeners may hold members, which hold the state.
  decltype(state_->handlers) handlers;
  decltype(state_->listeners) listeners;
  std::lock_guard lock(state_->mutex);
  handlers.swap(state_->handlers);
  listeners.swap(state_->listeners);
}

inline void FakeCluster::lose(const TaskId& task, const std::string& cause) {
  ClusterFailure f{.task = task,
                   .cause = cause,
                   .message = fmt::format("{} died: {}", task.str(), cause)};
  state_->fail(std::move(f));
  std::lock_guard lock(state_->mutex);
  if (state_->inside.contains(task)) state_->lost.insert(task);
  state_->try_form();
}

inline void FakeCluster::drop(const TaskId& task) {
  std::lock_guard lock(state_->mutex);
  state_->dropped.insert(task);
  state_->changed.notify_all();
}

inline void FakeCluster::come_back(const TaskId& task) {
  std::lock_guard lock(state_->mutex);
  state_->dropped.erase(task);
}

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_TESTING_H_
