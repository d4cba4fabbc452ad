// conv: convolutions and pools (tf.nn.*).
//
// Images are [n, h, w, c] and sequences [n, s, c], channels last, unless
// data_format says "NCHW" or "NCW": those are transposed and back. All take
// floating tensors and throw errors::InvalidArgument for shapes, dtypes or
// options that do not fit. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_CONV_H_
#define BERTH_OPS_CONV_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "berth/tensor.h"

namespace berth::nn {

struct Conv2DOptions {
  // {both}, {h, w}, or four in the order of data_format: {1, h, w, 1}.
  std::vector<int64_t> strides = {1};
  std::string padding = "VALID";  // or "SAME", or "EXPLICIT"
  std::vector<int64_t> dilations = {1};
  // Zeros around: {top, bottom, left, right}, with "EXPLICIT" only.
  std::vector<int64_t> explicit_paddings = {};
  std::string data_format = "NHWC";  // or "NCHW"
};
// Correlation of input [n, h, w, c] with filters [kh, kw, c / groups, o]: [n,
// oh, ow, o], where SAME gives oh = ceil(h / stride) and the others count the
// windows inside the padded image. Fewer channels in the filters than in the
// input mean groups: the first o / groups outputs see the first channels, and
// so on.
Tensor conv2d(const Tensor& input, const Tensor& filters,
              const Conv2DOptions& options = {}, Site site = Site::here());

// The transpose (gradient) of a conv2d: input [n, h, w, i], filters [kh, kw, o,
// i] -> [n, oh, ow, o], where conv2d would map oh, ow to h, w. output_shape [n,
// oh, ow, o] selects one of the possible sizes; if empty it is, with the extent
// (kh - 1) * dilation + 1: SAME h * stride, VALID (h - 1) * stride +
// max(extent, stride), EXPLICIT that minus the paddings. h and w must then be
// known.
Tensor conv2d_transpose(const Tensor& input, const Tensor& filters,
                        const std::vector<int64_t>& output_shape = {},
                        const Conv2DOptions& options = {},
                        Site site = Site::here());

// Each channel with m filters of its own: input [n, h, w, c], filter [kh, kw,
// c, m] -> [n, oh, ow, c * m], channel by channel. c must be known.
Tensor depthwise_conv2d(const Tensor& input, const Tensor& filter,
                        const Conv2DOptions& options = {},
                        Site site = Site::here());
// A depthwise convolution, then a mix of channels by pointwise_filter [1, 1, c
// * m, o].
Tensor separable_conv2d(const Tensor& input, const Tensor& depthwise_filter,
                        const Tensor& pointwise_filter,
                        const Conv2DOptions& options = {},
                        Site site = Site::here());

struct Conv1DOptions {
  int64_t stride = 1;
  std::string padding = "VALID";  // or "SAME", or "EXPLICIT"
  int64_t dilations = 1;
  std::vector<int64_t> explicit_paddings = {};  // {before, after}
  std::string data_format = "NWC";              // or "NCW"
};
// input [n, s, c], filters [k, c / groups, o] -> [n, os, o].
Tensor conv1d(const Tensor& input, const Tensor& filters,
              const Conv1DOptions& options = {}, Site site = Site::here());
// input [n, s, i], filters [k, o, i] -> [n, os, o]; output_shape [n, os, o] as
// for conv2d_transpose.
Tensor conv1d_transpose(const Tensor& input, const Tensor& filters,
                        const std::vector<int64_t>& output_shape = {},
                        const Conv1DOptions& options = {},
                        Site site = Site::here());

struct PoolOptions {
  // {both}, {h, w}, or four in the order of data_format: {1, h, w, 1}.
  std::vector<int64_t> ksize = {2};
  std::vector<int64_t> strides = {};  // like ksize if empty
  std::string padding = "VALID";      // or "SAME"
  std::string data_format = "NHWC";   // or "NCHW"
};
// The maximum, or the mean, of the pixels of each window that are inside the
// image: [n, h, w, c] -> [n, oh, ow, c].
Tensor max_pool2d(const Tensor& input, const PoolOptions& options = {},
                  Site site = Site::here());
Tensor avg_pool2d(const Tensor& input, const PoolOptions& options = {},
                  Site site = Site::here());
// The maximum and its position: int64 (y * w + x) * c + channel, the first on a
// tie. NHWC only.
std::pair<Tensor, Tensor> max_pool_with_argmax(const Tensor& input,
                                               const PoolOptions& options = {},
                                               Site site = Site::here());

struct Pool1DOptions {
  int64_t ksize = 2;
  int64_t strides = 0;              // like ksize if 0
  std::string padding = "VALID";    // or "SAME"
  std::string data_format = "NWC";  // or "NCW"
};
// [n, s, c] -> [n, os, c].
Tensor max_pool1d(const Tensor& input, const Pool1DOptions& options = {},
                  Site site = Site::here());
Tensor avg_pool1d(const Tensor& input, const Pool1DOptions& options = {},
                  Site site = Site::here());

}  // namespace berth::nn

#endif  // BERTH_OPS_CONV_H_
