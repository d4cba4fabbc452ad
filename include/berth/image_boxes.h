// image_boxes: pictures through transforms and boxes, and edges (tf.image).
//
// Images are [n, height, width, channels] whose height, width and channels are
// known. Boxes are [m, 4]: y1, x1, y2, x2. All throw errors::InvalidArgument
// for shapes and options that do not fit. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_IMAGE_BOXES_H_
#define BERTH_IMAGE_BOXES_H_

#include <cstdint>
#include <limits>
#include <string>

#include "berth/image.h"
#include "berth/tensor.h"

namespace berth::image {

struct ProjectiveOptions {
  std::string interpolation = "BILINEAR";  // or "NEAREST"
  // What pixels outside are: "CONSTANT" (fill_value), "NEAREST" (of the edge),
  // "REFLECT" (a mirror image that repeats the edge) or "WRAP".
  std::string fill_mode = "CONSTANT";
  double fill_value = 0;
};
// Pixel (x, y) of the result is that at ((a0 x + a1 y + a2) / k, (b0 x + b1 y +
// b2) / k), k = c0 x + c1 y + 1, for rows a0, a1, a2, b0, b1, b2, c0, c1 of
// transforms [n or 1, 8] (TensorFlow's op ImageProjectiveTransformV3).
Tensor projective_transform(const Tensor& images, const Tensor& transforms,
                            Size output_shape,
                            const ProjectiveOptions& options = {},
                            Site site = Site::here());

struct CropOptions {
  std::string method = "bilinear";  // or "nearest"
  double extrapolation_value = 0;   // outside of the picture
};
// Box i, whose numbers are parts of the height and width less one, of picture
// box_indices[i], resized to crop_size: float32 [m, crop_size, channels].
Tensor crop_and_resize(const Tensor& image, const Tensor& boxes,
                       const Tensor& box_indices, Size crop_size,
                       const CropOptions& options = {},
                       Site site = Site::here());

struct SuppressionOptions {
  double iou_threshold = 0.5;
  double score_threshold = -std::numeric_limits<double>::infinity();
};
// Indices of the boxes, the highest of scores [m] first, that overlap none
// before them by more than iou_threshold (intersection over union): int32, at
// most max_output_size. A traced function takes the padded form.
Tensor non_max_suppression(const Tensor& boxes, const Tensor& scores,
                           int64_t max_output_size,
                           const SuppressionOptions& options = {},
                           Site site = Site::here());
struct Suppressed {
  Tensor selected_indices;  // [max_output_size], 0 after the valid ones
  Tensor valid_outputs;     // scalar int32
};
Suppressed non_max_suppression_padded(const Tensor& boxes, const Tensor& scores,
                                      int64_t max_output_size,
                                      const SuppressionOptions& options = {},
                                      Site site = Site::here());

// Slopes along the height and the width, by Sobel's filters: [n, height, width,
// channels, 2].
Tensor sobel_edges(const Tensor& image, Site site = Site::here());

}  // namespace berth::image

#endif  // BERTH_IMAGE_BOXES_H_
