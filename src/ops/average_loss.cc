// Losses of replicas: parts of a mean over the global batch.

#include <fmt/format.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/replica_scope.h"

namespace berth::nn {

namespace {

// Examples of all replicas, of which `local` are here; 0: none are.
double all_examples(int64_t local) {
  const ReplicaScope* replica = t_state.replica;
  if (replica == nullptr) return static_cast<double>(local);
  const double share = replica->share();
  return share > 0 ? std::round(static_cast<double>(local) / share) : 0;
}

Tensor weighted(const Tensor& loss, const Tensor& weight, Site site) {
  Tensor w = weight.dtype() == loss.dtype()
                 ? weight
                 : math::cast(weight, loss.dtype(), site);
  while (w.rank() > 0 && w.rank() < loss.rank()) w = expand_dims(w, -1, site);
  return math::multiply(loss, w, site);
}

}  // namespace

Tensor compute_average_loss(const Tensor& loss, const AverageLossOptions& o,
                            Site site) {
  set_site(site);
  const bool counted = loss.rank() > 0 && loss.shape()[0] >= 0;
  const ReplicaScope* replica = t_state.replica;
  const bool alone =
      replica == nullptr || replica->strategy().num_replicas() == 1;
  if (o.global_batch_size < 0 || loss.rank() == 0 ||
      (o.global_batch_size == 0 && !counted && !alone)) {
    throw errors::InvalidArgument(fmt::format(
        "compute_average_loss: the loss is {}, global_batch_size {}{}; "
        "expected one loss per example, and the size where the batch is not "
        "known",
        loss.shape().str(), o.global_batch_size, where_text()));
  }
  const Tensor all =
      o.sample_weight.defined() ? weighted(loss, o.sample_weight, site) : loss;
  if (o.global_batch_size == 0 && !counted) {  // the batch is here, of any size
    return math::reduce_sum(math::reduce_mean(all, {.axis = 0}, site), {},
                            site);
  }
  const Tensor sum = math::reduce_sum(all, {}, site);
  const double examples = o.global_batch_size > 0
                              ? static_cast<double>(o.global_batch_size)
                              : all_examples(loss.shape()[0]);
  return examples > 0 ? sum / examples : sum;
}

Tensor scale_regularization_loss(const Tensor& loss, Site site) {
  set_site(site);
  const Tensor sum = loss.rank() == 0 ? loss : math::reduce_sum(loss);
  const ReplicaScope* replica = t_state.replica;
  if (replica == nullptr) return sum;
  return sum / static_cast<double>(replica->strategy().num_replicas());
}

}  // namespace berth::nn
