// Lint "local-mean": the loss of a replica is the mean over its own examples.

#include <fmt/format.h>

#include "autodiff/recorder.h"
#include "base/diagnostics.h"
#include "base/where.h"
#include "op/reduce_axes.h"
#include "op/replica_scope.h"

namespace berth {

namespace {

bool is_batch_mean(const OpDef& op, const Attrs* attrs, const Tensor& x) {
  return op.name() == "Mean" && x.rank() > 0 &&
         reduced_axes(op, attrs, x.rank())[0];
}

// Ops through which a mean stays one; a division may well be by the number of
// replicas.
bool passes_on(const OpDef& op) {
  return op.name() == "AddV2" || op.name() == "AddN" ||
         op.name() == "Identity" || op.name() == "Cast";
}

}  // namespace

void GradientTape::Recorder::lint_local_mean(const Tensor& target) const {
  const ReplicaScope* replica = t_state.replica;
  if (replica == nullptr || target.rank() != 0) return;
  const int replicas = replica->strategy().num_replicas();
  if (replicas < 2) return;
  std::vector<bool> of_loss(static_cast<size_t>(num_values_), false);
  const int32_t id = value_of(target);
  if (id == kUnwatched) return;
  of_loss[static_cast<size_t>(id)] = true;
  for (auto n = nodes_.rbegin(); n != nodes_.rend(); ++n) {
    const int32_t* ids = &values_[n->first_value];
    const int32_t out = ids[n->num_in];
    if (out == kUnwatched || !of_loss[static_cast<size_t>(out)]) continue;
    if (is_batch_mean(*n->op, n->attrs.get(), tensors_[n->first_tensor])) {
      const std::string where = where_text(n->layer, n->site);
      report_once(
          where,
          {"local-mean", debugging::Severity::kLint,
           fmt::format(
               "reduce_mean{} makes the loss of a replica: the mean over its "
               "own examples, while gradients are summed over {} replicas, so "
               "that steps grow with their number; use a loss of keras::losses "
               "here, or nn::compute_average_loss of the losses per example",
               where, replicas),
           n->site});
      return;
    }
    if (!passes_on(*n->op)) continue;
    for (int i = 0; i < n->num_in; ++i) {
      if (ids[i] != kUnwatched) of_loss[static_cast<size_t>(ids[i])] = true;
    }
  }
}

}  // namespace berth
