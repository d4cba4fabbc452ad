// Worker: serves the devices of this process to other tasks of the cluster.
//
//   remote::Worker worker(member);       // then wait until it is not needed
//
// Each task that connects gets a session: memory, bound kernels and compiled
// parts of steps of its own, which end with the next session of that task. No
// message can crash this process or reach memory outside the sender's session.
// Thread-safe.

#ifndef BERTH_REMOTE_WORKER_H_
#define BERTH_REMOTE_WORKER_H_

#include <memory>
#include <string>
#include <vector>

#include "cluster/member.h"

namespace berth::remote {

struct WorkerOptions {
  // The devices to serve, as CPU:0, CPU:1, GPU:0 of the task; empty: all.
  std::vector<std::string> devices = {};
};

class Worker {
 public:
  explicit Worker(std::shared_ptr<cluster::Member> member,
                  WorkerOptions options = {});
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  class Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::remote

#endif  // BERTH_REMOTE_WORKER_H_
