// utils: small helpers (tf.keras.utils).

#ifndef BERTH_KERAS_UTILS_H_
#define BERTH_KERAS_UTILS_H_

#include <cstdint>
#include <string>

#include "berth/keras/models.h"

namespace berth::keras::utils {

// One-hot rows of labels 0 to num_classes - 1: [...] or [..., 1] ->
// [..., num_classes], float32. num_classes 0: one more than the largest label.
// Throws errors::InvalidArgument for labels that are out of range.
Tensor to_categorical(const Tensor& labels, int64_t num_classes = 0,
                      Site site = Site::here());

// Sets the seed of everything random: weights, dropout, shuffles
// (random::set_seed).
void set_random_seed(int64_t seed);

struct PlotModelOptions {
  bool show_shapes = true;
  bool show_dtype = false;
  bool show_layer_names = true;
  bool show_devices = true;
};
// Draws the layers of a model and what leads from one to the next as a picture
// (SVG). Returns it; writes it to `to_file` unless that is "". Throws
// errors::Unavailable when the file cannot be written.
std::string plot_model(const Model& model,
                       const std::string& to_file = "model.svg",
                       const PlotModelOptions& options = {},
                       Site site = Site::here());

}  // namespace berth::keras::utils

#endif  // BERTH_KERAS_UTILS_H_
