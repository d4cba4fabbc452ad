// run(): traces a function in every replica, and makes one of the traces.
//
// That happens inside of a FunctionCore: the function's own one, which keeps
// the result by signature, one for this call alone, or, in a trace, that of
// whoever is being traced.

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "berth/errors.h"
#include "distribute/merge_replicas.h"
#include "distribute/replica.h"
#include "exec/deadline.h"
#include "function/control_flow.h"
#include "graph/tracer.h"
#include "op/device_scope.h"

namespace berth::distribute {

namespace internal {

const Tensor& value_of(const PerReplica& value, size_t replica,
                       size_t replicas) {
  if (value.size() == replicas) return value[replica];
  throw errors::InvalidArgument(fmt::format(
      "run(): an argument has values of {} replicas, the strategy has {}{}; "
      "expected one value per replica: from a distributed dataset, or what "
      "run() of this strategy returned",
      value.size(), replicas, where_text()));
}

void check_results(size_t found, size_t made) {
  if (found == made) return;
  throw errors::InvalidArgument(fmt::format(
      "run(): the function returns {} tensors in a structure in which {} can "
      "be replaced{}; expected tensors in vectors, arrays, pairs, tuples, "
      "optionals or maps",
      made, found, where_text()));
}

int split_argument(const Tensors& args, const Tensors& of_replicas) {
  for (const Tensor& t : of_replicas) {
    if (!t.defined() || t.rank() == 0) continue;
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].impl() == t.impl()) return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace internal

namespace {

constexpr int kManyTraces = 5;

struct Context {
  const std::shared_ptr<StrategyCore>& core;
  const ReplicaCall& call;
};

ReplicaTrace trace_replica(ReplicaGroup& group, int r, const Tensors& args,
                           const ReplicaCall& call, const Tracer* outer,
                           std::any* structure) {
  const BodyTrace inside;
  Tracer tracer(fmt::format("replica_{}", r), outer);
  Tensors symbolic;
  for (const Tensor& t : args) symbolic.push_back(tracer.add_arg(t.spec()));
  tracer.start();
  const Replica replica(group, r, tracer);
  const Tensors results = call.fn(r, symbolic, structure);
  ReplicaTrace trace;
  trace.graph = tracer.finish(results);
  trace.args = args;
  const Tensors& captured = tracer.outer_values();
  trace.args.insert(trace.args.end(), captured.begin(), captured.end());
  trace.empty = group.is_empty(r);
  return trace;
}

// Traces all replicas and replays them into the trace that is open. `leaves`
// are the arguments of replica 0, then of replica 1, ...
Tensors trace_all(void* context, const Tensors& leaves, std::any* structure) {
  const auto& [core, call] = *static_cast<const Context*>(context);
  const auto replicas = static_cast<size_t>(core->num_replicas());
  const size_t num_args = leaves.size() / replicas;
  ReplicaGroup group;
  group.core = core;
  std::vector<Tensors> args;
  for (size_t r = 0; r < replicas; ++r) {
    const auto first =
        leaves.begin() + static_cast<std::ptrdiff_t>(r * num_args);
    args.emplace_back(first, first + static_cast<std::ptrdiff_t>(num_args));
    if (call.split >= 0) {
      const Tensor& t = args[r][static_cast<size_t>(call.split)];
      group.examples.push_back(t.rank() > 0 ? t.shape()[0] : 1);
    }
  }
  const NoDeviceScope no_scope;
  const Tracer* outer = current_tracer();
  std::vector<ReplicaTrace> traces;
  for (size_t r = 0; r < replicas; ++r) {
    std::any of_replica;
    traces.push_back(trace_replica(group, static_cast<int>(r), args[r], call,
                                   outer, r == 0 ? structure : &of_replica));
    const size_t made = traces[r].graph.outputs.size();
    const size_t wanted = traces[0].graph.outputs.size();
    if (made == wanted) continue;
    throw errors::InvalidArgument(fmt::format(
        "run(): the function returns {} tensors in replica {} and {} in "
        "replica 0{}; expected equally many",
        made, r, wanted, where_text()));
  }
  Tensors all;
  for (Tensors& results :
       merge_replicas(std::move(traces), core->split_plan())) {
    std::move(results.begin(), results.end(), std::back_inserter(all));
  }
  return all;
}

void check_context(const StrategyCore& core) {
  if (t_state.replica != nullptr) {
    throw errors::FailedPrecondition(fmt::format(
        "{}: run() is called inside run(){}; expected it outside of replicas",
        core.name(), where_text()));
  }
  if (t_state.strategy != nullptr && t_state.strategy != &core) {
    throw errors::FailedPrecondition(fmt::format(
        "{}: run() is called in the scope of another strategy, a {}{}; "
        "expected that of its own, or none",
        core.name(), t_state.strategy->name(), where_text()));
  }
}

void lint_traces(const ReplicaCall& call) {
  if (call.num_calls == nullptr || ++*call.num_calls != kManyTraces) return;
  report({"retrace", debugging::Severity::kLint,
          fmt::format("run() has traced a function {} times, once per "
                      "call{}; make it a berth::function, which is traced "
                      "once, or call run() inside of one",
                      kManyTraces, where_text()),
          t_state.site});
}

}  // namespace

std::vector<Tensors> run_replicas(const std::shared_ptr<StrategyCore>& core,
                                  const ReplicaCall& call,
                                  std::shared_ptr<const std::any>* structure) {
  check_context(*core);
  const auto replicas = static_cast<size_t>(core->num_replicas());
  Tensors leaves, results;
  for (const Tensors& args : call.args) {
    leaves.insert(leaves.end(), args.begin(), args.end());
  }
  Context context{core, call};
  const FunctionCore::Body body{&context, &trace_all,
                                static_cast<int>(replicas)};
  // Whose trace it is; shares do not matter.
  const std::string fixed =
      fmt::format("run {} {} {}", core->serial(), call.split, call.fixed);
  const NoDeviceScope no_scope;
  const DeadlineScope in_time(core->options().communication.timeout_seconds);
  if (call.traces != nullptr) {
    call.traces->call(leaves, fixed, body, &results, structure, t_state.site);
  } else {
    FunctionCore once({.name = "run"});
    once.call(leaves, fixed, body, &results, structure, t_state.site);
    if (!tracing()) lint_traces(call);
  }
  const size_t count = results.size() / replicas;
  std::vector<Tensors> by_replica;
  for (size_t r = 0; r < replicas; ++r) {
    const auto first = results.begin() + static_cast<std::ptrdiff_t>(r * count);
    by_replica.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
  }
  return by_replica;
}

}  // namespace berth::distribute
