// A cluster of threads in which chief:0 has the devices of two workers, which
// are /CPU:1 and /CPU:2 (and a simulated GPU) of this process. Tests only.

#ifndef BERTH_REMOTE_REMOTE_TESTING_H_
#define BERTH_REMOTE_REMOTE_TESTING_H_

#include <cstdlib>
#include <memory>
#include <vector>

#include "base/immortal.h"
#include "berth/berth.h"
#include "cluster/testing.h"
#include "remote/connection.h"
#include "remote/worker.h"

namespace berth::remote {

// Runs before any device exists.
inline const bool kDevicesOfTests = [] {
  setenv("BERTH_SIM", "", 1);
  config::set_simulated_devices("GPUx1");
  config::set_logical_device_configuration({"/physical_device:CPU:0", "CPU"},
                                           {{.workers = 2, .shared = true},
                                            {.workers = 2, .shared = true},
                                            {.workers = 2, .shared = true}});
  return true;
}();

inline constexpr const char* kWorker0 = "/job:worker/task:0/device:CPU:0";
inline constexpr const char* kWorker1 = "/job:worker/task:1/device:CPU:0";
inline constexpr const char* kWorkerGpu = "/job:worker/task:1/device:GPU:0";

struct TestCluster {
  cluster::FakeCluster cluster{{.workers = 2, .chief = true}};
  std::unique_ptr<Worker> workers[2];

  TestCluster() {
    workers[0] = std::make_unique<Worker>(cluster.member({"worker", 0}),
                                          WorkerOptions{.devices = {"/CPU:1"}});
    workers[1] = std::make_unique<Worker>(
        cluster.member({"worker", 1}),
        WorkerOptions{.devices = {"/CPU:2", "/GPU:0"}});
    connect(cluster.member({"chief", 0}));
  }
};

// Clusters of the process; a new one if the last was lost.
inline std::vector<std::unique_ptr<TestCluster>>& test_clusters() {
  static auto& all = immortal<std::vector<std::unique_ptr<TestCluster>>>();
  return all;
}
inline TestCluster& new_test_cluster() {
  return *test_clusters().emplace_back(std::make_unique<TestCluster>());
}
inline TestCluster& test_cluster() {
  return test_clusters().empty() ? new_test_cluster() : *test_clusters().back();
}

}  // namespace berth::remote

#endif  // BERTH_REMOTE_REMOTE_TESTING_H_
