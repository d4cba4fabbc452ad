// MultiWorkerMirroredStrategy: joins the cluster and restores after failures.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <sstream>

#include "base/environment.h"
#include "base/immortal.h"
#include "base/where.h"
#include "berth/multi_worker.h"
#include "cluster/member.h"
#include "distribute/multi_worker/elastic_run.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/multi_worker/preemption_watch.h"
#include "distribute/multi_worker/step_consensus.h"
#include "distribute/strategy/strategy_core.h"
#include "ops/random_key.h"

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

// Tasks were lost or added, which elastic() goes on after.
bool is_change(errors::Code code) {
  return code == errors::Code::kUnavailable || code == errors::Code::kAborted;
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
  const auto link = CollectiveExecutor::make(joined(resolver, join, site));
  const bool elastic =
      join.min_tasks > 0 || !environment("BERTH_MIN_TASKS").empty();
  for (;;) {
    try {
      return std::make_shared<StrategyCore>(link, options, site);
    } catch (const errors::Error&) {
      // A task may be lost or join while the others meet here.
      const auto failure = link->member().failure();
      if (!elastic || !failure || !is_change(failure->code)) throw;
    }
    link->form_again(join.join_timeout_seconds, true);
  }
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

// This task was told to end.
struct Leaves {};
// How long it has for that, and one whose work is over waits for others.
constexpr double kLeaveSeconds = 30;

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

// `train` draws its shuffles as it did the first time in the task that has been
// in it for longest.
void begin_alike(CollectiveExecutor& link, ElasticRun* run) {
  const RandomState s = run->first.value_or(random_state());
  const std::string mine =
      fmt::format("{} {} {} {} {}", run->first ? 1 : 0, s.seed, s.next_id,
                  s.next_host_seed, s.seeded);
  const std::vector<std::string> all =
      gather_texts(link, mine, "the random state of elastic()");
  const auto old = std::find_if(all.begin(), all.end(), [](const auto& text) {
    return text.starts_with("1");
  });
  RandomState first;
  int began = 0;
  std::istringstream(old == all.end() ? all[0] : *old) >> began >> first.seed >>
      first.next_id >> first.next_host_seed >> first.seeded;
  run->first = first;
  set_random_state(first);
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

// How `fit` is called again after a failure.
struct MultiWorkerMirroredStrategy::Again {
  double timeout_seconds = 600;
  int most_restarts = 10;
  bool shrink = false;
  ElasticRun* run = nullptr;  // of elastic()
  const char* with = "when all are back";
};

void MultiWorkerMirroredStrategy::wait_and_restore(
    const std::function<void()>& fit, double timeout_seconds,
    int most_restarts) const {
  run_again(fit, {timeout_seconds, most_restarts});
}

void MultiWorkerMirroredStrategy::shrink_and_restore(
    const std::function<void()>& fit, double timeout_seconds,
    int most_restarts) const {
  run_again(fit, {timeout_seconds, most_restarts, true, nullptr,
                  "with those that are left"});
}

void MultiWorkerMirroredStrategy::elastic(const std::function<void()>& train,
                                          ElasticOptions o, Site site) const {
  const std::string call = "elastic" + where_text(nullptr, site);
  const auto m = member();
  // Alone there is nobody to wait for.
  const int places =
      m ? static_cast<int>(m->spec().ranks().size()) : std::max(o.min, 1);
  if (o.min < 1 || o.min > places || o.max < 0 ||
      (o.max > 0 && o.max < o.min) || o.steps_per_copy < 1 ||
      o.most_restarts < 0 || !(o.timeout_seconds > 0)) {
    throw errors::InvalidArgument(fmt::format(
        "{}: min is {}, max {}, steps_per_copy {}, most_restarts {}, "
        "timeout_seconds {}; expected a min from 1 to {} (the tasks of the "
        "cluster), a max of 0 or from min on, steps_per_copy from 1, "
        "most_restarts from 0, timeout_seconds above 0",
        call, o.min, o.max, o.steps_per_copy, o.most_restarts,
        o.timeout_seconds, places));
  }
  if (!m) return train();  // alone
  const auto run = std::make_shared<ElasticRun>();
  run->options = o;
  PreemptionWatch watch(call, nullptr, o.termination_config);
  run->told_to_end = [&] { return watch.must_save(); };
  m->set_elastic(o.min, o.max);
  core()->set_elastic_run(run);
  const auto end = [&](ElasticRun* r) { r->told_to_end = nullptr; };
  const std::unique_ptr<ElasticRun, decltype(end)> at_end(run.get(), end);
  try {
    run_again(train, {o.timeout_seconds, o.most_restarts, true, run.get(),
                      "with those that are there"});
  } catch (const Leaves&) {
    try {
      m->leave(kLeaveSeconds);
    } catch (const errors::Error&) {
      // The generation that this task ended.
    }
    watch.end("the others go on");
  }
}

void MultiWorkerMirroredStrategy::run_again(const std::function<void()>& fit,
                                            const Again& how) const {
  ElasticRun* const run = how.run;
  for (int restarts = 0;;) {
    std::vector<TaskId> before;
    if (const auto m = member()) before = m->ranks();
    try {
      if (run != nullptr) {
        run->next_fit = 0;
        run->over = false;
        begin_alike(*core()->link(), run);
      }
      fit();
      if (run == nullptr) return;
      // Until all are here, one that was lost may need the state of the others.
      run->over = true;
      return member()->barrier("the end of elastic()");
    } catch (const errors::Error& e) {
      const auto m = member();
      const auto failure = m ? m->failure() : std::nullopt;
      if (run != nullptr && run->leaving) throw Leaves();
      if (!failure || is_for_good(failure->code)) throw;
      const bool counts = run == nullptr || !is_change(failure->code);
      if (counts && restarts++ == how.most_restarts) throw;
      std::fprintf(stderr, "berth: %s: training goes on %s\n",
                   failure->message.c_str(), how.with);
    }
    if (run != nullptr && run->over) {
      // The others may have come to the end, and gone.
      try {
        core()->form_again(std::min(how.timeout_seconds, kLeaveSeconds), true);
      } catch (const errors::DeadlineExceeded&) {
        return;
      }
    } else {
      core()->form_again(how.timeout_seconds, how.shrink);
    }
    if (how.shrink && is_chief()) say_who_goes_on(*core(), before);
  }
}

void MultiWorkerMirroredStrategy::leave(double timeout_seconds) const {
  const auto m = member();
  if (!m) return;
  try {
    m->leave(timeout_seconds);
  } catch (const errors::Error&) {
    // What happens after the end of elastic() takes nothing away.
    const auto failure = m->failure();
    const auto& run = core()->elastic_run();
    if (!run || !run->over || !failure || !is_change(failure->code)) throw;
  }
}

std::shared_ptr<cluster::Member> MultiWorkerMirroredStrategy::member() const {
  return core()->link() ? core()->link()->shared_member() : nullptr;
}

}  // namespace berth::distribute
