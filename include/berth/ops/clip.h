// clip: tensors kept within bounds (tf.clip_by_*).
//
// Throw errors::InvalidArgument for shapes or dtypes that do not fit.
// Thread-safe.

#ifndef BERTH_OPS_CLIP_H_
#define BERTH_OPS_CLIP_H_

#include <optional>
#include <utility>
#include <vector>

#include "berth/tensor.h"

namespace berth {

// min(max(x, low), high); the bounds broadcast. The gradient flows where x
// is within the bounds or on them.
Tensor clip_by_value(const Tensor& x, const Tensor& low, const Tensor& high,
                     Site site = Site::here());
Tensor clip_by_value(const Tensor& x, double low, double high,
                     Site site = Site::here());

// Scales x down to Euclidean norm `clip_norm` over `axes` (all if absent) where
// the norm is larger.
Tensor clip_by_norm(const Tensor& x, double clip_norm,
                    const std::optional<std::vector<int64_t>>& axes = {},
                    Site site = Site::here());

namespace linalg {
// Euclidean norm of all elements of all tensors, a scalar.
Tensor global_norm(const Tensors& list, Site site = Site::here());
}  // namespace linalg
using linalg::global_norm;

// Scales all tensors by clip_norm / global_norm if that is below 1, and returns
// them and their global norm; NaN if it is not finite. `norm` replaces it if
// defined. Undefined tensors stay undefined.
std::pair<Tensors, Tensor> clip_by_global_norm(const Tensors& list,
                                               double clip_norm,
                                               const Tensor& norm = {},
                                               Site site = Site::here());

}  // namespace berth

#endif  // BERTH_OPS_CLIP_H_
