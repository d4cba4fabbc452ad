#include "conformance/ops/families.h"

namespace berth::conformance {

void add_all_cases(Cases& cases) {
  add_elementwise_cases(cases);
  add_function_cases(cases);
  add_scan_cases(cases);
  add_lstm_cases(cases);
  add_compare_cases(cases);
  add_complex_cases(cases);
  add_dtype_cases(cases);
  add_reduce_cases(cases);
  add_matmul_cases(cases);
  add_array_cases(cases);
  add_generate_cases(cases);
  add_layout_cases(cases);
  add_join_cases(cases);
  add_slice_cases(cases);
  add_gather_cases(cases);
  add_rearrange_cases(cases);
  add_scatter_cases(cases);
  add_sort_cases(cases);
  add_linalg_cases(cases);
  add_factor_cases(cases);
  add_host_cases(cases);
  add_random_cases(cases);
  add_nn_cases(cases);
  add_softmax_cases(cases);
  add_conv_cases(cases);
  add_pool_cases(cases);
  add_norm_cases(cases);
  add_channel_norm_cases(cases);
  add_attention_cases(cases);
  add_dot_product_attention_cases(cases);
  add_layer_norm_cases(cases);
  add_training_cases(cases);
  add_variable_cases(cases);
  add_half_cases(cases);
}

}  // namespace berth::conformance
