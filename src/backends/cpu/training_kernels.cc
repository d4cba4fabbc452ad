// Updates of variables.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/past_caches.h"
#include "base/denormals.h"

namespace berth::cpu {

namespace {

float scalar(const KernelCall& c, int i) { return *c.in[i].as<float>(); }

// Calls loop(var, begin, n) for elements [begin, begin + n) of the variables;
// `var` points to the first of them. A variable that other threads read next is
// computed aside, block by block.
template <class Loop>
void update(const KernelCall& c, Loop&& loop) {
  const FlushDenormals flush;  // moments are not stuck there
  float* var = c.in[0].as<float>();
  const int64_t n = c.in[0].size();
  if (!c.attr<bool>("shared")) return loop(var, 0, n);
  constexpr int64_t kBlock = 1024;
  alignas(64) float block[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    std::memcpy(block, var + begin, static_cast<size_t>(count) * sizeof(float));
    loop(block, begin, count);
    copy_past_caches(var + begin, block, count);
  }
  end_past_caches();
}

void gradient_descent(const KernelCall& c) {
  const float* g = c.in[2].as<float>();
  update(c, [&](float* var, int64_t begin, int64_t n) {
    loops().sgd(var, g + begin, n, scalar(c, 1));
  });
}

void momentum(const KernelCall& c) {
  const bool nesterov = c.attr<bool>("use_nesterov");
  update(c, [&](float* var, int64_t begin, int64_t n) {
    loops().momentum(var, c.in[3].as<float>() + begin,
                     c.in[1].as<float>() + begin, n, scalar(c, 2), scalar(c, 4),
                     nesterov);
  });
}

void keras_momentum(const KernelCall& c) {
  const bool nesterov = c.attr<bool>("use_nesterov");
  update(c, [&](float* var, int64_t begin, int64_t n) {
    loops().keras_momentum(var, c.in[3].as<float>() + begin,
                           c.in[1].as<float>() + begin, n, scalar(c, 2),
                           scalar(c, 4), nesterov);
  });
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
  const float* g = c.in[kDecay ? 10 : 9].as<float>();
  update(c, [&](float* var, int64_t begin, int64_t n) {
    loops().adam(var, g + begin, c.in[1].as<float>() + begin,
                 c.in[2].as<float>() + begin, n, params);
  });
}

template <bool kCentered>
void rms_prop(const KernelCall& c) {
  constexpr int kScalars = kCentered ? 4 : 3;
  const RmsPropParams params{.rate = scalar(c, kScalars),
                             .rho = scalar(c, kScalars + 1),
                             .momentum = scalar(c, kScalars + 2),
                             .epsilon = scalar(c, kScalars + 3)};
  update(c, [&](float* var, int64_t begin, int64_t n) {
    loops().rms_prop(var, c.in[kScalars + 4].as<float>() + begin,
                     kCentered ? c.in[1].as<float>() + begin : nullptr,
                     c.in[kScalars - 2].as<float>() + begin,
                     c.in[kScalars - 1].as<float>() + begin, n, params);
  });
}

void adagrad(const KernelCall& c) {
  update(c, [&](float* var, int64_t begin, int64_t n) {
    loops().adagrad(var, c.in[4].as<float>() + begin,
                    c.in[1].as<float>() + begin, n, scalar(c, 2), scalar(c, 3));
  });
}

// Applies each update with its own kernel.
class MultiApply final : public Prepared {
 public:
  MultiApply(const OpDef& op, DirectKernel kernel) : op_(op), kernel_(kernel) {}

  void run(const KernelCall& call) const override {
    KernelCall one = call;
    one.op = &op_;
    one.num_in = static_cast<int>(op_.inputs().size());
    for (int i = 0; i < call.num_in; i += one.num_in) {
      one.in = call.in + i;
      kernel_(one);
    }
  }

 private:
  const OpDef& op_;
  const DirectKernel kernel_;
};

std::unique_ptr<Prepared> multi_apply(const PrepareArgs& args) {
  const OpDef& op = op_named(args.attr<std::string>("op"));
  const DType dtype = kernel_dtype(args.in, args.out);
  const DirectKernel kernel = args.table->fast(op.id(), dtype);
  if (kernel == nullptr) return nullptr;
  return std::make_unique<MultiApply>(op, kernel);
}

void assign(const KernelCall& c) {
  float* to = c.in[0].as<float>();
  const float* from = c.in[1].as<float>();
  const int64_t n = c.in[1].size();
  if (c.attr<bool>("shared")) {
    copy_past_caches(to, from, n);
    end_past_caches();
  } else if (n > 0) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
  }
}

template <BinaryOp kOp>
void assign_with(const KernelCall& c) {
  const float* delta = c.in[1].as<float>();
  update(c, [&](float* var, int64_t begin, int64_t n) {
    binary_loops(kOp).same(var, delta + begin, var, n);
  });
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
  t.prepared("_MultiApply", kFloatingTypes, &multi_apply, "loops", false);
  t.direct("AssignVariableOp", kFloat32, &assign, "loops");
  t.direct("AssignAddVariableOp", kFloat32, &assign_with<BinaryOp::kAdd>,
           "loops");
  t.direct("AssignSubVariableOp", kFloat32, &assign_with<BinaryOp::kSub>,
           "loops");
}

}  // namespace berth::cpu
