#include "distribute/run/replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "berth/errors.h"
#include "function/control_flow.h"
#include "graph/body.h"
#include "graph/tracer.h"
#include "op/device_scope.h"
#include "ops/op_call.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

bool ReplicaGroup::is_empty(int replica) const {
  if (examples.empty() || examples[static_cast<size_t>(replica)] != 0) {
    return false;
  }
  return std::any_of(examples.begin(), examples.end(),
                     [](int64_t n) { return n != 0; });
}

Replica::Replica(ReplicaGroup& group, int id, const Tracer& tracer)
    : group_(group),
      id_(id),
      tracer_(tracer),
      outer_strategy_(std::exchange(t_state.strategy, nullptr)),
      outer_replica_(std::exchange(t_state.replica, this)) {}

Replica::~Replica() {
  t_state.strategy = outer_strategy_;
  t_state.replica = outer_replica_;
}

Tensors Replica::meet(const char* name, const Tensors& values,
                      std::vector<Attrs::Pair> attrs) {
  static const OpDef& op = op_named("_CrossReplica");
  if (current_tracer() != &tracer_) {
    throw errors::Unimplemented(fmt::format(
        "{}{} is inside of cond() or while_loop(); replicas meet only outside "
        "of these: call it before or after",
        name, where_text()));
  }
  const AttrsRef ref(std::move(attrs));
  return call_list(op, values, ref.get());
}

Tensor Replica::all_reduce(VariableAggregation how, const Tensor& value) {
  if (!value.defined()) {
    throw errors::InvalidArgument(fmt::format(
        "all_reduce of an empty tensor{}; expected a value", where_text()));
  }
  if (group_.size() == 1) return value;
  if (how == VariableAggregation::kOnlyFirstReplica) {
    return meet("a value of the first replica", {value},
                {{"what", std::string("first")}})[0];
  }
  const char* reduction = how == VariableAggregation::kMean ? "mean" : "sum";
  if (how == VariableAggregation::kNone ||
      !(dtype_bit(value.dtype()) & kEveryNumber)) {
    throw errors::InvalidArgument(fmt::format(
        "all_reduce of a {}{}; expected numbers, and a sum or a mean",
        name_of(value.dtype()), where_text()));
  }
  return meet("all_reduce", {value},
              {{"what", std::string("all_reduce")},
               {"reduction", std::string(reduction)}})[0];
}

Tensor Replica::to_write(const Tensor& handle, const Tensor& value,
                         const char* what) {
  const VariableState& v = variable_state(handle);
  if (group_.size() == 1 || Unaggregated::active() || !v.parts.empty()) {
    return value;
  }
  if (v.aggregation != VariableAggregation::kNone) {
    return all_reduce(v.aggregation, value);
  }
  throw errors::InvalidArgument(fmt::format(
      "{}() of \"{}\" in a replica{}: each of {} replicas has a value, and its "
      "aggregation is none; expected a variable made with {{.aggregation = "
      "VariableAggregation::kSum}}, kMean or kOnlyFirstReplica, or with "
      "{{.synchronization = VariableSynchronization::kOnRead}}",
      what, v.name, where_text(), group_.size()));
}

double Replica::share() const {
  const std::vector<int64_t>& n = group_.examples;
  if (n.empty()) return 1.0 / group_.size();
  if (std::any_of(n.begin(), n.end(), [](int64_t x) { return x < 0; })) {
    throw errors::InvalidArgument(fmt::format(
        "run(){}: how many examples each replica has is not known, so that "
        "means over all of them cannot be taken; expected arguments of known "
        "shape: no -1 in the first dimension of an input_signature",
        where_text()));
  }
  const int64_t all = std::accumulate(n.begin(), n.end(), int64_t{0});
  if (all == 0) return 1.0 / group_.size();
  return static_cast<double>(n[static_cast<size_t>(id_)]) /
         static_cast<double>(all);
}

void Replica::check_mean(double all) {
  const size_t number = means_++;
  if (number >= group_.means.size()) {
    group_.means.push_back(all);
    return;
  }
  double& first = group_.means[number];
  if (first == 0) first = all;
  if (all == 0 || first == all) return;
  throw errors::InvalidArgument(fmt::format(
      "a loss{} divides by {} values in replica {}, and by {} in another: its "
      "values are not cut as the first argument of run() with values of "
      "replicas is; expected the batch as the first of these, and a loss of "
      "all of it, or {{.reduction = \"sum\"}} and a division of your own",
      where_text(), all, id_, first));
}

Tensor Replica::all_gather(const Tensor& value, int64_t axis) {
  const int64_t rank = value.rank();
  if (rank == 0 || axis < -rank || axis >= rank) {
    throw errors::InvalidArgument(fmt::format(
        "all_gather of a {} along axis {}{}; expected an axis of the value",
        value.spec().str(), axis, where_text()));
  }
  if (group_.size() == 1) return value;
  return meet("all_gather", {value},
              {{"what", std::string("all_gather")},
               {"axis", axis < 0 ? axis + rank : axis}})[0];
}

namespace {

// The cross-replica context: outside replicas, within the strategy's scope.
class CrossReplica {
 public:
  explicit CrossReplica(StrategyCore& core)
      : replica_(std::exchange(t_state.replica, nullptr)),
        strategy_(std::exchange(t_state.strategy, &core)) {}
  ~CrossReplica() {
    t_state.replica = replica_;
    t_state.strategy = strategy_;
  }
  CrossReplica(const CrossReplica&) = delete;
  CrossReplica& operator=(const CrossReplica&) = delete;

 private:
  ReplicaScope* const replica_;
  StrategyScope* const strategy_;
};

}  // namespace

Tensors Replica::call_here(const MergeFn& fn, const Tensors& args) {
  std::vector<PerReplica> values;
  for (const Tensor& t : args) values.push_back(PerReplica({t}));
  const CrossReplica cross(*group_.core);
  return fn(Strategy(group_.core), values);
}

std::shared_ptr<Callable> Replica::traced_merge(const MergeFn& fn,
                                                const Tensors& args) {
  const BodyTrace inside;
  const NoDeviceScope no_scope;
  const CrossReplica cross(*group_.core);
  Tracer tracer("merge_call");
  std::vector<PerReplica> values;
  std::vector<Tensors> by_value(args.size());
  const std::vector<int64_t>& n = group_.examples;
  const bool equal =
      std::equal(n.begin() + (n.empty() ? 0 : 1), n.end(), n.begin());
  for (int r = 0; r < group_.num_here(); ++r) {
    for (size_t a = 0; a < args.size(); ++a) {
      TensorSpec spec = args[a].spec();
      for (int d = 0; d < spec.shape.rank(); ++d) {
        // A dimension that counts examples may differ between replicas.
        if (spec.shape[d] < 0 || (!equal && spec.shape[d] == n[0])) {
          spec.shape[d] = kUnknownDim;
        }
      }
      by_value[a].push_back(tracer.add_arg(spec));
    }
  }
  for (Tensors& v : by_value) values.emplace_back(std::move(v));
  tracer.start();
  const Tensors results = fn(Strategy(group_.core), values);
  return std::make_shared<Body>(tracer.finish(results));
}

Tensors Replica::merge_call(const MergeFn& fn, const Tensors& args) {
  if (group_.size() == 1) return call_here(fn, args);
  const size_t number = merges_++;
  if (number == group_.merges.size()) {
    if (id_ > group_.first_here()) {
      throw errors::InvalidArgument(fmt::format(
          "replica {} calls merge_call(){} more often than replica {}, {} "
          "times; expected the same calls in all replicas",
          id_, where_text(), group_.first_here(), number));
    }
    group_.merges.push_back(traced_merge(fn, args));
  }
  const std::shared_ptr<Callable>& f = group_.merges[number];
  const size_t wanted =
      f->input_specs().size() / static_cast<size_t>(group_.num_here());
  if (args.size() != wanted) {
    throw errors::InvalidArgument(fmt::format(
        "replica {} calls merge_call(){} with {} values, replica 0 with {}; "
        "expected equally many",
        id_, where_text(), args.size(), wanted));
  }
  return meet("merge_call", args, {{"what", std::string("call")}, {"f", f}});
}

}  // namespace berth::distribute
