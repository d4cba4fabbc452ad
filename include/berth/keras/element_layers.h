// element_layers: layers that work element by element (tf.keras.layers):
// merges, activations with parameters, noise.
//
// They act like all layers (layers.h), and share its thread rule.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_ELEMENT_LAYERS_H_
#define BERTH_KERAS_ELEMENT_LAYERS_H_

#include "berth/keras/layers.h"
#include "berth/ops/math.h"

namespace berth::keras {

// Inputs of one shape, except that axes of length 1 broadcast; at least one,
// Subtract takes two.
struct Subtract : Layer {
  explicit Subtract(NameOptions options = {}, Site site = Site::here());
};
struct Multiply : Layer {
  explicit Multiply(NameOptions options = {}, Site site = Site::here());
};
struct Average : Layer {
  explicit Average(NameOptions options = {}, Site site = Site::here());
};
struct Maximum : Layer {
  explicit Maximum(NameOptions options = {}, Site site = Site::here());
};
struct Minimum : Layer {
  explicit Minimum(NameOptions options = {}, Site site = Site::here());
};

struct ReLUOptions {
  std::optional<double> max_value = std::nullopt;  // none
  double negative_slope = 0;
  double threshold = 0;
  std::string name = {};
  OwnPolicy dtype = {};
};
// x where x >= threshold, else negative_slope * (x - threshold); at most
// max_value.
struct ReLU : Layer {
  explicit ReLU(ReLUOptions options = {}, Site site = Site::here());
};
// x where positive, else negative_slope * x.
struct LeakyReLU : Layer {
  explicit LeakyReLU(double negative_slope = 0.3, NameOptions options = {},
                     Site site = Site::here());
};
// x where positive, else alpha * (exp(x) - 1).
struct ELU : Layer {
  explicit ELU(double alpha = 1, NameOptions options = {},
               Site site = Site::here());
};
struct PReLUOptions {
  Initializer alpha_initializer = "zeros";
  Regularizer alpha_regularizer = {};
  Constraint alpha_constraint = {};
  // Axes of the input, from 1, along which alpha is shared.
  std::vector<int64_t> shared_axes = {};
  std::string name = {};
  OwnPolicy dtype = {};
};
// x where positive, else alpha * x, with a weight alpha per element of an
// example: [n, ...] -> [n, ...] (He et al. 2015).
struct PReLU : Layer {
  explicit PReLU(PReLUOptions options = {}, Site site = Site::here());
};
struct SoftmaxOptions {
  math::Axes axis = -1;  // over all elements of several
  std::string name = {};
  OwnPolicy dtype = {};
};
struct Softmax : Layer {
  explicit Softmax(SoftmaxOptions options = {}, Site site = Site::here());
};

// Dropout of whole channels: [n, s, c], [n, h, w, c].
struct SpatialDropout1D : Layer {
  explicit SpatialDropout1D(double rate, DropoutOptions options = {},
                            Site site = Site::here());
};
struct SpatialDropout2D : Layer {
  explicit SpatialDropout2D(double rate, DropoutOptions options = {},
                            Site site = Site::here());
};
// In training, adds normal numbers of mean 0, or multiplies by normal numbers
// of mean 1 and deviation sqrt(rate / (1 - rate)).
struct GaussianNoise : Layer {
  explicit GaussianNoise(double stddev, DropoutOptions options = {},
                         Site site = Site::here());
};
struct GaussianDropout : Layer {
  explicit GaussianDropout(double rate, DropoutOptions options = {},
                           Site site = Site::here());
};

namespace layers {
using keras::Average;
using keras::ELU;
using keras::GaussianDropout;
using keras::GaussianNoise;
using keras::LeakyReLU;
using keras::Maximum;
using keras::Minimum;
using keras::Multiply;
using keras::PReLU;
using keras::ReLU;
using keras::Softmax;
using keras::SpatialDropout1D;
using keras::SpatialDropout2D;
using keras::Subtract;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_ELEMENT_LAYERS_H_
