// Coordinator: which tasks are present or missing, barriers, a store, and the
// one failure that ends a generation for all.
//
// A state machine: it takes frames, ends of connections and the time, and emits
// frames for connections through `send`, in order, on the calling thread,
// without holding a lock. It runs in the chief, else in worker 0. Thread-safe.

#ifndef BERTH_RPC_COORDINATOR_H_
#define BERTH_RPC_COORDINATOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/member.h"
#include "rpc/control.h"

namespace berth::rpc {

using cluster::ClusterFailure;
using distribute::ClusterSpec;

// "worker:1 (127.0.0.1:2222)".
std::string named(const TaskId& task, const std::string& address);
// The message that every task throws.
std::string message_of(const ClusterFailure& failure,
                       const std::string& address);
// Causes that several tasks may report, always in the same words.
std::string cause_closed();
std::string cause_silent(double seconds);

class Coordinator {
 public:
  struct Options {
    ClusterSpec spec;
    std::vector<TaskId> tasks;  // the tasks that take part
    TaskId self;
    std::vector<std::string> elastic_jobs = {};
    double heartbeat_seconds = 1;
    double dead_after_seconds = 10;
    double line_seconds = 10;  // between two lines about missing tasks
    // Where tasks may take over: those of the last generation that are waited
    // for, and whether a generation begins only after asked().
    std::vector<TaskId> expected = {};
    bool asks_first = false;
    std::string network = {};  // of sums: "ucx", "memory,ucx"; "": sockets
  };
  // A frame for a connection; `close`: the last one. Broadcasts share it.
  using FramePtr = std::shared_ptr<const Frame>;
  using Send = std::function<void(int connection, const FramePtr&, bool close)>;

  Coordinator(Options options, Send send);

  // Adds the connection of an authenticated task. `now`: seconds of any clock.
  void connected(int connection, const TaskId& task);
  void received(int connection, const Frame& frame);
  // The connection broke or was closed.
  void closed(int connection);
  // Call it every few hundredths of a second. A longer gap between two calls
  // counts as little more than that: a stopped process blames no other.
  void tick(double now);
  // This task has asked all others: whether one of them coordinates, too, and
  // which are not there.
  void asked(bool another, const std::vector<TaskId>& absent);
  // A task tried to connect and was refused.
  void turned_away(const TaskId& task, const std::string& reason);
  // The interval of tick(), in seconds.
  double tick_seconds() const;

  // Whether no member is connected any more, apart from this process itself,
  // or all that are have left.
  bool deserted() const;

 private:
  struct Task {
    std::string address;
    int connection = -1;
    TaskEntry entry;
    uint64_t last_generation = 0;
    bool ready = false;  // for the next generation
    bool shrink = false;
    bool inside = false;  // of the current generation
    bool done = false;
    bool left = false;  // it knows that all are done
    double silent = 0;  // seconds
    int64_t step = -1;
    int min = 0, max = 0;   // Member::set_elastic(); 0: not called
    bool expected = false;  // it was in the last generation, and may be alive
    std::string why;        // why it is missing
  };
  struct Barrier {
    std::set<TaskId> arrived;
  };
  struct Suspicion {
    TaskId task;
    std::string cause;
    int64_t step = -1;
    double age = 0;  // seconds
  };
  struct Outgoing {
    int connection;
    FramePtr frame;
    bool close;
  };

  // These are called with the lock held; what they send is queued.
  void post(int connection, Frame frame, bool close = false);
  void post_inside(Frame frame);
  void handle(int connection, const TaskId& from, const Frame& f);
  void enroll(int connection, const TaskId& id, const Frame& f);
  void try_go();
  void go();
  // Tasks may come and go: of those `inside`, else of those that are ready.
  bool may_change(bool inside) const;
  bool changed_may_go() const;
  bool takes_part(const TaskId& id) const;
  void let_join();
  void fail(ClusterFailure failure);
  void put(const TaskId& from, const Frame& f);
  void get(int connection, const Frame& f);
  void failed(const TaskId& from, const Frame& f);
  void late(const Frame& f);
  void lost(const TaskId& id, const std::string& cause);
  // Removes an elastic task from the current generation, or adds it.
  void drop(const TaskId& id, const std::string& cause);
  void admit(const TaskId& id);
  void meet_barriers();
  bool elastic(const TaskId& id) const;
  bool only_elastic_miss() const;
  Frame go_frame() const;
  void check_done();
  void tell_waiting();
  std::string missing_for_go() const;
  std::string list(const std::vector<std::string>& names) const;
  std::vector<std::string> not_done() const;
  std::vector<std::string> not_at(const Barrier& barrier) const;
  int64_t step_of(const TaskId& id) const;

  // Sends what any thread has queued, in order.
  void deliver();

  const Options options_;
  const Send send_;
  mutable std::mutex mutex_;
  std::map<TaskId, Task> tasks_;
  std::map<int, TaskId> connections_;
  std::vector<std::pair<int, Frame>> held_;  // undecided registrations
  uint64_t generation_ = 0;
  bool running_ = false;
  std::optional<ClusterFailure> failure_;
  std::map<std::pair<std::string, uint64_t>, Barrier> barriers_;
  std::map<std::string, std::string> store_;
  size_t store_bytes_ = 0;
  std::map<std::string, std::vector<std::pair<int, uint64_t>>> getters_;
  std::vector<Suspicion> suspicions_;
  double last_tick_ = -1, since_heartbeat_ = 0, since_told_ = 0;
  double alone_ = 0;  // seconds for which only_elastic_miss()
  double quiet_ = 0;  // seconds since the last registration
  bool may_go_ = true;
  std::deque<Outgoing> outgoing_;
  bool delivering_ = false;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_COORDINATOR_H_
