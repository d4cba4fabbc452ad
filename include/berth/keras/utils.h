// utils: small helpers (tf.keras.utils).
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_UTILS_H_
#define BERTH_KERAS_UTILS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "berth/data.h"
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

// Packs a dataset element in fit's order: x, then y and weights if defined; and
// unpacks it, with empty tensors for missing parts. Throws
// errors::InvalidArgument for more than three.
Tensors pack_x_y_sample_weight(const Tensor& x, const Tensor& y = {},
                               const Tensor& sample_weight = {});
struct XYSampleWeight {
  Tensor x, y, sample_weight;
};
XYSampleWeight unpack_x_y_sample_weight(const Tensors& data,
                                        Site site = Site::here());

struct TimeseriesOptions {
  int64_t sequence_stride = 1;  // between the beginnings of windows
  int64_t sampling_rate = 1;    // between the steps of one
  int64_t batch_size = 128;
  bool shuffle = false;
  std::optional<uint64_t> seed = std::nullopt;
  int64_t start_index = 0;  // earlier data is skipped
  int64_t end_index = 0;    // and later data; 0: the end
};
// Windows over a series: data [n, ...] gives batches of [b, sequence_length,
// ...], and with targets [n, ...] those at the beginning of each window. Throws
// errors::InvalidArgument for sizes that do not fit.
data::Dataset timeseries_dataset_from_array(
    const Tensor& data, const Tensor& targets, int64_t sequence_length,
    const TimeseriesOptions& options = {}, Site site = Site::here());

struct SplitOptions {
  // Shares of the elements, or, from 1 on, their number; 0: the rest.
  double left_size = 0;
  double right_size = 0;
  bool shuffle = false;
  std::optional<uint64_t> seed = std::nullopt;
};
// Two datasets, the first elements and the rest. Throws errors::InvalidArgument
// for sizes that do not fit, and for a dataset of unknown cardinality.
std::pair<data::Dataset, data::Dataset> split_dataset(
    const data::Dataset& dataset, const SplitOptions& options,
    Site site = Site::here());

struct PlotModelOptions {
  bool show_shapes = true;
  bool show_dtype = false;
  bool show_layer_names = true;
  bool show_devices = true;
};
// Draws the layers of a model and their connections as an image (SVG). Returns
// it; writes it to `to_file` unless that is "". Throws errors::Unavailable if
// the file cannot be written.
std::string plot_model(const Model& model,
                       const std::string& to_file = "model.svg",
                       const PlotModelOptions& options = {},
                       Site site = Site::here());

}  // namespace berth::keras::utils

#endif  // BERTH_KERAS_UTILS_H_
