// MultiWorkerMirroredStrategy: joins the cluster and restores after failures.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <map>
#include <mutex>

#include "base/immortal.h"
#include "base/where.h"
#include "berth/multi_worker.h"
#include "cluster/member.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/strategy/strategy_core.h"

namespace berth::distribute {

namespace {

struct JoinedClusters {
  std::mutex mutex;
  std::map<std::pair<uint64_t, TaskId>, std::shared_ptr<cluster::Member>> all;
};

// A process joins a cluster once, and stays in it.
std::shared_ptr<cluster::Member> joined(const ClusterResolver& resolver,
                                        const JoinOptions& options, Site site) {
  static auto& clusters = immortal<JoinedClusters>();
  const std::lock_guard lock(clusters.mutex);
  auto& member = clusters.all[{resolver.spec.hash(), resolver.task}];
  if (!member) member = cluster::Member::join(resolver, options, site);
  return member;
}

bool trains_with_others(const ClusterResolver& r) {
  return r.spec.ranks().size() > 1 && r.task.job != "evaluator";
}

std::shared_ptr<StrategyCore> core_for(const ClusterResolver& resolver,
                                       StrategyOptions options,
                                       const JoinOptions& join, Site site) {
  if (resolver.task.job == "ps") {
    throw errors::InvalidArgument(fmt::format(
        "MultiWorkerMirroredStrategy in {}{}; expected a chief or a worker: "
        "parameter servers belong to ParameterServerStrategy",
        resolver.task.str(), where_text(nullptr, site)));
  }
  if (!trains_with_others(resolver)) {
    return std::make_shared<StrategyCore>(StrategyKind::kMultiWorkerMirrored,
                                          std::move(options), site);
  }
  return std::make_shared<StrategyCore>(
      CollectiveExecutor::make(joined(resolver, join, site)),
      std::move(options), site);
}

ClusterResolver resolver_of(const cluster::Member& member) {
  ClusterResolver r;
  r.spec = member.spec();
  r.task = member.task();
  return r;
}

// An error of the program, not of the cluster: a retry would fail again.
bool is_for_good(errors::Code code) {
  using enum errors::Code;
  return code == kInvalidArgument || code == kFailedPrecondition ||
         code == kUnimplemented || code == kNotFound || code == kOutOfRange ||
         code == kPermissionDenied;
}

std::shared_ptr<StrategyCore> core_of_member(
    const std::shared_ptr<cluster::Member>& member, StrategyOptions options,
    Site site) {
  if (member->num_ranks() < 2) {
    return std::make_shared<StrategyCore>(StrategyKind::kMultiWorkerMirrored,
                                          std::move(options), site);
  }
  return std::make_shared<StrategyCore>(CollectiveExecutor::make(member),
                                        std::move(options), site);
}

// Prints the shares and the learning rate after a cluster has formed again.
void say_who_goes_on(const StrategyCore& core,
                     const std::vector<TaskId>& before) {
  const std::vector<TaskId> now = core.link()->member().ranks();
  if (now == before) return;
  const auto names = [](const std::vector<TaskId>& tasks) {
    std::string all;
    for (const TaskId& t : tasks) all += (all.empty() ? "" : ", ") + t.str();
    return all;
  };
  const int replicas = core.num_replicas();
  std::fprintf(
      stderr,
      "berth: %s: %zu tasks instead of %zu go on: %s. A batch is as large as "
      "before, in %s of %d replica%s, and the learning rate stays; data that "
      "tasks read for themselves is dealt out anew, from the beginning of the "
      "epoch\n",
      core.name().c_str(), now.size(), before.size(), names(now).c_str(),
      core.shares().empty()
          ? "equal shares"
          : fmt::format("shares {}", fmt::join(core.shares(), ":")).c_str(),
      replicas, replicas == 1 ? "" : "s");
}

}  // namespace

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(
    ClusterResolver resolver, StrategyOptions options, JoinOptions join,
    Site site)
    : Strategy(core_for(resolver, std::move(options), join, site)),
      resolver_(std::move(resolver)) {}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(
    std::shared_ptr<cluster::Member> member, StrategyOptions options, Site site)
    : Strategy(core_of_member(member, std::move(options), site)),
      resolver_(resolver_of(*member)) {}

bool MultiWorkerMirroredStrategy::is_chief() const {
  return core()->is_chief();
}

void MultiWorkerMirroredStrategy::wait_and_restore(
    const std::function<void()>& fit, double timeout_seconds,
    int most_restarts) const {
  restore(fit, timeout_seconds, most_restarts, false);
}

void MultiWorkerMirroredStrategy::shrink_and_restore(
    const std::function<void()>& fit, double timeout_seconds,
    int most_restarts) const {
  restore(fit, timeout_seconds, most_restarts, true);
}

void MultiWorkerMirroredStrategy::restore(const std::function<void()>& fit,
                                          double timeout_seconds,
                                          int most_restarts,
                                          bool shrink) const {
  for (int restarts = 0;; ++restarts) {
    std::vector<TaskId> before;
    if (const auto m = member()) before = m->ranks();
    try {
      return fit();
    } catch (const errors::Error& e) {
      const auto m = member();
      const auto failure = m ? m->failure() : std::nullopt;
      if (!failure || restarts == most_restarts || is_for_good(failure->code)) {
        throw;
      }
      std::fprintf(stderr, "berth: %s: training goes on %s\n",
                   failure->message.c_str(),
                   shrink ? "with those that are left" : "when all are back");
    }
    core()->form_again(timeout_seconds, shrink);
    if (shrink && is_chief()) say_who_goes_on(*core(), before);
  }
}

void MultiWorkerMirroredStrategy::leave(double timeout_seconds) const {
  if (const auto m = member()) m->leave(timeout_seconds);
}

std::shared_ptr<cluster::Member> MultiWorkerMirroredStrategy::member() const {
  return core()->link() ? core()->link()->shared_member() : nullptr;
}

}  // namespace berth::distribute
