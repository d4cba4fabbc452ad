// RpcMember: a task of a running cluster. It forms the cluster, reacts to the
// coordinator's frames and answers the requests of Member and Link; its parts
// know the cluster (Membership), exchange frames with the coordinator
// (ControlLink) and connect to the other tasks (Dialer). Thread-safe.
//
// Frames of the coordinator arrive on one thread at a time.

#ifndef BERTH_RPC_RPC_MEMBER_H_
#define BERTH_RPC_RPC_MEMBER_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/member.h"
#include "rpc/control_link.h"
#include "rpc/dialer.h"
#include "rpc/link.h"
#include "rpc/membership.h"

namespace berth::rpc {

class RpcMember final : public cluster::Member, public Link {
 public:
  RpcMember(const ClusterResolver& resolver, JoinOptions options, Site site);
  ~RpcMember() override;
  // Waits until all tasks have joined.
  void join();

  const ClusterSpec& spec() const override { return m_.spec; }
  const TaskId& task() const override { return m_.task; }
  const std::vector<TaskId>& tasks() const override { return m_.tasks; }
  int rank() const override;
  int num_ranks() const override;
  bool is_coordinator() const override { return m_.coordinates(); }
  uint64_t generation() const override { return m_.current_generation(); }
  bool same_host(const TaskId& task) const override;
  void barrier(const std::string& name, double timeout_seconds) override;
  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, double timeout_seconds) override;
  void abort(errors::Code code, const std::string& cause,
             int64_t step) override;
  std::optional<ClusterFailure> failure() const override { return m_.failed(); }
  void check() const override;
  void on_failure(std::function<void(const ClusterFailure&)> fn) override;
  void leave(double timeout_seconds) override;
  void set_elastic(int min, int max) override;
  void announce_end() override;
  void form_again(double timeout_seconds, bool shrink) override;
  void serve(const std::string& service, Handler handler) override;
  std::future<Message> call(const TaskId& to, const std::string& service,
                            Message request, double timeout_seconds) override;
  cluster::Exchange& exchange() override;

  std::vector<TaskId> ranks() const override { return m_.ranks(); }
  std::string host_of(const TaskId& task) const override {
    return m_.host_of(task);
  }
  bool loopback_only() const override { return m_.loopback_only(); }
  std::string name_of(const TaskId& task) const override {
    return m_.name_of(task);
  }
  double timeout_seconds() const override {
    return m_.options.call_timeout_seconds;
  }
  Socket dial(const TaskId& to, Purpose purpose, const std::string& channel,
              Route route, double timeout_seconds) override;
  std::shared_ptr<Connection> dial_connection(const TaskId& to, Purpose purpose,
                                              const std::string& channel,
                                              Route route) override;
  void accept(Purpose purpose, std::function<void(Accepted)> fn) override;
  void lost(const TaskId& peer, const std::string& cause,
            int64_t step) override;
  void fail(errors::Code code, const TaskId& task, const std::string& cause,
            int64_t step) override;
  [[noreturn]] void wait_for_failure(const std::string& cause) override;
  void on_end(std::function<void(const ClusterFailure* failure)> fn) override;
  void at_step(int64_t step) override { step_ = step; }

 private:
  using Phase = Membership::Phase;
  using Lock = Membership::Lock;

  void form(double timeout_seconds, bool shrink);
  bool find_coordinator();
  void enroll(bool shrink);
  void close_down();
  void drop_exchange();

  void on_frame(uint64_t serial, const Frame& frame);
  bool note(uint64_t serial, const Frame& frame);
  void on_go(const Frame& frame);
  void on_gone(const Frame& frame);
  void on_back(const Frame& frame);
  void on_tick(double now);
  void end_generation(const ClusterFailure* failure);
  void lose_coordinator(const std::string& cause);
  // Says in which phase this task is, for the endpoint of the process.
  void tell_phase() const;

  Membership m_;
  // Guarded by the membership's mutex.
  std::map<std::string, uint64_t> rounds_;  // of barriers
  std::set<std::pair<std::string, uint64_t>> met_;
  uint64_t next_get_ = 0;
  std::map<uint64_t, std::optional<std::string>> values_;
  std::vector<std::function<void(const ClusterFailure*)>> listeners_;
  std::atomic<int64_t> step_{-1};

  std::mutex exchange_mutex_;
  Dialer dialer_;
  ControlLink control_;
  std::unique_ptr<cluster::Exchange> exchange_;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_RPC_MEMBER_H_
