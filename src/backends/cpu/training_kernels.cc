// Updates of variables.

#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/reference.h"

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

template <bool kDecay>
void adam(const KernelCall& c) {
  const double rate = double{scalar(c, 5)} *
                      std::sqrt(1 - double{scalar(c, 4)}) /
                      (1 - double{scalar(c, 3)});
  AdamParams params{.rate = static_cast<float>(rate),
                    .beta1 = scalar(c, 6),
                    .beta2 = scalar(c, 7),
                    .epsilon = scalar(c, 8),
                    .nesterov = c.attr<bool>("use_nesterov")};
  if (kDecay) {
    params.keep =
        static_cast<float>(1 - double{scalar(c, 5)} * double{scalar(c, 9)});
  }
  loops().adam(c.in[0].as<float>(), c.in[kDecay ? 10 : 9].as<float>(),
               c.in[1].as<float>(), c.in[2].as<float>(), c.in[0].size(),
               params);
}

template <bool kCentered>
void rms_prop(const KernelCall& c) {
  constexpr int kScalars = kCentered ? 4 : 3;
  const RmsPropParams params{.rate = scalar(c, kScalars),
                             .rho = scalar(c, kScalars + 1),
                             .momentum = scalar(c, kScalars + 2),
                             .epsilon = scalar(c, kScalars + 3)};
  loops().rms_prop(c.in[0].as<float>(), c.in[kScalars + 4].as<float>(),
                   kCentered ? c.in[1].as<float>() : nullptr,
                   c.in[kScalars - 2].as<float>(),
                   c.in[kScalars - 1].as<float>(), c.in[0].size(), params);
}

void adagrad(const KernelCall& c) {
  loops().adagrad(c.in[0].as<float>(), c.in[4].as<float>(), c.in[1].as<float>(),
                  c.in[0].size(), scalar(c, 2), scalar(c, 3));
}

// Each update by its own kernel.
void multi_apply(const KernelCall& c) {
  const OpDef& op = op_named(c.attr<std::string>("op"));
  const auto each = static_cast<int>(op.inputs().size());
  const DType dtype = c.in[0].dtype;
  DirectKernel kernel = kernels().fast(op.id(), dtype);
  if (!kernel) kernel = reference::kernels().fast(op.id(), dtype);
  KernelCall one = c;
  one.op = &op;
  one.num_in = each;
  for (int i = 0; i < c.num_in; i += each) {
    one.in = c.in + i;
    kernel(one);
  }
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
  t.direct("ResourceApplyAdam", kFloat32, &adam<false>, "loops");
  t.direct("ResourceApplyAdamWithWeightDecay", kFloat32, &adam<true>, "loops");
  t.direct("ResourceApplyRMSProp", kFloat32, &rms_prop<false>, "loops");
  t.direct("ResourceApplyCenteredRMSProp", kFloat32, &rms_prop<true>, "loops");
  t.direct("ResourceApplyAdagradV2", kFloat32, &adagrad, "loops");
  t.direct("_MultiApply", kFloatingTypes, &multi_apply, "loops");
  t.direct("AssignAddVariableOp", kFloat32, &assign_with<BinaryOp::kAdd>,
           "loops");
  t.direct("AssignSubVariableOp", kFloat32, &assign_with<BinaryOp::kSub>,
           "loops");
}

}  // namespace berth::cpu
