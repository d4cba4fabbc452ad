// Updates of variables.

#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"

namespace berth::cpu {

namespace {

float scalar(const KernelCall& c, int i) { return *c.in[i].as<float>(); }

void gradient_descent(const KernelCall& c) {
  loops().sgd(c.in[0].as<float>(), c.in[2].as<float>(), c.in[0].size(),
              scalar(c, 1));
}

void momentum(const KernelCall& c) {
  loops().momentum(c.in[0].as<float>(), c.in[3].as<float>(),
                   c.in[1].as<float>(), c.in[0].size(), scalar(c, 2),
                   scalar(c, 4), c.attr<bool>("use_nesterov"));
}

void keras_momentum(const KernelCall& c) {
  loops().keras_momentum(c.in[0].as<float>(), c.in[3].as<float>(),
                         c.in[1].as<float>(), c.in[0].size(), scalar(c, 2),
                         scalar(c, 4), c.attr<bool>("use_nesterov"));
}

void adam(const KernelCall& c) {
  if (c.attr<bool>("use_nesterov")) return run_reference(c);
  const double rate = double{scalar(c, 5)} *
                      std::sqrt(1 - double{scalar(c, 4)}) /
                      (1 - double{scalar(c, 3)});
  const AdamParams params{static_cast<float>(rate), scalar(c, 6), scalar(c, 7),
                          scalar(c, 8)};
  loops().adam(c.in[0].as<float>(), c.in[9].as<float>(), c.in[1].as<float>(),
               c.in[2].as<float>(), c.in[0].size(), params);
}

template <BinaryOp kOp>
void assign_with(const KernelCall& c) {
  float* v = c.in[0].as<float>();
  binary_loops(kOp).same(v, c.in[1].as<float>(), v, c.in[1].size());
}

}  // namespace

void add_training(KernelTable& t) {
  t.direct("ResourceApplyGradientDescent", kFloat32, &gradient_descent,
           "loops");
  t.direct("ResourceApplyMomentum", kFloat32, &momentum, "loops");
  t.direct("ResourceApplyKerasMomentum", kFloat32, &keras_momentum, "loops");
  t.direct("ResourceApplyAdam", kFloat32, &adam, "loops");
  t.direct("AssignAddVariableOp", kFloat32, &assign_with<BinaryOp::kAdd>,
           "loops");
  t.direct("AssignSubVariableOp", kFloat32, &assign_with<BinaryOp::kSub>,
           "loops");
}

}  // namespace berth::cpu
