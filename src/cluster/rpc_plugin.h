// The export `berth_rpc_plugin` of libberth_rpc.so. The library is in the
// folder `berth` beside libberth.so, which is not searched for backends, and is
// opened by the first Member::join().

#ifndef BERTH_CLUSTER_RPC_PLUGIN_H_
#define BERTH_CLUSTER_RPC_PLUGIN_H_

#include <memory>
#include <optional>
#include <string>

#include "berth/device/build_id.h"
#include "cluster/member.h"

namespace berth::cluster {

struct RpcPlugin {
  const char* build_id;
  std::shared_ptr<Member> (*join)(const ClusterResolver& resolver,
                                  const JoinOptions& options, Site site);
  std::optional<std::string> (*probe)(const ClusterResolver& resolver,
                                      const TaskId& to,
                                      const JoinOptions& options,
                                      double timeout_seconds);
};

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_RPC_PLUGIN_H_
