// conv3d: convolutions and pools of volumes (tf.nn.*).
//
// They consist of those for images, so they run wherever these do. Volumes are
// [n, d, h, w, c] ("NDHWC") or [n, c, d, h, w] ("NCDHW"); d, h, w and c must be
// known. All take floating tensors and throw errors::InvalidArgument for
// shapes, dtypes or options that do not fit. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_CONV3D_H_
#define BERTH_OPS_CONV3D_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::nn {

struct Conv3DOptions {
  // {all}, {d, h, w}, or five in the order of data_format: {1, d, h, w, 1}.
  std::vector<int64_t> strides = {1};
  std::string padding = "VALID";  // or "SAME"
  std::vector<int64_t> dilations = {1};
  std::string data_format = "NDHWC";  // or "NCDHW"
};
// Correlation with filters [kd, kh, kw, c / groups, f]:
// [n, d, h, w, c] -> [n, od, oh, ow, f].
Tensor conv3d(const Tensor& input, const Tensor& filters,
              const Conv3DOptions& options = {}, Site site = Site::here());
// Its transpose, filters [kd, kh, kw, f, c]: [n, d, h, w, c] ->
// [n, od, oh, ow, f], where od is d * stride ("SAME") or (d - 1) * stride +
// max(extent of the filter, stride) ("VALID").
Tensor conv3d_transpose(const Tensor& input, const Tensor& filters,
                        const Conv3DOptions& options = {},
                        Site site = Site::here());

struct Pool3DOptions {
  // {all}, {d, h, w}, or five in the order of data_format: {1, d, h, w, 1}.
  std::vector<int64_t> ksize = {2};
  std::vector<int64_t> strides = {};  // like ksize if empty
  std::string padding = "VALID";      // or "SAME"
  std::string data_format = "NDHWC";  // or "NCDHW"
};
// The maximum, or the mean, of each window: [n, d, h, w, c] -> [n, od, oh, ow,
// c]. Padding of SAME does not count.
Tensor max_pool3d(const Tensor& input, const Pool3DOptions& options = {},
                  Site site = Site::here());
Tensor avg_pool3d(const Tensor& input, const Pool3DOptions& options = {},
                  Site site = Site::here());

}  // namespace berth::nn

#endif  // BERTH_OPS_CONV3D_H_
