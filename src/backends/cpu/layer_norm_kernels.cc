// Layer normalisation: rows over the last axis.

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"

namespace berth::cpu {

namespace {

void layer_norm(const KernelCall& c) {
  loops().layer_norm(c.in[0].as<float>(), c.in[1].as<float>(),
                     c.in[2].as<float>(), c.out[0].as<float>(),
                     c.out[1].as<float>(), c.out[2].as<float>(),
                     c.out[1].size(), c.in[1].size(),
                     static_cast<float>(c.attr<double>("epsilon")));
}

void layer_norm_grad(const KernelCall& c) {
  loops().layer_norm_grad(c.in[0].as<float>(), c.in[1].as<float>(),
                          c.in[2].as<float>(), c.in[3].as<float>(),
                          c.in[4].as<float>(), c.out[0].as<float>(),
                          c.out[1].as<float>(), c.out[2].as<float>(),
                          c.in[3].size(), c.in[2].size());
}

}  // namespace

void add_layer_norm(KernelTable& t) {
  t.direct("LayerNorm", kFloat32, &layer_norm, "loops");
  t.direct("LayerNormGrad", kFloat32, &layer_norm_grad, "loops");
}

}  // namespace berth::cpu
