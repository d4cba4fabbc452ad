// remote: devices of other tasks (tf.config.experimental_connect_to_cluster).
//
//   auto resolver = distribute::cluster_resolver::from_environment();
//   config::connect_to_cluster(resolver);
//   auto on = berth::device("/job:worker/task:1/device:GPU:0");
//
// The other tasks run the program `berth worker`. Their devices are then listed
// and named like those of this process, after all of these: nothing runs there
// unless requested. An op there may still be running when the call returns;
// reading its result waits and throws errors, with the op, the user's line and
// the task. Functions are split by tasks, each of which compiles and runs its
// part.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_REMOTE_H_
#define BERTH_REMOTE_H_

#include <string>
#include <vector>

#include "berth/cluster.h"
#include "berth/site.h"

namespace berth::config {

struct ConnectOptions {
  // Jobs whose devices are used; empty: all tasks except evaluators.
  std::vector<std::string> jobs = {};
  double join_timeout_seconds = 600;
  // How long a run may wait for data from another task.
  double call_timeout_seconds = 600;
  // See "closed by default" in docs/cluster.md; "": BERTH_CLUSTER_SECRET.
  std::string secret = {};
};

// Joins the cluster as the resolver's task and adds the devices of the others.
// After a task was lost (errors::Unavailable at every use), calling it again
// reconnects: the devices are the same, their contents are gone. Call it before
// other threads use devices. Throws errors::InvalidArgument (a cluster without
// other tasks), errors::FailedPrecondition (another build, or changed devices),
// errors::Unavailable and errors::DeadlineExceeded naming the task.
void connect_to_cluster(const distribute::ClusterResolver& resolver,
                        const ConnectOptions& options = {},
                        Site site = Site::here());
// Connects this process as `job_name`:`task_index` of `spec`.
void connect_to_cluster(const distribute::ClusterSpec& spec,
                        const std::string& job_name, int task_index = 0,
                        const ConnectOptions& options = {},
                        Site site = Site::here());

// Connects, as "chief:0" at `own_address`, to tasks of one job at these
// addresses (tf.config.experimental_connect_to_host); they must be given the
// same cluster.
void connect_to_remote_host(const std::vector<std::string>& remote_host,
                            const std::string& own_address,
                            const std::string& job_name = "worker",
                            const ConnectOptions& options = {},
                            Site site = Site::here());
inline void connect_to_host(const std::string& remote_host,
                            const std::string& own_address,
                            const std::string& job_name = "worker",
                            const ConnectOptions& options = {},
                            Site site = Site::here()) {
  connect_to_remote_host({remote_host}, own_address, job_name, options, site);
}

// Tells the workers that they are not needed any more: `berth worker` then
// ends. Later uses throw errors::Unavailable. Does nothing without a
// connection.
void disconnect_from_cluster();

// Serves the devices of this process until the cluster's coordinator
// disconnects: the program `berth worker`. Throws the failure that ended the
// cluster, and what connect_to_cluster() throws.
void serve_devices(const distribute::ClusterResolver& resolver,
                   const ConnectOptions& options = {},
                   Site site = Site::here());

// TensorFlow's names.
inline void experimental_connect_to_cluster(
    const distribute::ClusterResolver& resolver,
    const ConnectOptions& options = {}, Site site = Site::here()) {
  connect_to_cluster(resolver, options, site);
}

}  // namespace berth::config

#endif  // BERTH_REMOTE_H_
