// run(): traces a function in every replica and merges the traces.
//
// This happens inside a FunctionCore: the function's own, which keeps the
// result by signature; one for this call only; or, within a trace, that of the
// function being traced.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "berth/errors.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/multi_worker/step_consensus.h"
#include "distribute/run/merge_replicas.h"
#include "distribute/run/replica.h"
#include "exec/deadline.h"
#include "function/control_flow.h"
#include "function/task_changes.h"
#include "graph/tracer.h"
#include "op/device_scope.h"

namespace berth::distribute {

namespace internal {

size_t replicas_here(const StrategyCore& core) {
  return static_cast<size_t>(core.num_here());
}

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
  std::vector<int64_t> examples;  // of the replicas of all tasks
};

int64_t examples_in(const Tensors& args, const ReplicaCall& call) {
  const Tensor& t = args[static_cast<size_t>(call.split)];
  return t.rank() > 0 ? t.shape()[0] : 1;
}

// Examples of each replica, in all tasks; what each traces depends on it.
std::vector<int64_t> examples_of_all(StrategyCore& core,
                                     const ReplicaCall& call) {
  if (call.split < 0 || !core.link()) return {};
  std::vector<int64_t> all(static_cast<size_t>(core.num_replicas()));
  std::vector<int64_t> mine, bytes;
  for (const Tensors& args : call.args) mine.push_back(examples_in(args, call));
  const std::vector<int>& first = core.tasks().first;
  for (size_t r = 0; r + 1 < first.size(); ++r) {
    bytes.push_back(int64_t{first[r + 1] - first[r]} * 8);
  }
  core.link()->member().exchange().all_gather(mine.data(), bytes, all.data(),
                                              {.channel = "run",
                                               .what = "examples of run()",
                                               .step = core.link()->step()});
  return all;
}

ReplicaTrace trace_replica(ReplicaGroup& group, int r, const Tensors& args,
                           const ReplicaCall& call, const Tracer* outer,
                           std::any* structure) {
  const BodyTrace inside;
  Tracer tracer(fmt::format("replica_{}", r), outer);
  Tensors symbolic;
  for (const Tensor& t : args) symbolic.push_back(tracer.add_arg(t.spec()));
  tracer.start();
  const Replica replica(group, r, tracer);
  const Tensors results = call.fn(r - group.first_here(), symbolic, structure);
  ReplicaTrace trace;
  trace.graph = tracer.finish(results);
  trace.args = args;
  const Tensors& captured = tracer.outer_values();
  trace.args.insert(trace.args.end(), captured.begin(), captured.end());
  trace.empty = group.is_empty(r);
  return trace;
}

// Traces all replicas and replays them into the open trace. `leaves` are the
// arguments of replica 0, then of replica 1, ...
Tensors trace_all(void* context, const Tensors& leaves, std::any* structure) {
  const Context& context_of = *static_cast<const Context*>(context);
  const auto& [core, call, examples] = context_of;
  const auto replicas = static_cast<size_t>(core->num_here());
  const size_t num_args = leaves.size() / replicas;
  ReplicaGroup group;
  group.core = core;
  group.examples = context_of.examples;
  std::vector<Tensors> args;
  for (size_t r = 0; r < replicas; ++r) {
    const auto first =
        leaves.begin() + static_cast<std::ptrdiff_t>(r * num_args);
    args.emplace_back(first, first + static_cast<std::ptrdiff_t>(num_args));
    if (call.split >= 0 && !core->link()) {
      group.examples.push_back(examples_in(args[r], call));
    }
  }
  const NoDeviceScope no_scope;
  const Tracer* outer = current_tracer();
  std::vector<ReplicaTrace> traces;
  for (size_t r = 0; r < replicas; ++r) {
    std::any of_replica;
    traces.push_back(
        trace_replica(group, core->first_here() + static_cast<int>(r), args[r],
                      call, outer, r == 0 ? structure : &of_replica));
    const size_t made = traces[r].graph.outputs.size();
    const size_t wanted = traces[0].graph.outputs.size();
    if (made == wanted) continue;
    throw errors::InvalidArgument(fmt::format(
        "run(): the function returns {} tensors in replica {} and {} in "
        "replica 0{}; expected equally many",
        made, r, wanted, where_text()));
  }
  if (core->link()) agree_on_meetings(*core->link(), traces[0].graph);
  Tensors all;
  for (Tensors& results :
       merge_replicas(std::move(traces), *core, group.examples)) {
    std::move(results.begin(), results.end(), std::back_inserter(all));
  }
  return all;
}

void check_context(const StrategyCore& core) {
  if (core.undecided() != nullptr || core.choice() != nullptr) {
    throw errors::Unimplemented(fmt::format(
        "{}: run(){}; expected fit(), evaluate() and predict(), whose steps it "
        "divides",
        core.name(), where_text()));
  }
  if (core.layouts() != nullptr) {
    throw errors::Unimplemented(fmt::format(
        "{}: run(){}; expected fit(), evaluate() and predict(), which split "
        "layers",
        core.name(), where_text()));
  }
  if (core.options().sharding != Sharding::kNone) {
    throw errors::Unimplemented(fmt::format(
        "{}: run(){} of a strategy with sharding; expected fit(), evaluate() "
        "and predict(), which divide state, or Sharding::kNone",
        core.name(), where_text()));
  }
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
  if (core->link()) MeetsTasks::note();
  const auto replicas = static_cast<size_t>(core->num_here());
  Tensors leaves, results;
  for (const Tensors& args : call.args) {
    leaves.insert(leaves.end(), args.begin(), args.end());
  }
  Context context{core, call, examples_of_all(*core, call)};
  const FunctionCore::Body body{&context, &trace_all,
                                static_cast<int>(replicas)};
  // Identifies the trace; shares do not matter.
  const std::string fixed =
      fmt::format("run {} {} {} {} {}", core->serial(), call.split, call.fixed,
                  fmt::join(context.examples, ","),
                  core->link() ? core->link()->member().generation() : 0);
  const NoDeviceScope no_scope;
  const DeadlineScope in_time(core->options().communication.timeout_seconds);
  const auto call_it = [&] {
    if (call.traces != nullptr) {
      call.traces->call(leaves, fixed, body, &results, structure, t_state.site);
    } else {
      FunctionCore once({.name = "run"});
      once.call(leaves, fixed, body, &results, structure, t_state.site);
      if (!tracing()) lint_traces(call);
    }
  };
  try {
    call_it();
  } catch (const errors::Error& e) {
    core->failed(e);
    throw;
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
