// cluster: which processes train together, and which of them this one is
// (tf.train.ClusterSpec, tf.distribute.cluster_resolver).
//
//   auto resolver = distribute::cluster_resolver::from_environment();
//   distribute::MultiWorkerMirroredStrategy strategy(resolver);
//
// A task is one process: a job and an index, "worker:1". Jobs are chief,
// worker, ps and evaluator; "master" is read as chief. Reading opens no
// connection. Values; thread-safe.

#ifndef BERTH_CLUSTER_H_
#define BERTH_CLUSTER_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "berth/site.h"

namespace berth::distribute {

// One process of a cluster.
struct TaskId {
  std::string job;  // "chief", "worker", "ps", "evaluator"
  int index = 0;
  std::string str() const { return job + ":" + std::to_string(index); }
  auto operator<=>(const TaskId&) const = default;
};

// Jobs, their tasks and addresses (tf.train.ClusterSpec).
class ClusterSpec {
 public:
  ClusterSpec() = default;
  // Addresses "host:port" or "[ipv6]:port" by job, in order of indices. Throws
  // errors::InvalidArgument: an unknown job, an address without a port, one
  // address twice, more than one chief; the message quotes the key.
  explicit ClusterSpec(std::map<std::string, std::vector<std::string>> jobs,
                       Site site = Site::here());
  // The same of a job whose indices have gaps.
  static ClusterSpec sparse(
      std::map<std::string, std::map<int, std::string>> jobs,
      Site site = Site::here());

  bool empty() const { return jobs_.empty(); }
  std::vector<std::string> jobs() const;
  int num_tasks(const std::string& job) const;
  std::vector<int> task_indices(const std::string& job) const;
  // Throws errors::InvalidArgument for a task that is not of the cluster.
  const std::string& task_address(const std::string& job, int index) const;
  const std::map<std::string, std::map<int, std::string>>& as_dict() const {
    return jobs_;
  }
  // chief, then workers: the tasks that train, in order of their ranks.
  std::vector<TaskId> ranks() const;
  // ranks(), then ps, then evaluators.
  std::vector<TaskId> tasks() const;
  // The task that coordinates: the chief, else worker:0.
  TaskId coordinator() const;
  // The same for equal clusters in any order of keys, on any machine.
  uint64_t hash() const;
  // One line of JSON, as in TF_CONFIG.
  std::string json() const;
  bool operator==(const ClusterSpec&) const = default;

 private:
  std::map<std::string, std::map<int, std::string>> jobs_;
};

// What a launcher says of the cluster and of this process
// (tf.distribute.cluster_resolver.ClusterResolver).
struct ClusterResolver {
  ClusterSpec spec;  // empty: nobody said anything, this process is alone
  TaskId task;
  std::string rpc_layer = "grpc";
  std::string environment;  // "cloud" on Vertex AI
  // Which variables said so, as "TF_CONFIG"; "" of one made in code.
  std::string source;
  // Where the addresses of the others are not known, as under torchrun and
  // MPI: the coordinator listens at this address and collects them. Then
  // `spec` has placeholders, "" as addresses, for all but the coordinator.
  std::string rendezvous;
  int num_processes_of_host = 1;  // when the launcher says so
  int local_rank = 0;

  const ClusterSpec& cluster_spec() const { return spec; }
  const std::string& task_type() const { return task.job; }
  int task_id() const { return task.index; }
  bool alone() const { return spec.tasks().size() <= 1; }
};

// Each throws errors::InvalidArgument that quotes the variable and the key, for
// every mistake that can be seen before anybody connects; the ones of a
// launcher give an empty cluster when its variables are not set.
namespace cluster_resolver {

ClusterResolver SimpleClusterResolver(ClusterSpec spec, std::string task_type,
                                      int task_id, Site site = Site::here());
// TF_CONFIG of TensorFlow, Vertex AI, AI Platform and Kubeflow (with
// sparseCluster).
ClusterResolver TFConfigClusterResolver(Site site = Site::here());
// CLUSTER_SPEC of Vertex AI.
ClusterResolver VertexClusterResolver(Site site = Site::here());
struct SlurmOptions {
  // Tasks per job in order of ranks; empty: all are workers.
  std::vector<std::pair<std::string, int>> jobs = {};
  int port_base = 8888;  // plus the local rank
};
// SLURM_STEP_* of srun, in the order of the node list.
ClusterResolver SlurmClusterResolver(SlurmOptions options = {},
                                     Site site = Site::here());
// RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT of torchrun; the coordinator
// listens one port above MASTER_PORT, which the launcher's own store has.
ClusterResolver TorchrunClusterResolver(Site site = Site::here());
// OMPI_COMM_WORLD_* and PMI_* of mpirun; BERTH_COORDINATOR=host:port says where
// rank 0 listens.
ClusterResolver MPIClusterResolver(Site site = Site::here());

// The first of TF_CONFIG, CLUSTER_SPEC, Slurm, torchrun and MPI that is set.
// A single process when none is. Throws errors::InvalidArgument when two
// that are set contradict each other.
ClusterResolver from_environment(Site site = Site::here());

}  // namespace cluster_resolver

}  // namespace berth::distribute

#endif  // BERTH_CLUSTER_H_
