// core_layers: functions as layers, permuted axes, products, more norms
// (tf.keras.layers).
//
// They act like all layers (layers.h), and share its thread rule.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_CORE_LAYERS_H_
#define BERTH_KERAS_CORE_LAYERS_H_

#include <functional>

#include "berth/keras/layers.h"

namespace berth::keras {

// A function of tensors as a layer. It has no weights of its own; the model
// does not see variables that it uses.
struct Lambda : Layer {
  using Fn = std::function<Tensor(const Tensor&)>;
  using ListFn = std::function<Tensors(const Tensors&)>;
  explicit Lambda(Fn fn, NameOptions options = {}, Site site = Site::here());
  explicit Lambda(ListFn fn, NameOptions options = {},
                  Site site = Site::here());
};

// Returns its input.
struct Identity : Layer {
  explicit Identity(NameOptions options = {}, Site site = Site::here());
};

// Axis i of an example is axis dims[i - 1], counted from 1: Permute({2, 1})
// swaps two axes, [n, a, b] -> [n, b, a].
struct Permute : Layer {
  explicit Permute(std::vector<int64_t> dims, NameOptions options = {},
                   Site site = Site::here());
};
// [n, c] -> [n, times, c].
struct RepeatVector : Layer {
  explicit RepeatVector(int64_t times, NameOptions options = {},
                        Site site = Site::here());
};

struct EinsumDenseOptions {
  std::string activation = {};
  // Letters of the result that the bias has; none: no bias.
  std::string bias_axes = {};
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
};
// activation(einsum(equation, x, kernel) + bias). The equation has two operands
// and a result, "abc,cd->abd", in which "..." may stand for leading axes.
// output_shape: the result's axes without the first; -1 if the input determines
// it.
struct EinsumDense : Layer {
  EinsumDense(std::string equation, Shape output_shape,
              EinsumDenseOptions options = {}, Site site = Site::here());
};

// The two axes that Dot sums over: 1, -1, or {2, 1}.
struct DotAxes {
  DotAxes(int64_t both) : first(both), second(both) {}  // NOLINT
  DotAxes(int64_t first, int64_t second) : first(first), second(second) {}
  int64_t first, second;
};
struct DotOptions {
  bool normalize = false;  // to norm 1 along the axes: cosines
  std::string name = {};
  OwnPolicy dtype = {};
};
// Products of two inputs per example, summed over an axis of each: [n, a...,
// b...]; for two [n, c]: [n, 1].
struct Dot : Layer {
  explicit Dot(DotAxes axes, DotOptions options = {}, Site site = Site::here());
};

// Scales to norm 1 over the axes.
struct UnitNormalization : Layer {
  explicit UnitNormalization(std::vector<int64_t> axis = {-1},
                             NameOptions options = {},
                             Site site = Site::here());
};
struct RMSNormalizationOptions {
  double epsilon = 1e-6;
  std::string name = {};
  OwnPolicy dtype = {};
  int64_t axis = -1;
};
// x / sqrt(mean(x^2) + epsilon) * scale over the axis, [..., c] ->
// [..., c], with a weight scale [c] (Zhang and Sennrich 2019).
struct RMSNormalization : Layer {
  explicit RMSNormalization(RMSNormalizationOptions options = {},
                            Site site = Site::here());
};

struct ActivityRegularizationOptions {
  double l1 = 0;
  double l2 = 0;
  std::string name = {};
  OwnPolicy dtype = {};
};
// Returns the input unchanged and adds l1 * sum |x| + l2 * sum x^2, divided by
// the number of examples, to the training loss.
struct ActivityRegularization : Layer {
  explicit ActivityRegularization(ActivityRegularizationOptions options = {},
                                  Site site = Site::here());
};

struct SpectralNormalizationOptions {
  int64_t power_iterations = 1;
  std::string name = {};
  OwnPolicy dtype = {};
};
// `layer` with its kernel (or embeddings) divided by the largest singular value
// of the kernel as a matrix [..., filters]: training estimates it again in each
// step, by power iterations that continue the last ones, and writes the kernel
// (Miyato et al. 2018). Otherwise the kernel keeps its last value.
struct SpectralNormalization : Layer {
  explicit SpectralNormalization(Layer layer,
                                 SpectralNormalizationOptions options = {},
                                 Site site = Site::here());
};

// In training, drops elements in a way that keeps mean 0 and variance 1, for
// nets of "selu" (Klambauer et al. 2017).
struct AlphaDropout : Layer {
  explicit AlphaDropout(double rate, DropoutOptions options = {},
                        Site site = Site::here());
};

namespace layers {
using keras::ActivityRegularization;
using keras::AlphaDropout;
using keras::Dot;
using keras::EinsumDense;
using keras::Identity;
using keras::Lambda;
using keras::Permute;
using keras::RepeatVector;
using keras::RMSNormalization;
using keras::SpectralNormalization;
using keras::UnitNormalization;

// Merges as functions, for tensors or for values of a model.
Tensor add(const Tensors& x, Site site = Site::here());
Tensor subtract(const Tensors& x, Site site = Site::here());
Tensor multiply(const Tensors& x, Site site = Site::here());
Tensor average(const Tensors& x, Site site = Site::here());
Tensor maximum(const Tensors& x, Site site = Site::here());
Tensor minimum(const Tensors& x, Site site = Site::here());
Tensor concatenate(const Tensors& x, int64_t axis = -1,
                   Site site = Site::here());
Tensor dot(const Tensors& x, DotAxes axes, bool normalize = false,
           Site site = Site::here());
KerasTensor add(const KerasTensors& x, Site site = Site::here());
KerasTensor subtract(const KerasTensors& x, Site site = Site::here());
KerasTensor multiply(const KerasTensors& x, Site site = Site::here());
KerasTensor average(const KerasTensors& x, Site site = Site::here());
KerasTensor maximum(const KerasTensors& x, Site site = Site::here());
KerasTensor minimum(const KerasTensors& x, Site site = Site::here());
KerasTensor concatenate(const KerasTensors& x, int64_t axis = -1,
                        Site site = Site::here());
KerasTensor dot(const KerasTensors& x, DotAxes axes, bool normalize = false,
                Site site = Site::here());
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_CORE_LAYERS_H_
