// Helpers for data: labels, elements, windows over series, splits of data sets.

#include "berth/keras/utils.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"

namespace berth::keras::utils {

Tensor to_categorical(const Tensor& labels, int64_t num_classes, Site site) {
  Tensor y = labels;
  if (y.rank() > 1 && y.shape()[y.rank() - 1] == 1) y = squeeze(y, {-1}, site);
  const std::vector<int64_t> values =
      math::cast(y, int64, site).to_vector<int64_t>();
  int64_t largest = -1, least = 0;
  for (int64_t v : values) {
    largest = std::max(largest, v);
    least = std::min(least, v);
  }
  const int64_t classes = num_classes == 0 ? largest + 1 : num_classes;
  if (least < 0 || classes < 1 || largest >= classes || classes > (1 << 24)) {
    throw errors::InvalidArgument(fmt::format(
        "to_categorical{}: labels are {} to {}, num_classes {}; expected "
        "labels from 0 to num_classes - 1",
        where_text(nullptr, site), least, largest, num_classes));
  }
  return one_hot(math::cast(y, int64, site), classes, {}, site);
}

void set_random_seed(int64_t seed) { random::set_seed(seed); }

Tensors pack_x_y_sample_weight(const Tensor& x, const Tensor& y,
                               const Tensor& sample_weight) {
  Tensors all{x};
  if (y.defined()) all.push_back(y);
  if (y.defined() && sample_weight.defined()) all.push_back(sample_weight);
  return all;
}

XYSampleWeight unpack_x_y_sample_weight(const Tensors& data, Site site) {
  if (data.empty() || data.size() > 3) {
    throw errors::InvalidArgument(fmt::format(
        "unpack_x_y_sample_weight{}: got {} tensors; expected x, then y and "
        "sample_weight at most",
        where_text(nullptr, site), data.size()));
  }
  return {data[0], data.size() > 1 ? data[1] : Tensor(),
          data.size() > 2 ? data[2] : Tensor()};
}

data::Dataset timeseries_dataset_from_array(const Tensor& data,
                                            const Tensor& targets,
                                            int64_t sequence_length,
                                            const TimeseriesOptions& o,
                                            Site site) {
  const int64_t steps = data.rank() > 0 ? data.shape()[0] : 0;
  const int64_t end = o.end_index > 0 ? o.end_index : steps;
  if (sequence_length < 1 || o.sequence_stride < 1 || o.sampling_rate < 1 ||
      o.batch_size < 1 || o.start_index < 0 || end > steps ||
      o.start_index >= end || o.sampling_rate > end ||
      sequence_length > end / o.sampling_rate) {
    throw errors::InvalidArgument(fmt::format(
        "timeseries_dataset_from_array{}: {} steps from {} to {} of {}, stride "
        "{}, rate {}, batch_size {}; expected windows inside of the data, and "
        "numbers of at least 1",
        where_text(nullptr, site), sequence_length, o.start_index, end, steps,
        o.sequence_stride, o.sampling_rate, o.batch_size));
  }
  int64_t last = end - o.start_index - sequence_length * o.sampling_rate + 1;
  if (targets.defined()) {
    last = std::min(last, targets.shape()[0] - o.start_index);
  }
  std::vector<int64_t> starts;
  for (int64_t at = 0; at < last; at += o.sequence_stride) {
    starts.push_back(o.start_index + at);
  }
  const auto n = static_cast<int64_t>(starts.size());
  data::Dataset places =
      data::Dataset::from_tensor_slices({constant(starts, {n})}, site);
  if (o.shuffle) {
    places = places.shuffle(std::max<int64_t>(n, 1), {.seed = o.seed}, site);
  }
  const Tensor offsets =
      range(0, sequence_length * o.sampling_rate, o.sampling_rate, int64, site);
  return places.batch(o.batch_size, {}, site)
      .map(
          [data, targets, offsets, site](const Tensors& e) {
            const Tensor at =
                math::add(expand_dims(e[0], 1, site), offsets, site);
            Tensors out{gather(data, at, 0, site)};
            if (targets.defined()) {
              out.push_back(gather(targets, e[0], 0, site));
            }
            return out;
          },
          {}, site);
}

std::pair<data::Dataset, data::Dataset> split_dataset(
    const data::Dataset& dataset, const SplitOptions& o, Site site) {
  const int64_t n = dataset.cardinality();
  const auto count = [&](double size) {
    return size < 1 ? static_cast<int64_t>(
                          std::llround(size * static_cast<double>(n)))
                    : static_cast<int64_t>(size);
  };
  int64_t left = count(o.left_size), right = count(o.right_size);
  const bool given = o.left_size > 0 || o.right_size > 0;
  if (o.left_size == 0) left = n - right;
  if (o.right_size == 0) right = n - left;
  if (n < 0 || !given || o.left_size < 0 || o.right_size < 0 || left < 0 ||
      right < 0 || left + right > n) {
    throw errors::InvalidArgument(fmt::format(
        "split_dataset{}: left_size is {}, right_size {} of {} elements; "
        "expected shares below 1 or numbers that the dataset has, one at "
        "least, and a dataset of known cardinality",
        where_text(nullptr, site), o.left_size, o.right_size, n));
  }
  data::Dataset all = dataset;
  if (o.shuffle) {
    // One order for both parts.
    const uint64_t seed =
        o.seed ? *o.seed
               : static_cast<uint64_t>(
                     random::uniform({}, {.minval = 0, .maxval = 1 << 24}, site)
                         .item<float>());
    all = all.shuffle(std::max<int64_t>(n, 1),
                      {.seed = seed, .reshuffle_each_iteration = false}, site);
  }
  return {all.take(left, site), all.skip(left, site).take(right, site)};
}

}  // namespace berth::keras::utils
