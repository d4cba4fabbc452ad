// Variables: the launcher variables that resolvers read.
//
// Those of this process, or given ones (tests, fuzzing). An empty variable
// counts as not set.

#ifndef BERTH_CLUSTER_VARIABLES_H_
#define BERTH_CLUSTER_VARIABLES_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "berth/cluster.h"

namespace berth::cluster {

using distribute::ClusterResolver;
using distribute::ClusterSpec;
using distribute::TaskId;
namespace cluster_resolver = distribute::cluster_resolver;

class Variables {
 public:
  Variables() = default;
  explicit Variables(std::map<std::string, std::string> given)
      : given_(std::move(given)) {}

  std::string get(const std::string& name) const {
    if (!given_) return environment(name.c_str());
    const auto found = given_->find(name);
    return found == given_->end() ? "" : found->second;
  }
  bool has(const std::string& name) const { return !get(name).empty(); }

  // A whole number from `least` to `most`. Throws errors::InvalidArgument that
  // quotes the variable, also if it is not set.
  int number(const std::string& name, int least, int most, Site site) const;

 private:
  std::optional<std::map<std::string, std::string>> given_;
};

// The resolvers of berth/cluster.h on given variables.
ClusterResolver read_tf_config(const Variables& variables,
                               const cluster_resolver::ResolverOptions& options,
                               Site site);
ClusterResolver read_vertex(const Variables& variables,
                            const cluster_resolver::ResolverOptions& options,
                            Site site);
ClusterResolver read_host_list(const Variables& variables,
                               const cluster_resolver::HostListOptions& options,
                               Site site);
ClusterResolver read_slurm(const Variables& variables,
                           const cluster_resolver::SlurmOptions& options,
                           Site site);
// BERTH_JOBSET and the labels of a JobSet's pods, and PET_* of a TrainJob's
// (docs/cluster.md).
ClusterResolver read_jobset(const Variables& variables, Site site);
ClusterResolver read_pod_rank(const Variables& variables, Site site);
ClusterResolver read_torchrun(const Variables& variables, Site site);
ClusterResolver read_mpi(const Variables& variables, Site site);
ClusterResolver read_environment(const Variables& variables, Site site);

// What they share.
inline constexpr int kMostPort = 65535;
// BERTH_PORT, else 2222, as in TensorFlow's clusters.
int port_of_tasks(const Variables& variables, Site site);
// "host:port", with brackets around an IPv6 address.
std::string with_port(const std::string& host, int port);
// Tasks per job, in order: "chief=1,worker=3".
using JobCounts = std::vector<std::pair<std::string, int>>;
JobCounts read_job_counts(const std::string& what, const std::string& text,
                          Site site);
// Assigns addresses, in order of ranks, to jobs (without counts, workers);
// `task` is that of `rank`.
ClusterSpec assign(const std::string& what, const std::string& jobs_what,
                   JobCounts counts, const std::vector<std::string>& addresses,
                   int rank, TaskId* task, Site site);
// For launchers that know ranks, but no addresses.
ClusterResolver of_ranks(const std::string& source, int rank, int size,
                         const std::string& coordinator, Site site);

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_VARIABLES_H_
