// cluster: which processes train together, and which of them this one is
// (tf.train.ClusterSpec, tf.distribute.cluster_resolver).
//
//   auto resolver = distribute::cluster_resolver::from_environment();
//   distribute::MultiWorkerMirroredStrategy strategy(resolver);
//
// A task is one process: a job and an index, "worker:1". Jobs are chief,
// worker, ps and evaluator; "master" and "coordinator" are read as chief.
// Reading opens no connection; `berth cluster --check` does, to say whom this
// process can reach. Values; thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_CLUSTER_H_
#define BERTH_CLUSTER_H_

#include <compare>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
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
  // errors::InvalidArgument, quoting the key, for an unknown job, an address
  // without a port, a repeated address, more than one chief, or a loopback
  // address beside others. A job without tasks is left out.
  explicit ClusterSpec(std::map<std::string, std::vector<std::string>> jobs,
                       Site site = Site::here());
  ClusterSpec(std::initializer_list<
                  std::pair<const std::string, std::vector<std::string>>>
                  jobs,
              Site site = Site::here())
      : ClusterSpec(std::map<std::string, std::vector<std::string>>(jobs),
                    site) {}
  // A cluster whose jobs have gaps in their indices.
  static ClusterSpec sparse(
      std::map<std::string, std::map<int, std::string>> jobs,
      Site site = Site::here());
  // Workers whose addresses are not known yet (""), except the coordinator's.
  static ClusterSpec of_workers(int count, std::string coordinator,
                                Site site = Site::here());

  bool empty() const { return jobs_.empty(); }
  std::vector<std::string> jobs() const;
  int num_tasks(const std::string& job) const;
  std::vector<int> task_indices(const std::string& job) const;
  // Throws errors::InvalidArgument for a task that is not in the cluster.
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
  // Equal for equal clusters, in any order of keys, on any machine.
  uint64_t hash() const;
  // One line of JSON, as in TF_CONFIG.
  std::string json() const;
  bool operator==(const ClusterSpec&) const = default;

 private:
  std::map<std::string, std::map<int, std::string>> jobs_;
};

// A launcher's description of the cluster and of this process
// (tf.distribute.cluster_resolver.ClusterResolver).
struct ClusterResolver {
  ClusterSpec spec = {};  // empty: not described, this process is alone
  TaskId task = {};
  std::string rpc_layer = "grpc";
  std::string environment = {};  // "cloud" on Vertex AI
  // The variables that were read, such as "TF_CONFIG"; "" if made in code.
  std::string source = {};
  // Used if the addresses of the others are not known, as under torchrun and
  // MPI: the coordinator listens at this address and collects them. Then `spec`
  // has placeholders, "" as addresses, for all but the coordinator.
  std::string rendezvous = {};
  int num_processes_of_host = 1;  // if the launcher reports it
  int local_rank = 0;
  // Settings that were found but not followed, a sentence each.
  std::vector<std::string> notes = {};

  const ClusterSpec& cluster_spec() const { return spec; }
  const std::string& task_type() const { return task.job; }
  int task_id() const { return task.index; }
  bool alone() const { return spec.tasks().size() <= 1; }
};

// How a task joins its cluster.
struct JoinOptions {
  // Time to wait for all tasks; every 10 s a line says who is missing and why.
  double join_timeout_seconds = 3600;
  double heartbeat_seconds = 1;
  double dead_after_seconds = 10;     // without a heartbeat
  double call_timeout_seconds = 600;  // default for calls and exchanges
  // Proves that a task belongs to this cluster; "": BERTH_CLUSTER_SECRET, or a
  // file named by BERTH_CLUSTER_SECRET_FILE; without either only loopback
  // addresses are served and dialled.
  std::string secret = {};
  // "auto": tensors on separate sockets of the same port, memfd on one host.
  // "grpc": all traffic over gRPC.
  std::string transport = "auto";
  // PEM files; all three or none: gRPC with mutual TLS.
  std::string tls_ca = {}, tls_certificate = {}, tls_key = {};
  // The tasks that take part; empty: all of the cluster except evaluators.
  std::vector<TaskId> tasks = {};
  // The death of a task in such a job is not a failure of the cluster: calls to
  // it throw errors::Unavailable naming it, and it may join again at any time,
  // in the same generation.
  std::vector<std::string> elastic_jobs = {};
  // For MultiWorkerMirroredStrategy::elastic(): with so many tasks the cluster
  // begins, once the others have had a moment to come. 0: with all of them.
  int min_tasks = 0;
};

// Each throws errors::InvalidArgument, quoting the variable and the key, for
// every mistake that can be detected before connecting. Those for launchers
// return an empty cluster if the launcher's variables are not set. Parameter
// servers need a chief, which coordinates, and a worker. An evaluator may be
// outside the cluster.
namespace cluster_resolver {

// Options set here override the launcher.
struct ResolverOptions {
  std::string task_type = {};
  std::optional<int> task_id = {};
  std::string rpc_layer = {};
  std::string environment = {};
};

ClusterResolver SimpleClusterResolver(ClusterSpec spec, std::string task_type,
                                      int task_id, Site site = Site::here());
ClusterResolver SimpleClusterResolver(ClusterSpec spec,
                                      ResolverOptions options = {},
                                      Site site = Site::here());
// TF_CONFIG of TensorFlow, Vertex AI, AI Platform and Kubeflow (with
// sparseCluster).
ClusterResolver TFConfigClusterResolver(ResolverOptions options = {},
                                        Site site = Site::here());
// CLUSTER_SPEC of Vertex AI: pools 0 to 3 are chief, worker, ps and evaluator;
// a pool of reduction servers is left out.
ClusterResolver VertexClusterResolver(ResolverOptions options = {},
                                      Site site = Site::here());
// Merges the clusters of all, in order; all else, including which task this is,
// comes from the first (tf.distribute.cluster_resolver.UnionResolver).
ClusterResolver UnionResolver(std::vector<ClusterResolver> resolvers,
                              ResolverOptions options = {},
                              Site site = Site::here());

struct HostListOptions {
  // "node[1-4],gpu7", in Slurm's format; "": BERTH_HOSTS.
  std::string hosts = {};
  // Tasks per job in order of the hosts, "chief=1,worker=3"; "": BERTH_JOBS,
  // otherwise all are workers.
  std::string jobs = {};
  int port = 0;  // 0: BERTH_PORT, else 2222
  // The number of this host, from 0; not set: BERTH_TASK_INDEX, else
  // JOB_COMPLETION_INDEX of an indexed Job of Kubernetes.
  std::optional<int> index = {};
};
// One task per host, if all tasks get the same variables except an index.
ClusterResolver HostListClusterResolver(HostListOptions options = {},
                                        Site site = Site::here());

struct SlurmOptions {
  // Tasks per job in order of ranks; empty: all are workers.
  std::vector<std::pair<std::string, int>> jobs = {};
  int port_base = 8888;  // plus the local rank
  // Tasks on each node; empty: SLURM_STEP_TASKS_PER_NODE.
  std::vector<int> tasks_per_node = {};
  std::string rpc_layer = "grpc";
};
// SLURM_STEP_* of srun, in the order of the node list and, on a node, of the
// local ranks; so with --distribution=cyclic a rank is not SLURM_PROCID.
ClusterResolver SlurmClusterResolver(SlurmOptions options = {},
                                     Site site = Site::here());
// RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT of torchrun; the coordinator
// listens one port above MASTER_PORT, which the launcher's own store uses.
ClusterResolver TorchrunClusterResolver(Site site = Site::here());
// OMPI_COMM_WORLD_* and PMI_* of mpirun; rank 0 listens at
// BERTH_COORDINATOR=host:port. OpenMPI tasks on one host do not need it: the
// port is derived from the name of the job, between 20000 and 29999.
ClusterResolver MPIClusterResolver(Site site = Site::here());

// The first of TF_CONFIG, CLUSTER_SPEC, BERTH_HOSTS, BERTH_JOBSET (a JobSet of
// Kubernetes), torchrun, MPI, Slurm and PET_NNODES (a TrainJob of Kubeflow)
// that is set: inner launchers before those that started them, and Slurm before
// MPI if both describe the same. A single process if none is set. Throws
// errors::InvalidArgument if TF_CONFIG and CLUSTER_SPEC contradict each other;
// other contradictions to the launcher that is followed are in `notes`.
ClusterResolver from_environment(Site site = Site::here());

}  // namespace cluster_resolver

}  // namespace berth::distribute

#endif  // BERTH_CLUSTER_H_
