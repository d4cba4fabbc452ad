// The families of cases; each file of this folder adds one.

#ifndef BERTH_CONFORMANCE_OPS_FAMILIES_H_
#define BERTH_CONFORMANCE_OPS_FAMILIES_H_

#include "conformance/case.h"

namespace berth::conformance {

// Where a function is smooth and defined.
struct Domain {
  double low = -2, high = 2;
  bool not_zero = false;
};
inline Input in_domain(Shape shape, const Domain& d) {
  const Input i = Input(shape).uniform(d.low, d.high);
  return d.not_zero ? i.not_zero() : i;
}

// A case of an op that moves elements: every bit is as it was.
inline Case& add_move(Cases& cases, const char* op, const char* label,
                      Shape shape) {
  return cases.add(op, label, {Input(shape)})
      .types(kNumberTypes)
      .close_to(0, 0);
}

// Calls all of the below.
void add_all_cases(Cases& cases);

void add_elementwise_cases(Cases& cases);
void add_compare_cases(Cases& cases);
void add_complex_cases(Cases& cases);
void add_dtype_cases(Cases& cases);
void add_reduce_cases(Cases& cases);
void add_matmul_cases(Cases& cases);
void add_array_cases(Cases& cases);
void add_generate_cases(Cases& cases);
void add_layout_cases(Cases& cases);
void add_join_cases(Cases& cases);
void add_slice_cases(Cases& cases);
void add_gather_cases(Cases& cases);
void add_rearrange_cases(Cases& cases);
void add_scatter_cases(Cases& cases);
void add_sort_cases(Cases& cases);
void add_linalg_cases(Cases& cases);
void add_factor_cases(Cases& cases);
void add_host_cases(Cases& cases);
void add_random_cases(Cases& cases);
void add_nn_cases(Cases& cases);
void add_softmax_cases(Cases& cases);
void add_conv_cases(Cases& cases);
void add_pool_cases(Cases& cases);
void add_norm_cases(Cases& cases);
void add_channel_norm_cases(Cases& cases);
void add_attention_cases(Cases& cases);
void add_dot_product_attention_cases(Cases& cases);
void add_layer_norm_cases(Cases& cases);
void add_training_cases(Cases& cases);
void add_variable_cases(Cases& cases);
void add_function_cases(Cases& cases);
void add_scan_cases(Cases& cases);
void add_lstm_cases(Cases& cases);
void add_half_cases(Cases& cases);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_OPS_FAMILIES_H_
