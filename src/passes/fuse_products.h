// fuse_products: a matrix product and the small ops at its ends become one
// _FusedMatMul.
//
// Runs after placement and lowering, before fuse, on devices whose kernels
// take such products: a bias and relu or gelu (its tanh form) after the
// product, gelu's gradient after it, the sum of its second factor that is a
// bias's gradient beside it, the sum over leading dimensions that ends a
// weight's gradient. Never across control edges, nor where replicas share a
// batch. All but the last keep every bit of kernels that round where the ops
// do.

#ifndef BERTH_PASSES_FUSE_PRODUCTS_H_
#define BERTH_PASSES_FUSE_PRODUCTS_H_

#include <functional>

#include "graph/graph.h"

namespace berth {

// `may_fuse(n)`: whether the device of a MatMul has a kernel of _FusedMatMul
// for its dtype. Returns true when anything changed.
bool fuse_products(Graph& graph,
                   const std::function<bool(const Node& n)>& may_fuse);

}  // namespace berth

#endif  // BERTH_PASSES_FUSE_PRODUCTS_H_
