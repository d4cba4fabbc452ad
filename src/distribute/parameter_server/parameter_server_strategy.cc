// ParameterServerStrategy, ClusterCoordinator and serve(): the handles.

#include <fmt/format.h>

#include <cstdlib>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/parameter_server.h"
#include "device/device_manager.h"
#include "distribute/parameter_server/coordinator.h"
#include "distribute/parameter_server/server.h"
#include "distribute/parameter_server/worker.h"
#include "distribute/strategy/strategy_core.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

std::shared_ptr<StrategyCore> server_core(
    const std::shared_ptr<ParameterServers>& servers, Site site) {
  StrategyOptions options;
  options.devices = {DeviceManager::get().host().str()};
  auto core = std::make_shared<StrategyCore>(StrategyKind::kParameterServer,
                                             std::move(options), site);
  core->set_servers(servers);
  return core;
}

void check_server_cluster(const ClusterResolver& r, Site site) {
  const ClusterSpec& spec = r.spec;
  const char* missing = spec.num_tasks("chief") == 0    ? "chief"
                        : spec.num_tasks("worker") == 0 ? "worker"
                        : spec.num_tasks("ps") == 0     ? "ps"
                                                        : nullptr;
  if (missing) {
    throw errors::InvalidArgument(fmt::format(
        "ParameterServerStrategy: the cluster {} has no {}{}; expected a "
        "chief, which coordinates, workers and parameter servers, as \"berth "
        "launch --workers 2 --ps 1\" starts them",
        r.source.empty() && spec.empty() ? "of this process, which is alone,"
                                         : spec.json(),
        missing, where_text(nullptr, site)));
  }
  if (r.task.job != "evaluator") return;
  throw errors::InvalidArgument(fmt::format(
      "ParameterServerStrategy: this task is {}{}, which is not of its "
      "cluster; expected a program that evaluates checkpoints there",
      r.task.str(), where_text(nullptr, site)));
}

std::shared_ptr<cluster::Member> join_cluster(
    const ClusterResolver& resolver, const ParameterServerOptions& options,
    Site site) {
  check_server_cluster(resolver, site);
  cluster::JoinOptions join;
  join.join_timeout_seconds = options.join_timeout_seconds;
  join.elastic_jobs = {"worker"};
  return cluster::Member::join(resolver, join, site);
}

// Returns in the chief; all other tasks end here.
std::shared_ptr<cluster::Member> chief_of(const ClusterResolver& resolver,
                                          const ParameterServerOptions& options,
                                          Site site) {
  check_server_cluster(resolver, site);
  if (resolver.task.job == "chief") {
    return join_cluster(resolver, options, site);
  }
  serve(resolver, options, site);
  std::exit(0);
}

}  // namespace

ParameterServerStrategy::ParameterServerStrategy(
    const ClusterResolver& resolver, ParameterServerOptions options, Site site)
    : ParameterServerStrategy(chief_of(resolver, options, site), options,
                              site) {}

ParameterServerStrategy::ParameterServerStrategy(
    std::shared_ptr<cluster::Member> chief, ParameterServerOptions options,
    Site site)
    : Strategy(nullptr),
      servers_(std::make_shared<ParameterServers>(std::move(chief),
                                                  std::move(options), site)) {
  static_cast<Strategy&>(*this) = Strategy(server_core(servers_, site));
}

int ParameterServerStrategy::num_workers() const {
  return servers_->num_workers();
}
int ParameterServerStrategy::num_parameter_servers() const {
  return servers_->num_servers();
}
std::vector<std::string> ParameterServerStrategy::servers_of(
    const Variable& v) const {
  return servers_->servers_of(v.handle());
}

void serve(const ClusterResolver& resolver, ParameterServerOptions options,
           Site site) {
  serve(join_cluster(resolver, options, site));
}

void serve(const std::shared_ptr<cluster::Member>& member) {
  const bool is_server = member->task().job == "ps";
  if (!is_server && member->task().job != "worker") {
    throw errors::InvalidArgument(fmt::format(
        "distribute::serve() in {}; expected it in workers and parameter "
        "servers, and a ParameterServerStrategy in the chief",
        member->task().str()));
  }
  auto server = std::make_shared<PsServer>();
  auto worker = std::make_shared<PsWorker>(member);
  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false, failed = false;
  };
  auto end = std::make_shared<End>();
  member->serve(is_server ? kServerService : kWorkerService,
                answering([=](const cluster::TaskId&, Request& request,
                              Tensors& tensors) -> cluster::Message {
                  if (request.word == "end") {
                    std::lock_guard lock(end->mutex);
                    end->over = true;
                    end->changed.notify_all();
                    return {"ok", {}};
                  }
                  return is_server ? server->handle(request, tensors)
                                   : worker->handle(request, tensors);
                }));
  for (;;) {
    member->on_failure([end](const cluster::ClusterFailure&) {
      std::lock_guard lock(end->mutex);
      end->failed = true;
      end->changed.notify_all();
    });
    {
      std::unique_lock lock(end->mutex);
      wait_unless_interrupted(end->changed, lock,
                              [&] { return end->over || end->failed; });
      if (end->over) break;
      end->failed = false;
    }
    const auto failure = member->failure();
    if (failure && failure->task == member->spec().coordinator()) {
      throw errors::Unavailable(failure->message);
    }
    // This task keeps its state; lost tasks come back.
    member->form_again(ParameterServerOptions().worker_timeout_seconds);
  }
  member->leave();
}

bool RemoteResult::done() const { return closure_ && closure_->done(); }
const Tensors& RemoteResult::wait(Site site) const {
  if (closure_) return closure_->wait();
  throw errors::FailedPrecondition(fmt::format(
      "fetch() of an empty RemoteValue{}; expected one that schedule() gave",
      where_text(nullptr, site)));
}
const std::any& RemoteResult::structure() const { return *closure_->structure; }

PerWorkerIterator PerWorkerDataset::make_iterator() const {
  const auto owner = state() ? state()->owner.lock() : nullptr;
  if (owner) return owner->make_iterator(state());
  throw errors::FailedPrecondition(
      "make_iterator() of a dataset whose ParameterServerStrategy has ended");
}

int num_components(const PerWorker& source) {
  if (!source.state()) {
    throw errors::InvalidArgument(
        "an empty PerWorker is an argument of schedule(); expected what "
        "create_per_worker_dataset().make_iterator() or "
        "create_per_worker_resource() gave");
  }
  if (source.state()->kind == PerWorker::State::Kind::kDataset) {
    throw errors::InvalidArgument(
        "a dataset is an argument of schedule(); expected its "
        "make_iterator()");
  }
  return static_cast<int>(source.state()->specs.size());
}

ClusterCoordinator::ClusterCoordinator(const ParameterServerStrategy& strategy)
    : servers_(strategy.servers()) {}

std::shared_ptr<Closure> ClusterCoordinator::schedule_call(ClosureCall call,
                                                           Site site) const {
  return servers_->schedule(call, site);
}
void ClusterCoordinator::join(Site site) const { servers_->join(site); }
bool ClusterCoordinator::done(Site site) const { return servers_->done(site); }
CoordinatorStatistics ClusterCoordinator::statistics() const {
  return servers_->statistics();
}

PerWorkerDataset ClusterCoordinator::create_per_worker_dataset(
    const std::string& name, Site site) const {
  return servers_->make_dataset(name, site);
}
PerWorkerDataset ClusterCoordinator::create_per_worker_dataset(
    const DatasetFn& fn, Site) const {
  std::vector<data::Dataset> list;
  for (int w = 0; w < servers_->num_workers(); ++w) {
    InputContext context;
    context.num_input_pipelines = servers_->num_workers();
    context.input_pipeline_id = w;
    list.push_back(fn(context));
  }
  return servers_->make_dataset(std::move(list));
}
PerWorkerDataset ClusterCoordinator::create_per_worker_dataset(
    const data::Dataset& dataset, Site) const {
  return servers_->make_dataset(std::vector<data::Dataset>(
      static_cast<size_t>(servers_->num_workers()), dataset));
}
PerWorkerResource ClusterCoordinator::create_per_worker_resource(
    const std::function<Tensors()>& fn, Site site) const {
  return servers_->make_resource(fn, site);
}

}  // namespace berth::distribute
