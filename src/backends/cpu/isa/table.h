// The table of one instruction set's loops; all there is in a level's
// translation unit.

#ifndef BERTH_BACKENDS_CPU_ISA_TABLE_H_
#define BERTH_BACKENDS_CPU_ISA_TABLE_H_

#include "backends/cpu/isa/elementwise.h"
#include "backends/cpu/isa/expr.h"
#include "backends/cpu/isa/gemm.h"
#include "backends/cpu/isa/half.h"
#include "backends/cpu/isa/layer_norm.h"
#include "backends/cpu/isa/lstm.h"
#include "backends/cpu/isa/reduce.h"
#include "backends/cpu/isa/train.h"
#include "backends/cpu/isa/windows.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

const Loops& table() {
  static constexpr Loops kTable = {
      .isa = BERTH_ISA_ENUM,
      .unary = {unary<Relu>, unary<Sigmoid>, unary<Tanh>, unary<GeluTanh>,
                unary<GeluErf>, unary<Exp>, unary<Log>, unary<Sqrt>,
                unary<Rsqrt>, unary<Neg>, unary<Abs>, unary<Square>,
                unary<Reciprocal>, unary<Erf>},
      .binary = {Binary<Plus>::loops(), Binary<Sub>::loops(),
                 Binary<Mul>::loops(), Binary<Div>::loops(),
                 Binary<Max>::loops(), Binary<Min>::loops(),
                 Binary<ReluGrad>::loops(), Binary<SigmoidGrad>::loops(),
                 Binary<TanhGrad>::loops(), Binary<GeluTanhGrad>::loops(),
                 Binary<GeluErfGrad>::loops()},
      .expr = &kExprTable.ops,
      .fill = fill,
      .transpose = transpose,
      .bias_relu = bias_relu,
      .sum = sum,
      .max = max,
      .row_sum = row_sum,
      .col_sum = col_sum,
      .softmax = softmax,
      .log_softmax = log_softmax,
      .softmax_grad = softmax_grad,
      .log_softmax_grad = log_softmax_grad,
      .xent_dense = xent_dense,
      .xent_i32 = xent_sparse<int32_t>,
      .xent_i64 = xent_sparse<int64_t>,
      .max_pool = max_pool,
      .max_pool_grad = max_pool_grad,
      .avg_pool = avg_pool,
      .avg_pool_grad = avg_pool_grad,
      .moments = moments,
      .scale_shift = scale_shift,
      .norm_grad_sums = norm_grad_sums,
      .norm_grad = norm_grad,
      .layer_norm = layer_norm,
      .layer_norm_grad = layer_norm_grad,
      .adam = adam,
      .rms_prop = rms_prop,
      .adagrad = adagrad,
      .sgd = sgd,
      .momentum = momentum,
      .keras_momentum = keras_momentum,
      .uniform = uniform,
      .normal = normal,
      .dropout = dropout,
      .small_gemm = small_gemm,
      .panel_gemm = panel_gemm,
      .conv_taps = conv_taps,
      .conv_pixels = conv_pixels,
      .widen_bfloat16 = widen_bfloat16,
      .round_bfloat16 = round_bfloat16,
      .widen_float16 = widen_float16,
      .round_float16 = round_float16,
      .lstm_step = lstm_step,
      .lstm_back_step = lstm_back_step,
  };
  return kTable;
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_TABLE_H_
