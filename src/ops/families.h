// The families of the catalogue; each file of this module registers one.

#ifndef BERTH_OPS_FAMILIES_H_
#define BERTH_OPS_FAMILIES_H_

#include "op/op_registry.h"

namespace berth {

void register_elementwise_ops(OpRegistry& r);
void register_compare_ops(OpRegistry& r);
void register_complex_ops(OpRegistry& r);
void register_reduce_ops(OpRegistry& r);
void register_matmul_ops(OpRegistry& r);
void register_array_ops(OpRegistry& r);
void register_generate_ops(OpRegistry& r);
void register_layout_ops(OpRegistry& r);
void register_join_ops(OpRegistry& r);
void register_slice_ops(OpRegistry& r);
void register_gather_ops(OpRegistry& r);
void register_rearrange_ops(OpRegistry& r);
void register_split_ops(OpRegistry& r);
void register_shape_ops(OpRegistry& r);
void register_nn_ops(OpRegistry& r);
void register_softmax_ops(OpRegistry& r);
void register_conv_ops(OpRegistry& r);
void register_pool_ops(OpRegistry& r);
void register_norm_ops(OpRegistry& r);
void register_scatter_ops(OpRegistry& r);
void register_segment_ops(OpRegistry& r);
void register_sort_ops(OpRegistry& r);
void register_dynamic_ops(OpRegistry& r);
void register_linalg_ops(OpRegistry& r);
void register_factor_ops(OpRegistry& r);
void register_fourier_ops(OpRegistry& r);
void register_ctc_ops(OpRegistry& r);
void register_suppression_ops(OpRegistry& r);
void register_distribution_ops(OpRegistry& r);
void register_channel_norm_ops(OpRegistry& r);
void register_attention_ops(OpRegistry& r);
void register_dot_product_attention_ops(OpRegistry& r);
void register_layer_norm_ops(OpRegistry& r);
void register_random_ops(OpRegistry& r);
void register_variable_ops(OpRegistry& r);
void register_training_ops(OpRegistry& r);
void register_unary_ops(OpRegistry& r);
void register_binary_ops(OpRegistry& r);
void register_activation_ops(OpRegistry& r);
void register_scan_ops(OpRegistry& r);
void register_lstm_ops(OpRegistry& r);
void register_graph_ops(OpRegistry& r);
void register_task_ops(OpRegistry& r);
void register_control_flow_ops(OpRegistry& r);
void register_fused_op(OpRegistry& r);

}  // namespace berth

#endif  // BERTH_OPS_FAMILIES_H_
