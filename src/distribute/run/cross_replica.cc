// Values of replicas outside of run(): reduce, gather, update.

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "device/device_manager.h"
#include "distribute/run/cross_task_sync.h"
#include "distribute/strategy/strategy_core.h"
#include "function/control_flow.h"
#include "op/device_scope.h"
#include "ops/op_call.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

// Where results of all replicas go: to the first one, or to its stand-in.
Device& meeting_place(const StrategyCore& core) {
  return *core.replicas()[0][0];
}

Tensor fetched(const Tensor& t) {
  static const OpDef& identity = op_named("Identity");
  return call1(identity, t);
}

// Inside run() a replica sees its own values only.
void check_outside(const char* what, const char* instead) {
  if (t_state.replica == nullptr) return;
  throw errors::FailedPrecondition(fmt::format(
      "{}() of the strategy inside run(){}; expected it outside of replicas: "
      "call get_replica_context()->{}() here",
      what, where_text(), instead));
}

void check_count(const PerReplica& value, const StrategyCore& core,
                 const char* what) {
  if (static_cast<int>(value.size()) == core.num_here()) return;
  throw errors::InvalidArgument(fmt::format(
      "{}: values of {} replicas, the {} has {}{}{}; expected one per replica",
      what, value.size(), core.name(), core.num_here(),
      core.link() ? " in this task" : "", where_text()));
}

// The shapes must be equal and are not broadcast: the last, smaller batch of a
// dataset must not be added to every row.
Tensor summed(const Tensors& values) {
  static const OpDef& add = op_named("AddV2");
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i].shape().compatible_with(values[0].shape())) continue;
    throw errors::InvalidArgument(fmt::format(
        "reduce: the value of replica {} is {}, that of replica 0 {}{}; "
        "expected equal shapes: say which axis to reduce over, or gather()",
        i, values[i].spec().str(), values[0].spec().str(), where_text()));
  }
  const auto known = [](const Tensor& t) {
    return t.shape().is_fully_defined();
  };
  if (!std::all_of(values.begin(), values.end(), known)) {
    static const OpDef& add_n = op_named("AddN");  // checks shapes and dtypes
    Tensors parts;
    for (const Tensor& t : values) parts.push_back(fetched(t));
    return call_list(add_n, parts)[0];
  }
  Tensor sum = fetched(values[0]);
  for (size_t i = 1; i < values.size(); ++i) {
    sum = call1(add, sum, fetched(values[i]));
  }
  return sum;
}

// The number of elements along the axis, as a scalar with the dtype of `like`.
Tensor length_of(const Tensor& t, int64_t axis, const Tensor& like, Site site) {
  const int64_t n = t.shape()[static_cast<int>(axis)];
  if (n >= 0) return scalar_like(like, static_cast<double>(n));
  return math::cast(berth::shape(t, int32, site)[{axis}], like.dtype(), site);
}

// `values`: one per replica of this task. With a null core there is one value,
// not one per replica.
Tensor reduced(ReduceOp op, const Tensors& values, std::optional<int64_t> axis,
               StrategyCore* core,
               const std::vector<std::vector<Device*>>& replicas, Site site) {
  const auto over_tasks = [&](const Tensor& t) {
    return core != nullptr ? sum_over_tasks(*core, t) : t;
  };
  if (!axis) {
    const Tensor sum = over_tasks(summed(values));
    if (op == ReduceOp::kSum) return sum;
    const double count = core != nullptr && core->link()
                             ? core->num_replicas()
                             : static_cast<double>(values.size());
    return math::divide(sum, scalar_like(sum, count), site);
  }
  Tensors sums, lengths;
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor& v = values[i];
    const OnDevice there(replicas[i][0]);
    const int64_t rank = v.rank();
    if (*axis < -rank || *axis >= rank) {
      throw errors::InvalidArgument(fmt::format(
          "reduce over axis {} of a value {}{}; expected an axis that it has",
          *axis, v.spec().str(), where_text()));
    }
    sums.push_back(math::reduce_sum(v, {.axis = {{*axis}}}, site));
    if (op == ReduceOp::kMean) {
      lengths.push_back(
          length_of(v, *axis < 0 ? *axis + rank : *axis, sums[0], site));
    }
  }
  const Tensor sum = over_tasks(summed(sums));
  if (op == ReduceOp::kSum) return sum;
  return math::divide(sum, over_tasks(summed(lengths)), site);
}

}  // namespace

Tensor Strategy::reduce(ReduceOp op, const PerReplica& value,
                        std::optional<int64_t> axis, Site site) const {
  set_site(site);
  check_outside("reduce", "all_reduce");
  check_count(value, *core_, "reduce");
  const OnDevice on(&meeting_place(*core_));
  return reduced(op, value.values(), axis, core_.get(), core_->replicas(),
                 site);
}

Tensor Strategy::reduce(ReduceOp op, const Tensor& value,
                        std::optional<int64_t> axis, Site site) const {
  set_site(site);
  check_outside("reduce", "all_reduce");
  const int n = num_replicas_in_sync();
  if (op == ReduceOp::kSum && n > 1) {
    throw errors::InvalidArgument(fmt::format(
        "reduce: the sum over {} replicas of one value{}; expected what run() "
        "returned, one value per replica, or a mean",
        n, where_text()));
  }
  if (!axis) return value;
  return reduced(op, {value}, axis, nullptr, core_->replicas(), site);
}

Tensor Strategy::gather(const PerReplica& value, int64_t axis,
                        Site site) const {
  set_site(site);
  check_outside("gather", "all_gather");
  check_count(value, *core_, "gather");
  const OnDevice on(&meeting_place(*core_));
  Tensors parts;
  for (const Tensor& v : value.values()) {
    if (v.rank() == 0) {
      throw errors::InvalidArgument(fmt::format(
          "gather of scalars{}; expected values with an axis", where_text()));
    }
    parts.push_back(fetched(v));
  }
  const Tensor mine = concat(parts, axis, site);
  if (!core_->link()) return mine;
  return gather_over_tasks(*core_, mine, axis < 0 ? axis + mine.rank() : axis);
}

void Strategy::update(const Variable& v, const std::function<void(Tensor)>& fn,
                      const Tensor& value) const {
  if (t_state.replica != nullptr) {
    throw errors::FailedPrecondition(fmt::format(
        "update() of \"{}\" in a replica{}; expected it in the function of "
        "merge_call(), or outside of run()",
        v.name(), where_text()));
  }
  const OnDevice on(variable_state(v.handle()).device);
  fn(value);
}

}  // namespace berth::distribute
