// Joining a cluster by the plug-in of clusters.

#include <fmt/format.h>

#include <mutex>

#include "base/immortal.h"
#include "base/where.h"
#include "cluster/endpoint.h"
#include "cluster/rpc_plugin.h"
#include "device/inner_plugin.h"

namespace berth::cluster {

namespace {

const RpcPlugin& open_rpc_plugin(Site site) {
  static auto& mutex = immortal<std::mutex>();
  static const RpcPlugin* opened = nullptr;
  std::lock_guard lock(mutex);
  if (opened) return *opened;
  const InnerPlugin plugin =
      open_inner_plugin("libberth_rpc.so", "berth_rpc_plugin");
  if (plugin.symbol == nullptr) {
    throw errors::FailedPrecondition(fmt::format(
        "several processes need {}, which cannot be opened{}: {}; build "
        "Berth where libgrpc++-dev and libgloo-dev are installed (`./dev "
        "build`), and install the folder `berth` beside libberth.so",
        plugin.path, where_text(nullptr, site), plugin.why));
  }
  opened = static_cast<const RpcPlugin*>(plugin.symbol);
  return *opened;
}

}  // namespace

std::shared_ptr<Member> Member::join(const ClusterResolver& resolver,
                                     JoinOptions options, Site site) {
  serve_endpoint(site);
  return open_rpc_plugin(site).join(resolver, options, site);
}

std::optional<std::string> Member::probe(const ClusterResolver& resolver,
                                         const TaskId& to, JoinOptions options,
                                         double timeout_seconds, Site site) {
  return open_rpc_plugin(site).probe(resolver, to, options, timeout_seconds);
}

}  // namespace berth::cluster
