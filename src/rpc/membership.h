// Membership: which cluster this task belongs to, in which phase the cluster
// is, and what is known of the other tasks. Shared by the parts of RpcMember.
//
// Fields below `mutex` are guarded by it; `changed` is notified when they
// change. The mutex is never held while sending frames, dialling sockets or
// running callbacks.

#ifndef BERTH_RPC_MEMBERSHIP_H_
#define BERTH_RPC_MEMBERSHIP_H_

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/member.h"
#include "rpc/coordinator.h"
#include "rpc/grpc_stream.h"
#include "rpc/link.h"

namespace berth::rpc {

using cluster::ClusterResolver;
using cluster::JoinOptions;

// Returns the option, else BERTH_CLUSTER_SECRET, else the contents of the file
// named by BERTH_CLUSTER_SECRET_FILE; "" if there is none. Throws
// errors::InvalidArgument for a file that cannot be read.
std::string secret_of(const JoinOptions& options);

struct Membership {
  enum class Phase { kForming, kRunning, kFailed, kDone, kClosed };
  using Lock = std::unique_lock<std::mutex>;

  // Throws errors::InvalidArgument for options that do not fit.
  Membership(const ClusterResolver& resolver, JoinOptions join_options,
             Site site);

  // The task that coordinates: the first place, unless tasks may take over.
  const TaskId& head() const { return places[head_at.load()]; }
  bool coordinates() const { return heads.load(); }
  // Whether another task takes over when the coordinator is lost. Addresses
  // that only the coordinator knows, and TLS, leave nobody to ask.
  bool takes_over() const {
    return elastic_min.load() > 0 && rendezvous.empty() && !tls;
  }
  bool by_grpc() const { return options.transport == "grpc"; }
  // The address of the coordinator before it has told the addresses.
  std::string head_address() const;
  // Throws errors::InvalidArgument for one that needs a secret and has none.
  void check_address(const TaskId& to, const std::string& address) const;

  // These lock the mutex.
  uint64_t current_generation() const;
  std::vector<TaskId> ranks() const;
  std::string host_of(const TaskId& of) const;
  std::string name_of(const TaskId& of) const;
  bool loopback_only() const;  // all addresses of tasks are of this machine
  std::optional<ClusterFailure> failed() const;
  // Throws what ended the cluster for a task that `to` refused.
  [[noreturn]] void raise_refusal(const TaskId& to,
                                  const Refusal& refusal) const;
  // As in Link.
  [[noreturn]] void wait_for_failure(const std::string& cause);

  // Call these with the lock held.
  std::string address_of(const TaskId& of) const;
  void check_locked() const;
  // Waits until `ready`, the end of the generation or the deadline; every 10 s
  // a line names the missing tasks.
  template <class Ready>
  bool wait(Lock& lock, Deadline deadline, const char* what, Ready ready);

  ClusterSpec spec;
  const TaskId task;
  const std::string rendezvous;
  JoinOptions options;
  const TlsFiles tls;
  const std::string network;  // of sums: "ucx", "memory,ucx"; "": sockets
  std::vector<TaskId> tasks;
  const std::vector<TaskId> places;  // that may coordinate, in this order
  std::atomic<size_t> head_at{0};    // of places
  std::atomic<bool> heads{false};    // the coordinator runs here
  std::atomic<int> elastic_min{0}, elastic_max{0};  // Member::set_elastic()
  const uint64_t cluster_hash, incarnation;
  const std::string own_host_id;
  double heartbeat_seconds = 1;
  int port = 0;

  mutable std::mutex mutex;
  std::condition_variable changed;
  Phase phase = Phase::kForming;
  uint64_t generation = 0;
  std::string own_address;
  std::map<TaskId, TaskEntry> table;
  std::map<TaskId, std::string> gone;  // lost elastic tasks
  std::optional<ClusterFailure> failure;
  std::string waiting;  // missing tasks, from the coordinator

 private:
  void check_options(Site site) const;
};

template <class Ready>
bool Membership::wait(Lock& lock, Deadline deadline, const char* what,
                      Ready ready) {
  waiting.clear();
  Deadline line = after(10);
  for (;;) {
    if (phase != Phase::kRunning || ready()) return true;
    if (Clock::now() >= deadline) return false;
    if (Clock::now() >= line) {
      std::fprintf(stderr, "berth: %s: %s waits%s%s\n", task.str().c_str(),
                   what, waiting.empty() ? "" : " ", waiting.c_str());
      line = after(10);
    }
    changed.wait_until(lock, std::min(deadline, line));
  }
}

}  // namespace berth::rpc

#endif  // BERTH_RPC_MEMBERSHIP_H_
