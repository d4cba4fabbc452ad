// What libberth_rpc.so exports as `berth_rpc_plugin`. It lies in the folder
// `berth` beside libberth.so, where nobody looks for backends, and is opened by
// the first Member::join().

#ifndef BERTH_CLUSTER_RPC_PLUGIN_H_
#define BERTH_CLUSTER_RPC_PLUGIN_H_

#include <memory>

#include "berth/device/build_id.h"
#include "cluster/member.h"

namespace berth::cluster {

struct RpcPlugin {
  const char* build_id;
  std::shared_ptr<Member> (*join)(const ClusterResolver& resolver,
                                  const JoinOptions& options, Site site);
};

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_RPC_PLUGIN_H_
