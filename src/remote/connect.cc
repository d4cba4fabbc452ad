// connect_to_cluster(): the public functions that connect to other tasks.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/remote.h"
#include "cluster/member.h"
#include "remote/connection.h"
#include "remote/mailbox.h"
#include "remote/worker.h"

namespace berth::config {

namespace {

constexpr const char* kDone = "berth.devices.done";
constexpr double kForEver = 1e9;

cluster::JoinOptions join_options(const ConnectOptions& options) {
  cluster::JoinOptions join;
  join.join_timeout_seconds = options.join_timeout_seconds;
  join.call_timeout_seconds = options.call_timeout_seconds;
  join.secret = options.secret;
  return join;
}

void check_not_alone(const distribute::ClusterResolver& resolver,
                     const char* what, Site site) {
  if (!resolver.alone()) return;
  throw errors::InvalidArgument(fmt::format(
      "{}: no other task is in the cluster{}; expected several: set TF_CONFIG, "
      "start with `berth launch`, or give a ClusterSpec",
      what, where_text(nullptr, site)));
}

}  // namespace

void connect_to_cluster(const distribute::ClusterResolver& resolver,
                        const ConnectOptions& options, Site site) {
  check_not_alone(resolver, "connect_to_cluster", site);
  std::shared_ptr<cluster::Member> member = remote::connected_member();
  if (member && member->failure()) {
    member->form_again(options.join_timeout_seconds);
  } else if (!member) {
    member = cluster::Member::join(resolver, join_options(options), site);
  }
  remote::Mailbox::of(member)->set_timeout(options.call_timeout_seconds);
  std::vector<distribute::TaskId> tasks;
  for (const distribute::TaskId& t : member->tasks()) {
    const bool wanted =
        options.jobs.empty()
            ? t.job != "evaluator"
            : std::find(options.jobs.begin(), options.jobs.end(), t.job) !=
                  options.jobs.end();
    if (wanted && t != member->task()) tasks.push_back(t);
  }
  remote::connect(std::move(member), std::move(tasks), site);
}

void connect_to_cluster(const distribute::ClusterSpec& spec,
                        const std::string& job_name, int task_index,
                        const ConnectOptions& options, Site site) {
  connect_to_cluster(distribute::cluster_resolver::SimpleClusterResolver(
                         spec, job_name, task_index, site),
                     options, site);
}

void connect_to_remote_host(const std::vector<std::string>& remote_host,
                            const std::string& own_address,
                            const std::string& job_name,
                            const ConnectOptions& options, Site site) {
  connect_to_cluster(
      distribute::ClusterSpec(
          {{"chief", {own_address}}, {job_name, remote_host}}, site),
      "chief", 0, options, site);
}

void disconnect_from_cluster() {
  const auto member = remote::connected_member();
  if (!member || member->failure()) return;
  member->put(kDone, "1");
  remote::disconnect();
  member->leave();
}

void serve_devices(const distribute::ClusterResolver& resolver,
                   const ConnectOptions& options, Site site) {
  check_not_alone(resolver, "serve_devices", site);
  const auto member =
      cluster::Member::join(resolver, join_options(options), site);
  const remote::Worker worker(member);
  remote::Mailbox::of(member)->set_timeout(options.call_timeout_seconds);
  member->get(kDone, kForEver);
  member->leave();
}

}  // namespace berth::config
