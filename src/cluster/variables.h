// Variables: the launcher variables that resolvers read.
//
// Those of this process, or given ones (tests, fuzzing). An empty variable
// counts as not set.

#ifndef BERTH_CLUSTER_VARIABLES_H_
#define BERTH_CLUSTER_VARIABLES_H_

#include <map>
#include <optional>
#include <string>

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
ClusterResolver read_torchrun(const Variables& variables, Site site);
ClusterResolver read_mpi(const Variables& variables, Site site);
ClusterResolver read_environment(const Variables& variables, Site site);

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_VARIABLES_H_
