// keras: layers, models and training (tf.keras).
//
//   auto model = keras::Sequential({keras::Dense(128, {.activation = "relu"}),
//                                   keras::Dense(10)});
//   model.compile({.optimizer = "adam",
//                  .loss = keras::losses::SparseCategoricalCrossentropy(
//                      {.from_logits = true}),
//                  .metrics = {"accuracy"}});
//   model.fit(x, y, {.epochs = 5});

#ifndef BERTH_KERAS_H_
#define BERTH_KERAS_H_

#include "berth/keras/activations.h"
#include "berth/keras/applications.h"
#include "berth/keras/attention_layers.h"
#include "berth/keras/augmentation_layers.h"
#include "berth/keras/callbacks.h"
#include "berth/keras/checkpoint_callbacks.h"
#include "berth/keras/constraints.h"
#include "berth/keras/conv_recurrent_layers.h"
#include "berth/keras/core_layers.h"
#include "berth/keras/datasets.h"
#include "berth/keras/element_layers.h"
#include "berth/keras/from_directory.h"
#include "berth/keras/image_layers.h"
#include "berth/keras/initializers.h"
#include "berth/keras/layers.h"
#include "berth/keras/losses.h"
#include "berth/keras/metrics.h"
#include "berth/keras/mixed_precision.h"
#include "berth/keras/models.h"
#include "berth/keras/more_datasets.h"
#include "berth/keras/optimizers.h"
#include "berth/keras/preprocessing_layers.h"
#include "berth/keras/recurrent_layers.h"
#include "berth/keras/regularizers.h"
#include "berth/keras/remat.h"
#include "berth/keras/saving.h"
#include "berth/keras/schedules.h"
#include "berth/keras/sequence_layers.h"
#include "berth/keras/sidecar_evaluator.h"
#include "berth/keras/utils.h"
#include "berth/keras/volume_layers.h"

#endif  // BERTH_KERAS_H_
