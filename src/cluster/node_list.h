// Lists in Slurm's format. Pure; thread-safe.
//
// Both functions throw errors::InvalidArgument whose text begins with `what`,
// such as "SLURM_STEP_NODELIST", and describes the error and its position.

#ifndef BERTH_CLUSTER_NODE_LIST_H_
#define BERTH_CLUSTER_NODE_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "berth/site.h"

namespace berth::cluster {

// The hosts of "n[9-10],r[1-2]n[01-02]-ib" in Slurm's order: as written,
// numbers ascending, the first bracket slowest, leading zeros kept.
std::vector<std::string> expand_node_list(const std::string& what,
                                          std::string_view text, Site site);

// {5, 4, 4, 4} of "5,4(x3)".
std::vector<int> expand_counts(const std::string& what, std::string_view text,
                               Site site);

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_NODE_LIST_H_
