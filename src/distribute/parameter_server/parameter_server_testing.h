// Shared by tests of parameter servers: tasks as threads of one process.

#ifndef BERTH_DISTRIBUTE_PARAMETER_SERVER_PARAMETER_SERVER_TESTING_H_
#define BERTH_DISTRIBUTE_PARAMETER_SERVER_PARAMETER_SERVER_TESTING_H_

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "berth/parameter_server.h"
#include "cluster/testing.h"
#include "distribute/parameter_server/requests.h"

namespace berth::distribute {

// Workers and servers, each on its own thread; the test is the chief.
class ServerTasks {
 public:
  ServerTasks(int workers, int ps, ParameterServerOptions options = {})
      : cluster_({.workers = workers, .ps = ps, .chief = true}) {
    for (const cluster::TaskId& t : cluster_.spec().tasks()) {
      if (t.job != "chief") begin(t);
    }
    strategy_.emplace(cluster_.member({"chief", 0}), std::move(options));
  }
  ~ServerTasks() { end(); }
  void end() {
    strategy_.reset();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }
  void begin(const cluster::TaskId& t) {
    threads_.emplace_back([m = cluster_.member(t)] { serve(m); });
  }
  // Acts as if its process had died; begin() starts another.
  void kill(const cluster::TaskId& t) {
    const char* service = t.job == "ps" ? kServerService : kWorkerService;
    cluster_.member({"chief", 0})->call(t, service, {"end", {}}).get();
    cluster_.drop(t);
  }
  const ParameterServerStrategy& strategy() const { return *strategy_; }
  cluster::FakeCluster& cluster() { return cluster_; }

 private:
  cluster::FakeCluster cluster_;
  std::vector<std::thread> threads_;
  std::optional<ParameterServerStrategy> strategy_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PARAMETER_SERVER_PARAMETER_SERVER_TESTING_H_
