// parameter_server: variables live on servers, workers compute and push
// updates (tf.distribute.ParameterServerStrategy, version 2).
//
//   distribute::ParameterServerStrategy strategy;  // the others stay here
//   distribute::ClusterCoordinator coordinator(strategy);
//   { auto scope = strategy.scope(); make variables, a model, an optimizer }
//   for (...) coordinator.schedule(step, batch);
//   coordinator.join();
//
// All tasks run the same program. The chief continues after the constructor and
// coordinates; worker and ps tasks serve in it until the chief is done and
// then end the process with status 0. A scheduled function is traced once,
// split into server and worker parts, and runs on whichever worker is free.
// Variables on the chief are copies: join() updates them, and a write to one
// reaches its servers before the next scheduled function. Handles; thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_PARAMETER_SERVER_H_
#define BERTH_PARAMETER_SERVER_H_

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/cluster.h"
#include "berth/data.h"
#include "berth/distribute.h"
#include "berth/function.h"
#include "berth/site.h"
#include "berth/tensor.h"
#include "berth/tree.h"

namespace berth::cluster {
class Member;  // cluster/member.h
}

namespace berth::distribute {

// Decides how many shards a variable is split into along an axis; the first
// `length % shards` of them have one row more
// (tf.distribute.experimental.partitioners). Empty: variables stay whole.
class Partitioner {
 public:
  using Fn = std::function<int64_t(const Shape&, DType, int axis)>;
  Partitioner() = default;
  explicit Partitioner(Fn num_shards) : fn_(std::move(num_shards)) {}
  bool defined() const { return fn_ != nullptr; }
  // Shards per axis: 1 except for `axis`. Throws errors::InvalidArgument for an
  // axis that the shape does not have.
  std::vector<int64_t> operator()(const Shape& shape, DType dtype, int axis = 0,
                                  Site site = Site::here()) const;

 private:
  Fn fn_;
};

// Each throws errors::InvalidArgument for numbers below 1.
namespace partitioners {
// This many, at most one per row.
Partitioner FixedShardsPartitioner(int64_t num_shards,
                                   Site site = Site::here());
// As many as give each about min_shard_bytes, at most max_shards.
struct MinSizeOptions {
  int64_t min_shard_bytes = 256 << 10;
  int64_t max_shards = 1;
  int64_t bytes_per_string = 16;
};
Partitioner MinSizePartitioner(MinSizeOptions options = {},
                               Site site = Site::here());
// As few as keep each under max_shard_bytes (a row at least).
struct MaxSizeOptions {
  int64_t max_shard_bytes = 0;
  std::optional<int64_t> max_shards = {};
  int64_t bytes_per_string = 16;
};
Partitioner MaxSizePartitioner(MaxSizeOptions options,
                               Site site = Site::here());
}  // namespace partitioners

struct ParameterServerOptions {
  Partitioner variable_partitioner = {};
  // A function sees the updates of all functions scheduled before it, except
  // for at most this many: 0 runs one after another. Unset: no bound.
  std::optional<int64_t> max_staleness = {};
  // How long to wait for a lost worker if no other is left, and for a server
  // before its state is restored.
  double worker_timeout_seconds = 3600;
  double join_timeout_seconds = 3600;
  // Limit for the result of one function on a worker.
  double closure_timeout_seconds = 600;
  // schedule() waits while this many are not done.
  int64_t queue_length = 262144;
};

class ParameterServers;  // distribute/parameter_server/coordinator.h

struct ParameterServerStrategy : Strategy {
  // Throws errors::InvalidArgument unless the cluster has a chief, a worker and
  // a ps, and the errors of joining a cluster. Returns on the chief only.
  explicit ParameterServerStrategy(
      const ClusterResolver& resolver = cluster_resolver::from_environment(),
      ParameterServerOptions options = {}, Site site = Site::here());
  // On the chief of a cluster that has been joined already; the others serve().
  explicit ParameterServerStrategy(std::shared_ptr<cluster::Member> chief,
                                   ParameterServerOptions options = {},
                                   Site site = Site::here());

  int num_workers() const;
  int num_parameter_servers() const;
  // The tasks of a variable's shards, in order of rows: "/job:ps/task:1". One
  // name for a whole variable; "" before a function that uses it was scheduled.
  std::vector<std::string> servers_of(const Variable& v) const;

  const std::shared_ptr<ParameterServers>& servers() const { return servers_; }

 private:
  std::shared_ptr<ParameterServers> servers_;
};

// Serves as worker or ps until the chief is done. Throws the errors of joining,
// and errors::Unavailable if the chief is lost.
void serve(
    const ClusterResolver& resolver = cluster_resolver::from_environment(),
    ParameterServerOptions options = {}, Site site = Site::here());
void serve(const std::shared_ptr<cluster::Member>& member);

// Functions that make datasets on workers. They cannot be sent: every task
// registers the same ones, by name, before it makes the strategy. A later one
// with the same name replaces it.
using DatasetFn = std::function<data::Dataset(const InputContext&)>;
void register_dataset(const std::string& name, DatasetFn fn);

// A scheduled function that may not be done yet; the type-free part.
class Closure;
class RemoteResult {
 public:
  explicit RemoteResult(std::shared_ptr<Closure> closure = nullptr)
      : closure_(std::move(closure)) {}
  bool done() const;

 protected:
  const Tensors& wait(Site site) const;
  const std::any& structure() const;
  std::shared_ptr<Closure> closure_;
};

// The result of a scheduled function
// (tf.distribute.experimental.coordinator.RemoteValue).
template <class R>
class RemoteValue : public RemoteResult {
 public:
  using RemoteResult::RemoteResult;
  // Waits for the result. Throws the error of the function on its worker, and
  // errors::Cancelled if it was cancelled because another one failed.
  R fetch(Site site = Site::here()) const {
    const Tensors& leaves = wait(site);
    if constexpr (!std::is_void_v<R>) {
      R result = std::any_cast<const R&>(structure());
      RebuildTree put(leaves);
      visit_tree(result, put);
      return result;
    }
  }
  R get(Site site = Site::here()) const { return fetch(site); }
};

// One dataset, or iterator, or list of tensors per worker
// (tf.distribute.experimental.coordinator.PerWorkerValues).
class PerWorker {
 public:
  struct State;
  explicit PerWorker(std::shared_ptr<State> state = nullptr)
      : state_(std::move(state)) {}
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};
class PerWorkerIterator : public PerWorker {
 public:
  using PerWorker::PerWorker;
};
class PerWorkerDataset : public PerWorker {
 public:
  using PerWorker::PerWorker;
  // Each worker starts at the first element, even one that was lost and is
  // back.
  PerWorkerIterator make_iterator() const;
};
class PerWorkerResource : public PerWorker {
 public:
  using PerWorker::PerWorker;
};

// The type-free part of schedule().
struct ClosureCall {
  const void* identity = nullptr;    // same function, same traces; null: none
  std::shared_ptr<const void> keep;  // kept alive as long as its traces
  Tensors leaves;                    // undefined where `from` names a source
  struct From {
    std::shared_ptr<PerWorker::State> source;  // null: a tensor
    int component = 0;  // counted on over further elements of an iterator
  };
  std::vector<From> from;  // by leaf
  std::string fixed;       // signature text of the other arguments
  std::function<Tensors(const Tensors&, std::any*)> trace;
};
// Number of components that one worker gives for an argument.
int num_components(const PerWorker& source);

struct CoordinatorStatistics {
  int64_t scheduled = 0, done = 0, failed = 0, cancelled = 0;
  int64_t run_again = 0;      // because a worker was lost
  int64_t max_staleness = 0;  // updates that one of them did not see
};

// Schedules functions on workers
// (tf.distribute.experimental.coordinator.ClusterCoordinator).
class ClusterCoordinator {
 public:
  explicit ClusterCoordinator(const ParameterServerStrategy& strategy);

  // Runs fn(args...) on some worker, at least once. `fn` is a Function, or
  // another callable, which is traced at each call unless it captures nothing.
  // Arguments are tensors and structures of them; results of
  // create_per_worker_*() and make_iterator() may replace a Tensors or a
  // Tensor: then the worker's own value is used. Returns at once, unless the
  // queue is full. Throws the first error of earlier functions, once, and the
  // errors of tracing; errors::Unimplemented for a graph that cannot be split,
  // naming the op.
  template <class F, class... Args>
  auto schedule(const F& fn, const Args&... args) const;

  // Waits until all scheduled functions are done, then updates the chief's
  // copies of variables. Throws the first error, once: functions that were not
  // done then are cancelled. errors::Unavailable names a lost server and its
  // variables; restore a checkpoint and continue.
  void join(Site site = Site::here()) const;
  // Returns true if all is done. Throws as join() does.
  bool done(Site site = Site::here()) const;

  template <class R>
  R fetch(const RemoteValue<R>& value, Site site = Site::here()) const {
    return value.fetch(site);
  }
  template <class R>
  std::vector<R> fetch(const std::vector<RemoteValue<R>>& values,
                       Site site = Site::here()) const {
    std::vector<R> results;
    for (const auto& v : values) results.push_back(v.fetch(site));
    return results;
  }

  // A dataset of which each worker has its own. By name: made by the registered
  // function, on the worker. Others: made on the chief; elements are sent with
  // the function that takes them; `fn` sees one input pipeline per worker.
  PerWorkerDataset create_per_worker_dataset(const std::string& name,
                                             Site site = Site::here()) const;
  PerWorkerDataset create_per_worker_dataset(const char* name,
                                             Site site = Site::here()) const {
    return create_per_worker_dataset(std::string(name), site);
  }
  PerWorkerDataset create_per_worker_dataset(const DatasetFn& fn,
                                             Site site = Site::here()) const;
  PerWorkerDataset create_per_worker_dataset(const data::Dataset& dataset,
                                             Site site = Site::here()) const;
  // Tensors that each worker computes once, and again after it was lost.
  PerWorkerResource create_per_worker_resource(
      const std::function<Tensors()>& fn, Site site = Site::here()) const;

  CoordinatorStatistics statistics() const;

 private:
  std::shared_ptr<Closure> schedule_call(ClosureCall call, Site site) const;
  std::shared_ptr<ParameterServers> servers_;
};

namespace internal {

template <class F>
struct Scheduled {
  using Signature =
      typename berth::internal::SignatureOf<std::remove_cvref_t<F>>::type;
};
template <class S>
struct Scheduled<Function<S>> {
  using Signature = S;
};

// Callables without captures are equal if their types are.
template <class F>
inline constexpr char kTypeMark = 0;

template <class F>
const void* identity_of(const F& fn) {
  if constexpr (requires { fn.core(); }) {
    return &fn.core();
  } else if constexpr (std::is_empty_v<F>) {
    return &kTypeMark<F>;
  } else {
    return nullptr;
  }
}

// Passes one argument as a parameter, and adds its leaves to the call.
template <class P, class A>
void add_argument(P& parameter, const A& arg, ClosureCall& call) {
  if constexpr (std::is_base_of_v<PerWorker, A>) {
    static_assert(std::is_same_v<P, Tensors> || std::is_same_v<P, Tensor>,
                  "what each worker has is taken as Tensors, or one Tensor");
    const int n = num_components(arg);
    if constexpr (std::is_same_v<P, Tensors>) parameter.resize(n);
    for (int i = 0; i < n; ++i) {
      call.leaves.emplace_back();
      call.from.push_back({arg.state(), i});
    }
    call.fixed += "[" + std::to_string(n) + "]";
  } else {
    static_assert(!std::is_base_of_v<RemoteResult, A>,
                  "results of other functions cannot be arguments: fetch() "
                  "them, or keep them in a variable");
    parameter = arg;
    FlattenTree flat;
    visit_tree(parameter, flat);
    for (Tensor& t : flat.leaves) call.leaves.push_back(std::move(t));
    call.from.resize(call.leaves.size());
    call.fixed += flat.text;
  }
}

template <class S>
struct Scheduler;
template <class R, class... P>
struct Scheduler<R(P...)> {
  using Result = std::conditional_t<std::is_void_v<R>, void, std::decay_t<R>>;

  template <class F, class... Args>
  static ClosureCall call(const F& fn, const Args&... args) {
    static_assert(sizeof...(P) == sizeof...(Args),
                  "schedule() takes one argument per parameter");
    using Values = std::tuple<std::decay_t<P>...>;
    ClosureCall call;
    call.identity = identity_of(fn);
    auto values = std::make_shared<Values>();
    std::apply([&](auto&... v) { (add_argument(v, args, call), ...); },
               *values);
    auto kept = std::make_shared<const F>(fn);
    call.keep = kept;
    call.trace = [kept, values](const Tensors& leaves, std::any* structure) {
      Values symbolic = *values;
      RebuildTree put(leaves);
      visit_tree(symbolic, put);
      FlattenTree flat;
      const auto run = [&](const auto&... v) { return (*kept)(v...); };
      if constexpr (std::is_void_v<R>) {
        std::apply(run, symbolic);
        *structure = true;
      } else {
        Result r = std::apply(run, symbolic);
        visit_tree(r, flat);
        *structure = std::move(r);
      }
      return flat.leaves;
    };
    return call;
  }
};

}  // namespace internal

template <class F, class... Args>
auto ClusterCoordinator::schedule(const F& fn, const Args&... args) const {
  using Signature = typename internal::Scheduled<F>::Signature;
  using Call = internal::Scheduler<Signature>;
  return RemoteValue<typename Call::Result>(
      schedule_call(Call::call(fn, args...), {}));
}

}  // namespace berth::distribute

#endif  // BERTH_PARAMETER_SERVER_H_
