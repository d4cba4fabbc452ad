// The catalogue: which families there are.

#include "ops/families.h"

namespace berth {

void register_all_ops(OpRegistry& r) {
  register_elementwise_ops(r);
  register_compare_ops(r);
  register_complex_ops(r);
  register_reduce_ops(r);
  register_matmul_ops(r);
  register_array_ops(r);
  register_variable_ops(r);
  register_graph_ops(r);
  register_task_ops(r);
  register_control_flow_ops(r);
  register_fused_op(r);
  register_generate_ops(r);
  register_layout_ops(r);
  register_join_ops(r);
  register_slice_ops(r);
  register_gather_ops(r);
  register_rearrange_ops(r);
  register_split_ops(r);
  register_shape_ops(r);
  register_scatter_ops(r);
  register_segment_ops(r);
  register_sort_ops(r);
  register_dynamic_ops(r);
  register_linalg_ops(r);
  register_factor_ops(r);
  register_fourier_ops(r);
  register_ctc_ops(r);
  register_suppression_ops(r);
  register_distribution_ops(r);
  register_random_ops(r);
  register_nn_ops(r);
  register_softmax_ops(r);
  register_conv_ops(r);
  register_pool_ops(r);
  register_norm_ops(r);
  register_channel_norm_ops(r);
  register_attention_ops(r);
  register_dot_product_attention_ops(r);
  register_layer_norm_ops(r);
  register_training_ops(r);
  register_unary_ops(r);
  register_binary_ops(r);
  register_activation_ops(r);
  register_scan_ops(r);
  register_lstm_ops(r);
}

}  // namespace berth
