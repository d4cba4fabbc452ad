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

std::optional<std::string> probe_task(const cluster::ClusterResolver& resolver,
                                      const TaskId& to,
                                      const cluster::JoinOptions& options,
                                      double timeout_seconds) {
  const Deadline deadline = after(timeout_seconds);
  const std::string secret = secret_of(options);
  const bool head = to == resolver.spec.coordinator();
  const std::string& address =
      head && !resolver.rendezvous.empty()
          ? resolver.rendezvous
          : resolver.spec.task_address(to.job, to.index);
  const Endpoint endpoint = parse_endpoint(address);
  std::string why;
  if (secret.empty() && !is_loopback(endpoint, &why)) {
    return "without a secret it is not dialled";
  }
  const Socket s = connect_tcp(endpoint, deadline, &why);
  if (!s) return why;
  const Hello hello{.cluster = resolver.spec.hash(),
                    .build = BERTH_BUILD_ID,
                    .from = resolver.task,
                    .to = to,
                    .purpose = static_cast<uint8_t>(Purpose::kProbe),
                    .nonce = random_nonce()};
  const auto refusal = introduce(s.fd(), hello, secret, deadline, &why);
  if (refusal) return "it refuses this task: " + refusal->reason;
  if (why.empty()) return std::nullopt;
  return "who listens there does not answer as a task of this cluster: " + why;
}

}  // namespace berth::rpc

extern "C" {
__attribute__((visibility(
    "default"))) extern const berth::cluster::RpcPlugin berth_rpc_plugin;
const berth::cluster::RpcPlugin berth_rpc_plugin = {
    BERTH_BUILD_ID, berth::rpc::join_cluster, berth::rpc::probe_task};
}
