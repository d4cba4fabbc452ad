// image: image processing for pipelines (tf.image).
//
// Images are [height, width, channels] or [n, height, width, channels] of any
// numeric dtype; floats lie between 0 and 1 unless noted. Functions act at
// once, and in a traced function become part of it unless noted; random ones
// draw from random:: (random::set_seed, `seed`), the stateless_ forms from
// their seed only. All throw errors::InvalidArgument for shapes, dtypes and
// options that do not fit. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_IMAGE_H_
#define BERTH_IMAGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "berth/io.h"
#include "berth/ops/random.h"
#include "berth/tensor.h"

namespace berth::image {

using io::decode_and_crop_jpeg;
using io::decode_image;
using io::decode_jpeg;
using io::decode_png;
using io::encode_jpeg;
using io::encode_png;
using io::extract_jpeg_shape;
using random::StatelessSeed;

// --- Size ------------------------------------------------------------------

struct Size {
  int64_t height = 0, width = 0;
};
struct ResizeOptions {
  // "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5",
  // "gaussian", "mitchellcubic".
  std::string method = "bilinear";
  // Keeps the aspect ratio; the result fits into the size.
  bool preserve_aspect_ratio = false;
  // Smooths before shrinking.
  bool antialias = false;
};
// float32 [..., size, channels]; "nearest" keeps the dtype. Pixels are squares
// whose centres are at half-integers (half_pixel_centers).
Tensor resize(const Tensor& images, Size size,
              const ResizeOptions& options = {}, Site site = Site::here());
// Resizes with black bars instead of stretching.
Tensor resize_with_pad(const Tensor& images, int64_t target_height,
                       int64_t target_width, const ResizeOptions& options = {},
                       Site site = Site::here());

struct DecodeAndResizeOptions {
  int64_t channels = 3;  // 0: as in the file
  std::string method = "bilinear";
  bool antialias = false;
  // Lets a JPEG be decoded at 1/2, 1/4 or 1/8 of its size if that is still at
  // least the requested size: several times as fast, and smoother than bilinear
  // sampling of the whole image.
  bool scaled_decode = true;
  int64_t max_pixels = io::kMostPixels;
};
// A PNG or JPEG as float32 [size, channels], 0 to 255. Not in a trace.
Tensor decode_and_resize(const Tensor& contents, Size size,
                         const DecodeAndResizeOptions& options = {},
                         Site site = Site::here());

// --- Windows and margins ---------------------------------------------------

Tensor crop_to_bounding_box(const Tensor& image, int64_t offset_height,
                            int64_t offset_width, int64_t target_height,
                            int64_t target_width, Site site = Site::here());
// Zeros around.
Tensor pad_to_bounding_box(const Tensor& image, int64_t offset_height,
                           int64_t offset_width, int64_t target_height,
                           int64_t target_width, Site site = Site::here());
// The centre, cropped or surrounded by zeros.
Tensor resize_with_crop_or_pad(const Tensor& image, int64_t target_height,
                               int64_t target_width, Site site = Site::here());
// The central `central_fraction` (0 to 1) of height and width.
Tensor central_crop(const Tensor& image, double central_fraction,
                    Site site = Site::here());
// A window of `size` at a random place; any rank (tf.image.random_crop). Not
// in a trace.
Tensor random_crop(const Tensor& value, const Shape& size,
                   std::optional<int64_t> seed = std::nullopt,
                   Site site = Site::here());
Tensor stateless_random_crop(const Tensor& value, const Shape& size,
                             StatelessSeed seed, Site site = Site::here());

// --- Turning ---------------------------------------------------------------

Tensor flip_left_right(const Tensor& image, Site site = Site::here());
Tensor flip_up_down(const Tensor& image, Site site = Site::here());
Tensor transpose(const Tensor& image, Site site = Site::here());
// k quarter turns, counter-clockwise.
Tensor rot90(const Tensor& image, int64_t k = 1, Site site = Site::here());
// Each image with probability 1/2.
Tensor random_flip_left_right(const Tensor& image,
                              std::optional<int64_t> seed = std::nullopt,
                              Site site = Site::here());
Tensor random_flip_up_down(const Tensor& image,
                           std::optional<int64_t> seed = std::nullopt,
                           Site site = Site::here());
Tensor stateless_random_flip_left_right(const Tensor& image, StatelessSeed seed,
                                        Site site = Site::here());
Tensor stateless_random_flip_up_down(const Tensor& image, StatelessSeed seed,
                                     Site site = Site::here());

struct RotateOptions {
  std::string interpolation = "bilinear";  // or "nearest"
  // Pixels outside: "constant", "nearest", "reflect", "wrap".
  std::string fill_mode = "constant";
  double fill_value = 0;
};
// Rotates around the centre, counter-clockwise; float32, "nearest" keeps the
// dtype.
Tensor rotate(const Tensor& images, double radians,
              const RotateOptions& options = {}, Site site = Site::here());
// Rotates by an angle between -factor and factor full turns. Not in a trace.
Tensor random_rotation(const Tensor& images, double factor,
                       const RotateOptions& options = {},
                       std::optional<int64_t> seed = std::nullopt,
                       Site site = Site::here());

// --- Colours ---------------------------------------------------------------

// Floats are in 0 to 1, integers from 0 to their maximum; `saturate` clamps the
// result when floats become integers.
Tensor convert_image_dtype(const Tensor& image, DType dtype,
                           bool saturate = false, Site site = Site::here());
// Integers are converted to floats and back, saturated.
Tensor adjust_brightness(const Tensor& image, double delta,
                         Site site = Site::here());
// (x - mean) * factor + mean, for each channel of each image.
Tensor adjust_contrast(const Tensor& images, double contrast_factor,
                       Site site = Site::here());
Tensor adjust_gamma(const Tensor& image, double gamma = 1, double gain = 1,
                    Site site = Site::here());
// RGB; delta in turns of the hue circle, -1 to 1.
Tensor adjust_hue(const Tensor& image, double delta, Site site = Site::here());
Tensor adjust_saturation(const Tensor& image, double saturation_factor,
                         Site site = Site::here());
// Encodes as a JPEG of that quality and decodes it. Not in a trace.
Tensor adjust_jpeg_quality(const Tensor& image, int jpeg_quality,
                           Site site = Site::here());

// By a number drawn from [-max_delta, max_delta) or [lower, upper). Not in a
// trace.
Tensor random_brightness(const Tensor& image, double max_delta,
                         std::optional<int64_t> seed = std::nullopt,
                         Site site = Site::here());
Tensor random_contrast(const Tensor& image, double lower, double upper,
                       std::optional<int64_t> seed = std::nullopt,
                       Site site = Site::here());
Tensor random_hue(const Tensor& image, double max_delta,
                  std::optional<int64_t> seed = std::nullopt,
                  Site site = Site::here());
Tensor random_saturation(const Tensor& image, double lower, double upper,
                         std::optional<int64_t> seed = std::nullopt,
                         Site site = Site::here());
Tensor random_jpeg_quality(const Tensor& image, int min_jpeg_quality,
                           int max_jpeg_quality,
                           std::optional<int64_t> seed = std::nullopt,
                           Site site = Site::here());
Tensor stateless_random_brightness(const Tensor& image, double max_delta,
                                   StatelessSeed seed,
                                   Site site = Site::here());
Tensor stateless_random_contrast(const Tensor& image, double lower,
                                 double upper, StatelessSeed seed,
                                 Site site = Site::here());
Tensor stateless_random_hue(const Tensor& image, double max_delta,
                            StatelessSeed seed, Site site = Site::here());
Tensor stateless_random_saturation(const Tensor& image, double lower,
                                   double upper, StatelessSeed seed,
                                   Site site = Site::here());

Tensor rgb_to_grayscale(const Tensor& images, Site site = Site::here());
Tensor grayscale_to_rgb(const Tensor& images, Site site = Site::here());
// Floats [..., 3].
Tensor rgb_to_hsv(const Tensor& images, Site site = Site::here());
Tensor hsv_to_rgb(const Tensor& images, Site site = Site::here());
Tensor rgb_to_yuv(const Tensor& images, Site site = Site::here());
Tensor yuv_to_rgb(const Tensor& images, Site site = Site::here());
Tensor rgb_to_yiq(const Tensor& images, Site site = Site::here());
Tensor yiq_to_rgb(const Tensor& images, Site site = Site::here());
// (x - mean) / max(stddev, 1 / sqrt(elements)) of each picture, float32.
Tensor per_image_standardization(const Tensor& image, Site site = Site::here());

}  // namespace berth::image

#endif  // BERTH_IMAGE_H_
