// The symbol that libberth looks for.

#include "cluster/rpc_plugin.h"
#include "rpc/rpc_member.h"

namespace berth::rpc {

std::shared_ptr<cluster::Member> join_cluster(
    const cluster::ClusterResolver& resolver,
    const cluster::JoinOptions& options, Site site) {
  auto member = std::make_shared<RpcMember>(resolver, options, site);
  member->join();
  return member;
}

}  // namespace berth::rpc

extern "C" {
__attribute__((visibility(
    "default"))) extern const berth::cluster::RpcPlugin berth_rpc_plugin;
const berth::cluster::RpcPlugin berth_rpc_plugin = {BERTH_BUILD_ID,
                                                    berth::rpc::join_cluster};
}
