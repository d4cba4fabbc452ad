// The families of the catalogue; each file of this module registers one.

#ifndef BERTH_OPS_FAMILIES_H_
#define BERTH_OPS_FAMILIES_H_

#include "op/op_registry.h"

namespace berth {

using RegisterOps = void(OpRegistry& r);
RegisterOps register_elementwise_ops, register_compare_ops,
    register_complex_ops, register_reduce_ops, register_matmul_ops,
    register_array_ops, register_variable_ops, register_graph_ops,
    register_task_ops, register_control_flow_ops, register_fused_op,
    register_generate_ops, register_layout_ops, register_join_ops,
    register_slice_ops, register_gather_ops, register_rearrange_ops,
    register_split_ops, register_shape_ops, register_scatter_ops,
    register_segment_ops, register_sort_ops, register_dynamic_ops,
    register_linalg_ops, register_factor_ops, register_fourier_ops,
    register_ctc_ops, register_suppression_ops, register_distribution_ops,
    register_random_ops, register_nn_ops, register_softmax_ops,
    register_conv_ops, register_pool_ops, register_norm_ops,
    register_channel_norm_ops, register_attention_ops,
    register_dot_product_attention_ops, register_layer_norm_ops,
    register_training_ops, register_unary_ops, register_binary_ops,
    register_activation_ops, register_scan_ops, register_lstm_ops;

}  // namespace berth

#endif  // BERTH_OPS_FAMILIES_H_
