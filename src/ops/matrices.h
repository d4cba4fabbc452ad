// What ops on batches of matrices share: products, shape, split and cost rules.

#ifndef BERTH_OPS_MATRICES_H_
#define BERTH_OPS_MATRICES_H_

#include <vector>

#include "berth/ops/factor.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
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

// What the factorisations and solvers take.
inline constexpr DTypeSet kMatrixTypes = kFloatingTypes | kComplexTypes;

inline DType real_type_of(DType dtype) {
  return dtype == complex64 ? float32 : dtype == complex128 ? float64 : dtype;
}

inline Tensor adjoint(const Tensor& x) { return linalg::adjoint(x, {}); }
// a^H b and a b^H.
inline Tensor tn(const Tensor& a, const Tensor& b) {
  return matmul(math::conj(a, {}), b, {.transpose_a = true}, {});
}
inline Tensor nt(const Tensor& a, const Tensor& b) {
  return matmul(a, math::conj(b, {}), {.transpose_b = true}, {});
}

}  // namespace berth

#endif  // BERTH_OPS_MATRICES_H_
