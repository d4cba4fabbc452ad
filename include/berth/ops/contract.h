// contract: products of tensors summed over shared axes, and norms (tf.einsum,
// tf.tensordot, tf.linalg).
//
// All consist of transpose, reshape, matmul and sum, so they run wherever these
// do. Throw errors::InvalidArgument for shapes, axes, dtypes or equations that
// do not fit. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_CONTRACT_H_
#define BERTH_OPS_CONTRACT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/tensor.h"

namespace berth {

// Einstein's summation: "ij,jk->ik". Each operand names its axes by letters;
// those that are not in the result are summed. A letter that an operand
// repeats takes its diagonal, one that the result repeats makes a diagonal;
// "..." are axes that broadcast. Without "->" the result has "..." and the
// letters that occur once, in ASCII order. Operands are contracted from left
// to right. Axes that are merged must be known, all but one.
Tensor einsum(std::string_view equation, const Tensors& operands,
              Site site = Site::here());

// The axes that tensordot sums over: the last n of a with the first n of b,
// or pairs of them: tensordot(a, b, {{1, 2}, {1, 0}}).
struct TensordotAxes {
  TensordotAxes(int64_t n) : n(n) {}  // NOLINT: tensordot(a, b, 1)
  TensordotAxes(std::vector<int64_t> a, std::vector<int64_t> b)
      : of_a(std::move(a)), of_b(std::move(b)) {}

  std::optional<int64_t> n = {};
  std::vector<int64_t> of_a = {}, of_b = {};
};
// Sum of products over the axes: [a without them, b without them].
Tensor tensordot(const Tensor& a, const Tensor& b, const TensordotAxes& axes,
                 Site site = Site::here());

// "euclidean", also called "fro"; 1, 2, another p > 0 or infinity; "nuc".
struct NormOrder {
  NormOrder(const char* name) : name(name) {}  // NOLINT: {.ord = "fro"}
  NormOrder(double p) : p(p) {}                // NOLINT: {.ord = 1}
  NormOrder(int p) : p(p) {}                   // NOLINT

  std::string name = {};
  double p = 2;
};

struct NormOptions {
  NormOrder ord = "euclidean";
  // One axis: vectors; two: matrices, for euclidean, 1, 2 (the largest singular
  // value), nuc (the sum of these) and infinity; none: all as one vector.
  std::optional<std::vector<int64_t>> axis = {};
  bool keepdims = false;
};

namespace linalg {
using berth::einsum;
using berth::tensordot;

// [..., m, n] x [..., n] -> [..., m]; with transpose_a [..., n, m].
Tensor matvec(const Tensor& a, const Tensor& b, bool transpose_a = false,
              Site site = Site::here());
// Vector product over the last axis, of length 3.
Tensor cross(const Tensor& a, const Tensor& b, Site site = Site::here());
// Norm of vectors or matrices, [x without axis] (tf.norm).
Tensor norm(const Tensor& x, const NormOptions& options = {},
            Site site = Site::here());
}  // namespace linalg

using linalg::norm;

}  // namespace berth

#endif  // BERTH_OPS_CONTRACT_H_
