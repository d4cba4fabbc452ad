// What ops on batches of matrices share: shape, split and cost rules.

#ifndef BERTH_OPS_MATRICES_H_
#define BERTH_OPS_MATRICES_H_

#include <vector>

#include "berth/ops/linalg.h"
#include "op/infer.h"
#include "op/op_def.h"

namespace berth {

// Fails unless input 0 is [..., m, n].
void expect_matrices(const InferContext& c);
// The side of the matrices of input 0, [..., n, n].
int64_t side_of(const InferContext& c);
// [..., n, n] -> [...].
void infer_det(InferContext& c);
// The axes of the batch, of every input and output.
std::vector<SplitSignature> split_batch(const InferContext& c);
// A multiple of n^3 for each matrix.
Cost cost_cubic(const InferContext& c);

inline Tensor transposed(const Tensor& x) {
  return linalg::matrix_transpose(x, {});
}

}  // namespace berth

#endif  // BERTH_OPS_MATRICES_H_
