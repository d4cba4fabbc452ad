// Attention and its gradient by a card's library; elsewhere, and where it
// refuses, they decompose.

#include <algorithm>
#include <utility>

#include "backends/gpu/kernels.h"

namespace berth::gpu {

namespace {
namespace attention_family {

constexpr int64_t kRowUnit = 8;  // so rows of 16 bits are aligned

// Describes the op, or nothing where the library is not asked: with a mask, no
// elements, axes that broadcast, or logarithms of a part that begin anywhere.
LibraryOp library_op(const Recipe& r, LibraryOp::What what, int mask,
                     const Arg& logarithms) {
  const Shape &q = r.in_shape(0), &k = r.in_shape(1), &v = r.in_shape(2);
  const int rank = q.rank();
  if (r.num_in() > mask || rank < 3 || k.rank() != rank || v.rank() != rank) {
    return {};
  }
  AttentionGeometry a;
  a.batch = 1;
  for (int i = 0; i + 2 < rank; ++i) {
    if (k[i] != q[i] || v[i] != q[i]) return {};
    if (i + 3 < rank) a.batch *= q[i];
  }
  a.heads = q[rank - 3];
  a.s = q[rank - 2], a.d = q[rank - 1];
  a.t = k[rank - 2], a.e = v[rank - 1];
  const bool aligned =
      a.d % kRowUnit == 0 && a.e % kRowUnit == 0 && r.is_aligned({logarithms});
  const bool empty = a.batch * a.heads * a.s * a.t * a.d * a.e == 0;
  const bool fits = std::max(q.num_elements(), v.num_elements()) <= INT32_MAX;
  if (!aligned || empty || !fits) return {};
  a.causal = r.args().attr<bool>("is_causal");
  a.scale = r.args().attr<double>("scale");
  LibraryOp op{what, r.in_type(0)};
  op.attention = a;
  return op;
}

bool attention(Recipe& r) {
  const LibraryOp op = library_op(r, LibraryOp::What::kAttention, 3, out(1));
  if (op.dtype == DType::kInvalid) return false;
  LibraryKernel kernel = r.library(op);
  if (!kernel.kernel) return false;
  r.launch(std::move(kernel), {in(0), in(1), in(2), out(0), out(1)});
  return true;
}

bool attention_grad(Recipe& r) {
  const LibraryOp op = library_op(r, LibraryOp::What::kAttentionGrad, 6, in(4));
  if (op.dtype == DType::kInvalid) return false;
  LibraryKernel kernel = r.library(op);
  if (!kernel.kernel) return false;
  // result, its gradient, logarithms
  r.launch(std::move(kernel),
           {in(0), in(1), in(2), in(3), in(5), in(4), out(0), out(1), out(2)});
  return true;
}

}  // namespace attention_family
}  // namespace

void add_attention(Kernels& k) {
  using namespace attention_family;  // NOLINT: the functions of this file
  if (!k.features().attention) return;
  k.add_partial("ScaledDotProductAttention", kHalfTypes, &attention);
  k.add_partial("ScaledDotProductAttentionGrad", kHalfTypes, &attention_grad);
}

}  // namespace berth::gpu
