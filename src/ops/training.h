// Updates of variables by optimizers (tf.raw_ops.ResourceApply*).
//
// `var` and the slots are handles of dtype resource, of equal shapes and
// dtypes; `grad` has their shape; the other operands are scalars of grad's
// dtype. One pass per update; variables change at once in eager execution, in
// program order in a trace. Throw errors::InvalidArgument.

#ifndef BERTH_OPS_TRAINING_H_
#define BERTH_OPS_TRAINING_H_

#include "berth/tensor.h"

namespace berth::training {

// var -= alpha * delta
void apply_gradient_descent(const Tensor& var, const Tensor& alpha,
                            const Tensor& delta);

// accum = accum * momentum + grad; var -= lr * accum, or with Nesterov's
// look-ahead var -= lr * (grad + momentum * accum).
void apply_momentum(const Tensor& var, const Tensor& accum, const Tensor& lr,
                    const Tensor& grad, const Tensor& momentum,
                    bool use_nesterov);

// Keras' form, with the rate inside: accum = accum * momentum - lr * grad;
// var += accum, or var += momentum * accum - lr * grad.
void apply_keras_momentum(const Tensor& var, const Tensor& accum,
                          const Tensor& lr, const Tensor& grad,
                          const Tensor& momentum, bool use_nesterov);

struct AdamScalars {
  Tensor beta1_power, beta2_power;  // beta to the number of this step
  Tensor lr, beta1, beta2, epsilon;
};
// m += (1 - beta1) * (grad - m); v += (1 - beta2) * (grad^2 - v);
// var -= lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m /
// (sqrt(v) + epsilon), where Nesterov's form reads
// beta1 * m + (1 - beta1) * grad in place of m.
void apply_adam(const Tensor& var, const Tensor& m, const Tensor& v,
                const AdamScalars& scalars, const Tensor& grad,
                bool use_nesterov);

// Adam, after var -= lr * weight_decay * var (AdamW, as Keras has it).
void apply_adam_with_weight_decay(const Tensor& var, const Tensor& m,
                                  const Tensor& v, const AdamScalars& scalars,
                                  const Tensor& weight_decay,
                                  const Tensor& grad, bool use_nesterov);

struct RmsPropScalars {
  Tensor lr, rho, momentum, epsilon;
};
// ms += (1 - rho) * (grad^2 - ms);
// mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom.
void apply_rms_prop(const Tensor& var, const Tensor& ms, const Tensor& mom,
                    const RmsPropScalars& scalars, const Tensor& grad);
// RMSProp with ms - mg^2 in place of ms, where mg += (1 - rho) * (grad - mg).
void apply_centered_rms_prop(const Tensor& var, const Tensor& mg,
                             const Tensor& ms, const Tensor& mom,
                             const RmsPropScalars& scalars, const Tensor& grad);

// accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon).
void apply_adagrad(const Tensor& var, const Tensor& accum, const Tensor& lr,
                   const Tensor& epsilon, const Tensor& grad);

}  // namespace berth::training

#endif  // BERTH_OPS_TRAINING_H_
