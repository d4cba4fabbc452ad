// adaptive: pools to a given size, and blocks of pixels moved into channels
// (tf.nn.*).
//
// They consist of other ops, and throw errors::InvalidArgument for shapes or
// options that do not fit. Thread-safe.

#ifndef BERTH_OPS_ADAPTIVE_H_
#define BERTH_OPS_ADAPTIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::nn {

// Output i of n along an axis of length m is the mean, or the maximum, of
// elements floor(i m / n) to ceil((i + 1) m / n) - 1. The lengths must be
// known.
// The input is [n, ..., c] with one to three axes between, or [n, c, ...] if
// data_format begins with "NC"; output_size has one number for each, or for
// all.
Tensor adaptive_average_pool(const Tensor& input,
                             const std::vector<int64_t>& output_size,
                             const std::string& data_format = "",
                             Site site = Site::here());
Tensor adaptive_max_pool(const Tensor& input,
                         const std::vector<int64_t>& output_size,
                         const std::string& data_format = "",
                         Site site = Site::here());

// [n, h, w, c] -> [n, h / b, w / b, b * b * c] for blocks of b x b, and back;
// "NCHW" as well.
Tensor space_to_depth(const Tensor& input, int64_t block_size,
                      const std::string& data_format = "NHWC",
                      Site site = Site::here());
Tensor depth_to_space(const Tensor& input, int64_t block_size,
                      const std::string& data_format = "NHWC",
                      Site site = Site::here());

}  // namespace berth::nn

#endif  // BERTH_OPS_ADAPTIVE_H_
