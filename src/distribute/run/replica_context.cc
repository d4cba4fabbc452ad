// Queries that a function in run() may make.

#include <fmt/format.h>

#include "berth/errors.h"
#include "distribute/run/replica.h"
#include "op/device_scope.h"

namespace berth::distribute {

namespace {

// The replica that is being traced. A context may outlive it.
Replica& here(const char* what) {
  if (t_state.replica != nullptr)
    return static_cast<Replica&>(*t_state.replica);
  throw errors::FailedPrecondition(fmt::format(
      "{} is called outside of a replica{}; expected it in the function of "
      "strategy.run(), and not in that of merge_call()",
      what, where_text()));
}

}  // namespace

int ReplicaContext::replica_id_in_sync_group() const {
  return here("replica_id_in_sync_group()").id();
}

int ReplicaContext::num_replicas_in_sync() const {
  return here("num_replicas_in_sync()").strategy().num_replicas();
}

Strategy ReplicaContext::strategy() const {
  return Strategy(here("strategy()").core());
}

Tensor ReplicaContext::all_reduce(ReduceOp op, const Tensor& value,
                                  Site site) const {
  set_site(site);
  return here("all_reduce()")
      .all_reduce(op == ReduceOp::kSum ? VariableAggregation::kSum
                                       : VariableAggregation::kMean,
                  value);
}

Tensors ReplicaContext::all_reduce(ReduceOp op, const Tensors& values,
                                   Site site) const {
  Tensors results;
  for (const Tensor& t : values) results.push_back(all_reduce(op, t, site));
  return results;
}

Tensor ReplicaContext::all_gather(const Tensor& value, int64_t axis,
                                  Site site) const {
  set_site(site);
  return here("all_gather()").all_gather(value, axis);
}

Tensors ReplicaContext::merge_call(const MergeFn& fn, const Tensors& args,
                                   Site site) const {
  set_site(site);
  return here("merge_call()").merge_call(fn, args);
}

}  // namespace berth::distribute
