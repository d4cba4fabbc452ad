#include "ops/training.h"

#include <fmt/format.h>

#include "base/immortal.h"
#include "ops/families.h"
#include "ops/named_call.h"

namespace berth {

namespace {

const Attrs* nesterov(bool use) {
  static const auto& kUse =
      immortal<AttrsRef>(std::vector<Attrs::Pair>{{"use_nesterov", true}});
  return use ? kUse.get() : nullptr;
}

void update(OpRegistry& r, const char* name,
            std::initializer_list<const char*> variables,
            std::initializer_list<const char*> values, const char* doc,
            bool has_nesterov = false, const char* gradient = "grad") {
  OpBuilder op = r.op(name);
  for (const char* v : variables) op.writes_variable(v);
  for (const char* v : values) op.input(v, kFloatingTypes);
  if (has_nesterov) op.attr("use_nesterov", false);
  op.update(gradient).not_differentiable().doc(doc);
}

// Several updates of one kind: their operands one after the other.
void register_multi_apply(OpRegistry& r) {
  r.op("_MultiApply")
      .writes_variables("operands")
      .required_attr("op", std::string())
      .any_attrs()
      .infer([](InferContext& c) {
        const OpDef& op = op_named(c.attr<std::string>("op"));
        const auto each = static_cast<int>(op.inputs().size());
        if (c.num_inputs() % each != 0) {
          c.fail(fmt::format("{} operands; expected a multiple of {}",
                             c.num_inputs(), each));
        }
      })
      .cost([](const InferContext& c) {
        Cost cost;
        for (int i = 0; i < c.num_inputs(); ++i) {
          const double n = static_cast<double>(c.shape(i).num_elements());
          cost.flops += 3 * n;
          cost.bytes += 6 * n;
        }
        return cost;
      })
      .not_differentiable()
      .doc("Updates of `op`, made by a pass out of small ones.");
}

}  // namespace

namespace training {

void apply_gradient_descent(const Tensor& var, const Tensor& alpha,
                            const Tensor& delta) {
  call_many(op_of<"ResourceApplyGradientDescent">(), {&var, &alpha, &delta});
}

void apply_momentum(const Tensor& var, const Tensor& accum, const Tensor& lr,
                    const Tensor& grad, const Tensor& momentum,
                    bool use_nesterov) {
  call_many(op_of<"ResourceApplyMomentum">(),
            {&var, &accum, &lr, &grad, &momentum}, nesterov(use_nesterov));
}

void apply_keras_momentum(const Tensor& var, const Tensor& accum,
                          const Tensor& lr, const Tensor& grad,
                          const Tensor& momentum, bool use_nesterov) {
  call_many(op_of<"ResourceApplyKerasMomentum">(),
            {&var, &accum, &lr, &grad, &momentum}, nesterov(use_nesterov));
}

void apply_adam(const Tensor& var, const Tensor& m, const Tensor& v,
                const AdamScalars& scalars, const Tensor& grad,
                bool use_nesterov) {
  const AdamScalars& s = scalars;
  call_many(op_of<"ResourceApplyAdam">(),
            {&var, &m, &v, &s.beta1_power, &s.beta2_power, &s.lr, &s.beta1,
             &s.beta2, &s.epsilon, &grad},
            nesterov(use_nesterov));
}

void apply_adam_with_weight_decay(const Tensor& var, const Tensor& m,
                                  const Tensor& v, const AdamScalars& scalars,
                                  const Tensor& weight_decay,
                                  const Tensor& grad, bool use_nesterov) {
  const AdamScalars& s = scalars;
  call_many(op_of<"ResourceApplyAdamWithWeightDecay">(),
            {&var, &m, &v, &s.beta1_power, &s.beta2_power, &s.lr, &s.beta1,
             &s.beta2, &s.epsilon, &weight_decay, &grad},
            nesterov(use_nesterov));
}

void apply_rms_prop(const Tensor& var, const Tensor& ms, const Tensor& mom,
                    const RmsPropScalars& s, const Tensor& grad) {
  call_many(op_of<"ResourceApplyRMSProp">(),
            {&var, &ms, &mom, &s.lr, &s.rho, &s.momentum, &s.epsilon, &grad});
}

void apply_centered_rms_prop(const Tensor& var, const Tensor& mg,
                             const Tensor& ms, const Tensor& mom,
                             const RmsPropScalars& s, const Tensor& grad) {
  call_many(
      op_of<"ResourceApplyCenteredRMSProp">(),
      {&var, &mg, &ms, &mom, &s.lr, &s.rho, &s.momentum, &s.epsilon, &grad});
}

void apply_adagrad(const Tensor& var, const Tensor& accum, const Tensor& lr,
                   const Tensor& epsilon, const Tensor& grad) {
  call_many(op_of<"ResourceApplyAdagradV2">(),
            {&var, &accum, &lr, &epsilon, &grad});
}

}  // namespace training

void register_training_ops(OpRegistry& r) {
  update(r, "ResourceApplyGradientDescent", {"var"}, {"alpha", "delta"},
         "var -= alpha delta", false, "delta");
  update(r, "ResourceApplyMomentum", {"var", "accum"},
         {"lr", "grad", "momentum"},
         "accum = momentum accum + grad; var -= lr accum", true);
  update(r, "ResourceApplyKerasMomentum", {"var", "accum"},
         {"lr", "grad", "momentum"},
         "accum = momentum accum - lr grad; var += accum", true);
  update(
      r, "ResourceApplyAdam", {"var", "m", "v"},
      {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
      "Adam (Kingma and Ba), section 2's form with epsilon hat", true);
  update(r, "ResourceApplyAdamWithWeightDecay", {"var", "m", "v"},
         {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon",
          "weight_decay", "grad"},
         "AdamW (Loshchilov and Hutter): Adam after var -= lr weight_decay var",
         true);
  update(r, "ResourceApplyRMSProp", {"var", "ms", "mom"},
         {"lr", "rho", "momentum", "epsilon", "grad"},
         "ms = rho ms + (1 - rho) grad^2; mom = momentum mom + lr grad / "
         "sqrt(ms + epsilon); var -= mom");
  update(r, "ResourceApplyCenteredRMSProp", {"var", "mg", "ms", "mom"},
         {"lr", "rho", "momentum", "epsilon", "grad"},
         "RMSProp with ms - mg^2 in place of ms; mg = rho mg + (1 - rho) grad");
  update(r, "ResourceApplyAdagradV2", {"var", "accum"},
         {"lr", "epsilon", "grad"},
         "accum += grad^2; var -= lr grad / (sqrt(accum) + epsilon)");
  register_multi_apply(r);
}

}  // namespace berth
