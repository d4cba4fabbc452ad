// augmentation_layers: resizing, and random changes of images in training
// (tf.keras.layers).
//
// Images are [n, h, w, c] or one [h, w, c], of any numeric dtype, with h, w
// and, for random layers, n known; results are float32. The Random ones act in
// training only, otherwise they return the images unchanged; each image of a
// batch has its own draw. Numbers follow from random::set_seed() and `seed`.
// They act like all layers (layers.h), and share its thread rule.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_AUGMENTATION_LAYERS_H_
#define BERTH_KERAS_AUGMENTATION_LAYERS_H_

#include "berth/keras/layers.h"

namespace berth::keras {

// The range of draws: {lower, upper}, or one number f: [-f, f], or [0, f] where
// negative values make no sense.
struct Factor {
  Factor(double f) : upper(f) {}  // NOLINT
  Factor(double lower, double upper) : lower(lower), upper(upper) {}
  std::optional<double> lower;
  double upper;
};
// The least and the largest value of a pixel.
struct ValueRange {
  double low = 0;
  double high = 255;
};

struct ResizingOptions {
  // "nearest", "bicubic", "lanczos3", "lanczos5", "area".
  std::string interpolation = "bilinear";
  // Crops, or pads with fill_value, so that nothing is stretched.
  bool crop_to_aspect_ratio = false;
  bool pad_to_aspect_ratio = false;
  double fill_value = 0;
  bool antialias = false;
  std::string name = {};
  OwnPolicy dtype = {};
};
// [n, h, w, c] -> [n, height, width, c].
struct Resizing : Layer {
  Resizing(int64_t height, int64_t width, ResizingOptions options = {},
           Site site = Site::here());
};
// The centre of images; for smaller ones the largest part with that aspect
// ratio, resized.
struct CenterCrop : Layer {
  CenterCrop(int64_t height, int64_t width, NameOptions options = {},
             Site site = Site::here());
};

using RandomOptions = DropoutOptions;
// "horizontal", "vertical", "horizontal_and_vertical": each with probability
// 1/2.
struct RandomFlip : Layer {
  explicit RandomFlip(std::string mode = "horizontal_and_vertical",
                      RandomOptions options = {}, Site site = Site::here());
};
// A part at one random position for the whole batch; otherwise, and for smaller
// images, the result of CenterCrop.
struct RandomCrop : Layer {
  RandomCrop(int64_t height, int64_t width, RandomOptions options = {},
             Site site = Site::here());
};

struct RandomTransformOptions {
  // Pixels outside: "reflect" d c b a | a b c d | d c b a, "wrap" a b c d | a b
  // c d, "nearest" the border, "constant" fill_value.
  std::string fill_mode = "reflect";
  std::string interpolation = "bilinear";  // or "nearest"
  double fill_value = 0;
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// Rotates by factor * 2 pi, counter-clockwise if positive.
struct RandomRotation : Layer {
  explicit RandomRotation(Factor factor, RandomTransformOptions options = {},
                          Site site = Site::here());
};
// Shifts down and to the right by a fraction of height and width.
struct RandomTranslation : Layer {
  RandomTranslation(Factor height_factor, Factor width_factor,
                    RandomTransformOptions options = {},
                    Site site = Site::here());
};
// Shows 1 + factor of height and width: zooms in if negative. Without
// width_factor the aspect ratio stays. Factors are above -1.
struct RandomZoom : Layer {
  explicit RandomZoom(Factor height_factor,
                      std::optional<Factor> width_factor = std::nullopt,
                      RandomTransformOptions options = {},
                      Site site = Site::here());
};
// x + x_factor * y, y + y_factor * x, both with one random sign; factors are in
// [0, 1].
struct RandomShear : Layer {
  RandomShear(Factor x_factor, Factor y_factor,
              RandomTransformOptions options = {}, Site site = Site::here());
};

struct RandomColorOptions {
  ValueRange value_range = {};
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// Moves all pixels of an image by factor * range, factor in [-1, 1].
struct RandomBrightness : Layer {
  explicit RandomBrightness(Factor factor, RandomColorOptions options = {},
                            Site site = Site::here());
};
// Multiplies the distance from the mean of each channel by 1 - lower to
// 1 + upper; one number f: both.
struct RandomContrast : Layer {
  explicit RandomContrast(Factor factor, RandomColorOptions options = {},
                          Site site = Site::here());
};
// The images below have three channels, red, green and blue, if colours matter;
// factors are in [0, 1]. Grey with probability `factor`; towards grey by
// factor.
struct RandomGrayscale : Layer {
  explicit RandomGrayscale(double factor = 0.5, RandomOptions options = {},
                           Site site = Site::here());
};
struct RandomColorDegeneration : Layer {
  explicit RandomColorDegeneration(Factor factor,
                                   RandomColorOptions options = {},
                                   Site site = Site::here());
};
// Saturation times f / (1 - f): 0.5 changes nothing.
struct RandomSaturation : Layer {
  explicit RandomSaturation(Factor factor, RandomColorOptions options = {},
                            Site site = Site::here());
};
// Rotates the hue by up to half a circle times factor, either way.
struct RandomHue : Layer {
  explicit RandomHue(Factor factor, RandomColorOptions options = {},
                     Site site = Site::here());
};
// high - x, with a probability drawn from `factor`.
struct RandomInvert : Layer {
  explicit RandomInvert(Factor factor = 1, RandomColorOptions options = {},
                        Site site = Site::here());
};
// Keeps the `factor` highest of eight bits.
struct RandomPosterization : Layer {
  explicit RandomPosterization(int64_t factor, RandomColorOptions options = {},
                               Site site = Site::here());
};
// Blurs below 0.5, sharpens above.
struct RandomSharpness : Layer {
  explicit RandomSharpness(Factor factor, RandomColorOptions options = {},
                           Site site = Site::here());
};
struct SolarizationOptions {
  Factor addition_factor = 0.0;
  Factor threshold_factor = 0.0;
  ValueRange value_range = {};
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// Adds, then inverts values at or above the threshold; both as fractions of
// 255.
struct Solarization : Layer {
  explicit Solarization(SolarizationOptions options = {},
                        Site site = Site::here());
};

struct AutoContrastOptions {
  ValueRange value_range = {};
  std::string name = {};
  OwnPolicy dtype = {};
};
// Stretches each channel of each image so that its values fill the range, also
// outside training; constant channels stay.
struct AutoContrast : Layer {
  explicit AutoContrast(AutoContrastOptions options = {},
                        Site site = Site::here());
};
struct RandomErasingOptions {
  Factor scale = {0.02, 0.33};  // the square of a fraction of height and width
  std::optional<double> fill_value = std::nullopt;  // noise when absent
  ValueRange value_range = {};
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// Fills a rectangle at a random position, with a probability drawn from
// `factor` (Zhong et al. 2017).
struct RandomErasing : Layer {
  explicit RandomErasing(Factor factor = {1, 1},
                         RandomErasingOptions options = {},
                         Site site = Site::here());
};
struct RandomGaussianBlurOptions {
  Size2D kernel_size = 3;  // odd
  Factor sigma = {0, 1};   // for height and width, drawn per batch
  ValueRange value_range = {};
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// Blurs with a probability drawn from `factor`.
struct RandomGaussianBlur : Layer {
  explicit RandomGaussianBlur(Factor factor = {1, 1},
                              RandomGaussianBlurOptions options = {},
                              Site site = Site::here());
};
struct RandomColorJitterOptions {
  ValueRange value_range = {};
  std::optional<Factor> brightness_factor = std::nullopt;
  std::optional<Factor> contrast_factor = std::nullopt;
  std::optional<Factor> saturation_factor = std::nullopt;
  std::optional<Factor> hue_factor = std::nullopt;
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// Those of RandomBrightness, RandomContrast, RandomSaturation and RandomHue
// that have a factor, in this order.
struct RandomColorJitter : Layer {
  explicit RandomColorJitter(RandomColorJitterOptions options = {},
                             Site site = Site::here());
};

namespace layers {
using keras::AutoContrast;
using keras::CenterCrop;
using keras::RandomBrightness;
using keras::RandomColorDegeneration;
using keras::RandomColorJitter;
using keras::RandomContrast;
using keras::RandomCrop;
using keras::RandomErasing;
using keras::RandomFlip;
using keras::RandomGaussianBlur;
using keras::RandomGrayscale;
using keras::RandomHue;
using keras::RandomInvert;
using keras::RandomPosterization;
using keras::RandomRotation;
using keras::RandomSaturation;
using keras::RandomSharpness;
using keras::RandomShear;
using keras::RandomTranslation;
using keras::RandomZoom;
using keras::Resizing;
using keras::Solarization;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_AUGMENTATION_LAYERS_H_
