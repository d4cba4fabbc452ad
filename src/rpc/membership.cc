#include "rpc/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "base/environment.h"
#include "base/where.h"
#include "rpc/message_port.h"

namespace berth::rpc {

std::string secret_of(const JoinOptions& options) {
  if (!options.secret.empty()) return options.secret;
  std::string secret = environment("BERTH_CLUSTER_SECRET");
  if (!secret.empty()) return secret;
  const std::string path = environment("BERTH_CLUSTER_SECRET_FILE");
  if (path.empty()) return "";
  std::ifstream file(path);
  std::getline(file, secret);
  while (!secret.empty() && (secret.back() == '\r' || secret.back() == ' ')) {
    secret.pop_back();
  }
  if (secret.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "BERTH_CLUSTER_SECRET_FILE names '{}', which cannot be read or has an "
        "empty first line; expected the secret there",
        path));
  }
  return secret;
}

namespace {

// What BERTH_TRANSPORT asks for, which must be there.
std::string network_of(const JoinOptions& options, const TaskId& task) {
  if (!transport_of_environment().ucx) return "";
  if (!options.tls_ca.empty() || options.transport == "grpc") {
    throw errors::InvalidArgument(
        "BERTH_TRANSPORT asks for ucx, which does not encrypt, but "
        "JoinOptions asks for gRPC or TLS for all traffic; unset the one or "
        "the other");
  }
  require_ucx();
  static std::once_flag said;
  std::call_once(said, [&] {
    std::fprintf(stderr,
                 "berth: %s: sums between tasks and large tensors of calls "
                 "(remote devices, parameter servers) go over UCX; control "
                 "goes over sockets\n",
                 task.str().c_str());
  });
  return transport_of_environment().memory ? "memory,ucx" : "ucx";
}

std::vector<TaskId> places_of(const ClusterSpec& spec,
                              const std::vector<TaskId>& tasks) {
  std::vector<TaskId> places = {spec.coordinator()};
  for (const TaskId& t : spec.ranks()) {
    const bool in = tasks.empty() ||
                    std::find(tasks.begin(), tasks.end(), t) != tasks.end();
    if (in && t != places[0]) places.push_back(t);
  }
  return places;
}

// BERTH_MIN_TASKS, for programs that do not set min_tasks; 0: not set.
int least_of_environment(const ClusterSpec& spec) {
  const std::string text = environment("BERTH_MIN_TASKS");
  const int most = static_cast<int>(spec.ranks().size());
  int least = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), least);
  if (text.empty() ||
      (error == std::errc() && end == text.data() + text.size() && least >= 1 &&
       least <= most)) {
    return least;
  }
  throw errors::InvalidArgument(
      fmt::format("BERTH_MIN_TASKS is '{}'; expected a number from 1 to {}, "
                  "the tasks that train",
                  text, most));
}

}  // namespace

Membership::Membership(const ClusterResolver& resolver,
                       JoinOptions join_options, Site site)
    : spec(resolver.spec),
      task(resolver.task),
      rendezvous(resolver.rendezvous),
      options(std::move(join_options)),
      tls{options.tls_ca, options.tls_certificate, options.tls_key},
      network(network_of(options, task)),
      places(places_of(spec, options.tasks)),
      cluster_hash(spec.hash()),
      incarnation(random_number()),
      own_host_id(host_id()) {
  if (options.min_tasks == 0) options.min_tasks = least_of_environment(spec);
  check_options(site);
  elastic_min = options.min_tasks;
  options.secret = secret_of(options);
  if (tls) options.transport = "grpc";
  heartbeat_seconds =
      std::min(options.heartbeat_seconds, options.dead_after_seconds / 4);
  tasks = options.tasks;
  if (tasks.empty()) {
    for (const TaskId& t : spec.tasks()) {
      if (t.job != "evaluator") tasks.push_back(t);
    }
  }
  if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) {
    throw errors::InvalidArgument(
        fmt::format("{} does not take part in the cluster {}{}", task.str(),
                    spec.json(), where_text(nullptr, site)));
  }
  own_address = spec.task_address(task.job, task.index);
  if (task == head() && !rendezvous.empty()) own_address = rendezvous;
  if (!own_address.empty()) check_address(task, own_address);
}

void Membership::check_options(Site site) const {
  const auto refuse = [&](const std::string& why) {
    throw errors::InvalidArgument(why + where_text(nullptr, site));
  };
  if (!(options.heartbeat_seconds > 0) || !(options.dead_after_seconds > 0) ||
      !(options.call_timeout_seconds > 0) ||
      !(options.join_timeout_seconds > 0)) {
    refuse(fmt::format(
        "JoinOptions: join_timeout_seconds {}, heartbeat_seconds {}, "
        "dead_after_seconds {} and call_timeout_seconds {} must be above 0",
        options.join_timeout_seconds, options.heartbeat_seconds,
        options.dead_after_seconds, options.call_timeout_seconds));
  }
  if (options.transport != "auto" && options.transport != "grpc") {
    refuse(
        fmt::format("JoinOptions: transport is '{}'; expected 'auto' or "
                    "'grpc'",
                    options.transport));
  }
  if (options.min_tasks < 0 ||
      options.min_tasks > static_cast<int>(spec.ranks().size())) {
    refuse(fmt::format(
        "JoinOptions: min_tasks is {}; expected 0 to {}, the tasks that train",
        options.min_tasks, spec.ranks().size()));
  }
  const int files =
      !tls.ca.empty() + !tls.certificate.empty() + !tls.key.empty();
  if (files != 0 && files != 3) {
    refuse(
        "JoinOptions: tls_ca, tls_certificate and tls_key must be given "
        "together, or none of them");
  }
  spec.task_address(task.job, task.index);  // throws for an unknown task
}

std::string Membership::head_address() const {
  return rendezvous.empty() ? spec.task_address(head().job, head().index)
                            : rendezvous;
}

void Membership::check_address(const TaskId& to,
                               const std::string& address) const {
  if (!options.secret.empty() || tls) return;
  std::string why;
  if (is_loopback(parse_endpoint(address), &why) || !why.empty()) return;
  throw errors::InvalidArgument(fmt::format(
      "{} is not on this machine alone, and the cluster has no secret: set "
      "BERTH_CLUSTER_SECRET to the same text on all tasks (or "
      "BERTH_CLUSTER_SECRET_FILE, or JoinOptions::secret); without one only "
      "loopback addresses are served and dialled",
      named(to, address)));
}

uint64_t Membership::current_generation() const {
  std::lock_guard lock(mutex);
  return generation;
}

std::vector<TaskId> Membership::ranks() const {
  std::lock_guard lock(mutex);
  std::vector<TaskId> ranks;
  for (const TaskId& t : spec.ranks()) {
    if (table.contains(t)) ranks.push_back(t);
  }
  return ranks;
}

std::string Membership::host_of(const TaskId& of) const {
  // With gRPC transport, no memory is shared.
  if (by_grpc()) return of.str();
  std::lock_guard lock(mutex);
  const auto found = table.find(of);
  return found == table.end() ? "" : found->second.host;
}

std::string Membership::address_of(const TaskId& of) const {
  const auto found = table.find(of);
  if (found != table.end()) return found->second.address;
  const std::string& known = spec.task_address(of.job, of.index);
  return of == head() && !rendezvous.empty() ? rendezvous : known;
}

bool Membership::loopback_only() const {
  if (options.secret.empty() && !tls) return true;
  std::vector<std::string> addresses;
  {
    std::lock_guard lock(mutex);
    for (const TaskId& t : tasks) addresses.push_back(address_of(t));
  }
  return std::all_of(addresses.begin(), addresses.end(), [](const auto& a) {
    return !a.empty() && is_loopback(parse_endpoint(a));
  });
}

std::string Membership::name_of(const TaskId& of) const {
  std::lock_guard lock(mutex);
  return named(of, address_of(of));
}

std::optional<ClusterFailure> Membership::failed() const {
  std::lock_guard lock(mutex);
  return failure;
}

void Membership::raise_refusal(const TaskId& to, const Refusal& refusal) const {
  errors::raise(refusal.code, fmt::format("{} refuses {}: {}", name_of(to),
                                          task.str(), refusal.reason));
}

void Membership::check_locked() const {
  if (failure) errors::raise(failure->code, failure->message);
  if (phase == Phase::kDone || phase == Phase::kClosed) {
    throw errors::FailedPrecondition(
        task.str() + ": the cluster has ended, since all tasks are done");
  }
}

void Membership::wait_for_failure(const std::string& cause) {
  Lock lock(mutex);
  changed.wait_until(lock, after(options.dead_after_seconds + 1),
                     [&] { return phase != Phase::kRunning; });
  check_locked();
  throw errors::Unavailable(fmt::format("{}: {}", task.str(), cause));
}

}  // namespace berth::rpc
