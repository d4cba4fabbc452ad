// The table of classes, gathered from the files that define them.

#include "keras/config/classes.h"

#include "base/immortal.h"

namespace berth::keras {

namespace {

template <class... Rows>
Classes classes_of(Rows*... add) {
  Classes c;
  (add(c), ...);
  return c;
}

}  // namespace

const Classes& classes() {
  static const auto& all = immortal<Classes>(classes_of(
      add_activation_classes, add_activity_regularization_classes,
      add_adaptive_classes, add_attention_classes, add_auto_contrast_classes,
      add_batch_normalization_classes, add_bidirectional_classes,
      add_category_encoding_classes, add_circle_loss_classes, add_color_classes,
      add_confusion_metric_classes, add_conv_classes, add_conv_lstm_classes,
      add_dense_classes, add_depthwise_conv_classes, add_discretization_classes,
      add_dot_classes, add_dropout_classes, add_einsum_dense_classes,
      add_embedding_classes, add_focal_losses_classes, add_functional_classes,
      add_geometry_classes, add_global_pooling_classes, add_group_query_classes,
      add_gru_classes, add_hashing_classes, add_hinge_losses_classes,
      add_identity_classes, add_initializer_classes, add_input_classes,
      add_iou_metrics_classes, add_lookup_classes, add_lstm_classes,
      add_masking_classes, add_mean_metric_classes, add_merge_classes,
      add_multi_head_attention_classes, add_noise_classes,
      add_normalization_classes, add_normalization_layer_classes,
      add_padding_and_cropping_classes, add_permute_classes,
      add_pooling_classes, add_probabilistic_losses_classes,
      add_random_color_jitter_classes, add_random_erasing_classes,
      add_random_gaussian_blur_classes, add_rectifier_classes,
      add_region_losses_classes, add_regression_losses_classes,
      add_repeat_vector_classes, add_rescaling_classes, add_reshape_classes,
      add_rms_normalization_classes, add_rnn_classes, add_score_metrics_classes,
      add_sequential_classes, add_simple_rnn_classes, add_spectral_classes,
      add_stacked_classes, add_text_classes, add_text_embedding_classes,
      add_time_distributed_classes, add_unit_normalization_classes,
      add_up_sampling_classes, optimizers::add_adadelta_classes,
      optimizers::add_adafactor_classes, optimizers::add_adagrad_classes,
      optimizers::add_adam_classes, optimizers::add_ftrl_classes,
      optimizers::add_lion_classes, optimizers::add_loss_scale_classes,
      optimizers::add_rmsprop_classes, optimizers::add_sgd_classes));
  return all;
}

}  // namespace berth::keras
