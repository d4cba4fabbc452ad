// What libberth_rpc.so exports as `berth_rpc_plugin`. It lies in the folder
// `berth` beside libberth.so, where nobody looks for backends, and is opened by
// the first Member::join().

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
