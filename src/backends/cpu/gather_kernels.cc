// Sums what was gathered from the same index: gradients of embeddings.

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/indices.h"

namespace berth::cpu {

namespace {

// Adds in the order of the indices; the reference keeps its sums in double.
void gather_grad(const KernelCall& c) {
  const float* dy = c.in[0].as<float>();
  float* dx = c.out[0].as<float>();
  reference::set_zero(c.out[0]);
  const auto add = binary_loops(BinaryOp::kAdd).same;
  reference::for_each_gathered(c, *c.out[0].shape,
                               [&](int64_t p, int64_t g, int64_t inner) {
                                 add(dx + p, dy + g, dx + p, inner);
                               });
}

}  // namespace

void add_gather(KernelTable& t) {
  t.direct("GatherGrad", kFloat32, &gather_grad, "loops");
  t.direct("GatherGradLike", kFloat32, &gather_grad, "loops");
}

}  // namespace berth::cpu
