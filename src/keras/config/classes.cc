// The table of classes, gathered from the files that define them.

#include "keras/config/classes.h"

#include "base/immortal.h"

namespace berth::keras {

// Each beside what it names.
void add_activation_classes(Classes& c);
void add_batch_normalization_classes(Classes& c);
void add_conv_classes(Classes& c);
void add_dense_classes(Classes& c);
void add_bidirectional_classes(Classes& c);
void add_time_distributed_classes(Classes& c);
void add_masking_classes(Classes& c);
void add_lstm_classes(Classes& c);
void add_gru_classes(Classes& c);
void add_simple_rnn_classes(Classes& c);
void add_rnn_classes(Classes& c);
void add_stacked_classes(Classes& c);
void add_depthwise_conv_classes(Classes& c);
void add_dropout_classes(Classes& c);
void add_embedding_classes(Classes& c);
void add_text_embedding_classes(Classes& c);
void add_functional_classes(Classes& c);
void add_global_pooling_classes(Classes& c);
void add_initializer_classes(Classes& c);
void add_input_classes(Classes& c);
void add_regression_losses_classes(Classes& c);
void add_hinge_losses_classes(Classes& c);
void add_probabilistic_losses_classes(Classes& c);
void add_focal_losses_classes(Classes& c);
void add_region_losses_classes(Classes& c);
void add_circle_loss_classes(Classes& c);
void add_merge_classes(Classes& c);
void add_confusion_metric_classes(Classes& c);
void add_mean_metric_classes(Classes& c);
void add_score_metrics_classes(Classes& c);
void add_iou_metrics_classes(Classes& c);
void add_multi_head_attention_classes(Classes& c);
void add_noise_classes(Classes& c);
void add_normalization_classes(Classes& c);
void add_pooling_classes(Classes& c);
void add_rectifier_classes(Classes& c);
void add_rescaling_classes(Classes& c);
void add_reshape_classes(Classes& c);
void add_padding_and_cropping_classes(Classes& c);
void add_up_sampling_classes(Classes& c);
void add_sequential_classes(Classes& c);
void add_adaptive_classes(Classes& c);
void add_attention_classes(Classes& c);
void add_color_classes(Classes& c);
void add_conv3d_classes(Classes& c);
void add_conv_lstm_classes(Classes& c);
void add_identity_classes(Classes& c);
void add_permute_classes(Classes& c);
void add_repeat_vector_classes(Classes& c);
void add_unit_normalization_classes(Classes& c);
void add_rms_normalization_classes(Classes& c);
void add_activity_regularization_classes(Classes& c);
void add_auto_contrast_classes(Classes& c);
void add_random_erasing_classes(Classes& c);
void add_random_gaussian_blur_classes(Classes& c);
void add_random_color_jitter_classes(Classes& c);
void add_geometry_classes(Classes& c);
void add_group_query_classes(Classes& c);
void add_lookup_classes(Classes& c);
void add_hashing_classes(Classes& c);
void add_normalization_layer_classes(Classes& c);
void add_discretization_classes(Classes& c);
void add_category_encoding_classes(Classes& c);
void add_einsum_dense_classes(Classes& c);
void add_dot_classes(Classes& c);
void add_spectral_classes(Classes& c);
void add_text_classes(Classes& c);
namespace optimizers {
void add_adafactor_classes(Classes& c);
void add_adagrad_classes(Classes& c);
void add_adam_classes(Classes& c);
void add_lion_classes(Classes& c);
void add_adadelta_classes(Classes& c);
void add_ftrl_classes(Classes& c);
void add_loss_scale_classes(Classes& c);
void add_rmsprop_classes(Classes& c);
void add_sgd_classes(Classes& c);
}  // namespace optimizers

namespace {

Classes all_classes() {
  Classes c;
  add_activation_classes(c);
  add_batch_normalization_classes(c);
  add_conv_classes(c);
  add_dense_classes(c);
  add_bidirectional_classes(c);
  add_time_distributed_classes(c);
  add_masking_classes(c);
  add_lstm_classes(c);
  add_gru_classes(c);
  add_simple_rnn_classes(c);
  add_rnn_classes(c);
  add_stacked_classes(c);
  add_depthwise_conv_classes(c);
  add_dropout_classes(c);
  add_embedding_classes(c);
  add_text_embedding_classes(c);
  add_functional_classes(c);
  add_global_pooling_classes(c);
  add_initializer_classes(c);
  add_input_classes(c);
  add_regression_losses_classes(c);
  add_hinge_losses_classes(c);
  add_probabilistic_losses_classes(c);
  add_focal_losses_classes(c);
  add_region_losses_classes(c);
  add_circle_loss_classes(c);
  add_merge_classes(c);
  add_confusion_metric_classes(c);
  add_mean_metric_classes(c);
  add_score_metrics_classes(c);
  add_iou_metrics_classes(c);
  add_multi_head_attention_classes(c);
  add_noise_classes(c);
  add_normalization_classes(c);
  add_pooling_classes(c);
  add_rectifier_classes(c);
  add_rescaling_classes(c);
  add_reshape_classes(c);
  add_spectral_classes(c);
  add_padding_and_cropping_classes(c);
  add_up_sampling_classes(c);
  add_sequential_classes(c);
  add_adaptive_classes(c);
  add_attention_classes(c);
  add_color_classes(c);
  add_conv3d_classes(c);
  add_conv_lstm_classes(c);
  add_identity_classes(c);
  add_permute_classes(c);
  add_repeat_vector_classes(c);
  add_unit_normalization_classes(c);
  add_rms_normalization_classes(c);
  add_activity_regularization_classes(c);
  add_auto_contrast_classes(c);
  add_random_erasing_classes(c);
  add_random_gaussian_blur_classes(c);
  add_random_color_jitter_classes(c);
  add_geometry_classes(c);
  add_group_query_classes(c);
  add_lookup_classes(c);
  add_hashing_classes(c);
  add_normalization_layer_classes(c);
  add_discretization_classes(c);
  add_category_encoding_classes(c);
  add_einsum_dense_classes(c);
  add_dot_classes(c);
  add_text_classes(c);
  optimizers::add_adafactor_classes(c);
  optimizers::add_adagrad_classes(c);
  optimizers::add_adam_classes(c);
  optimizers::add_lion_classes(c);
  optimizers::add_adadelta_classes(c);
  optimizers::add_ftrl_classes(c);
  optimizers::add_loss_scale_classes(c);
  optimizers::add_rmsprop_classes(c);
  optimizers::add_sgd_classes(c);
  return c;
}

}  // namespace

const Classes& classes() {
  static const auto& all = immortal<Classes>(all_classes());
  return all;
}

}  // namespace berth::keras
