// layers: functions with weights (tf.keras.layers).
//
// A Layer is a value handle; copies share the weights. Calling it with tensors
// computes at once, or becomes part of the trace it is called in; calling it
// with KerasTensors describes a model (models.h). Weights are made at the first
// call, outside any trace and tape. A device scope open where a layer was made
// counts as innermost whenever it is called.
// Errors name the layer and the line where it was made. Thread-safe once built;
// the first call may come from several threads.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_LAYERS_H_
#define BERTH_KERAS_LAYERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/keras/constraints.h"
#include "berth/keras/initializers.h"
#include "berth/keras/mixed_precision.h"
#include "berth/keras/regularizers.h"
#include "berth/shape.h"
#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth::keras {

class Config;  // keras/saving.h
class Layer;
struct LayerState;  // keras/layer_state.h
struct KerasNode;   // keras/keras_node.h

struct WeightOptions {
  bool trainable = true;
  // How writes by call() in replicas of strategy.run() are combined.
  VariableAggregation aggregation = VariableAggregation::kNone;
  Regularizer regularizer = {};  // its penalty is one of losses()
  Constraint constraint = {};    // to be kept by fit's updates
};

// What a layer does. Derive from it for a layer or a model of your own:
//   class Residual : public keras::LayerBase {
//    public:
//     Residual() : LayerBase("residual") {}
//     Tensors call(const Tensors& x, bool) override {
//       return {x[0] + dense_(x[0])};
//     }
//    private:
//     keras::Layer dense_ = track(keras::Dense(64));
//   };
//   auto layer = keras::make_layer<Residual>();
//   auto model = keras::Model::make<Residual>();
class LayerBase {
 public:
  // `type` names the layer if `name` is empty: dense, dense_1, ...
  explicit LayerBase(const std::string& type, const std::string& name = {},
                     Site site = Site::here());
  virtual ~LayerBase();
  LayerBase(const LayerBase&) = delete;
  LayerBase& operator=(const LayerBase&) = delete;

  // Makes the weights for inputs with these shapes, with add_weight(); called
  // once, before the first call(). Batch dimensions may be unknown.
  virtual void build(const std::vector<Shape>& inputs);
  // Computes the outputs. Dropout and batch normalization depend on `training`.
  virtual Tensors call(const Tensors& inputs, bool training) = 0;
  // Returns the masks of the outputs (recurrent_layers.h), empty tensors or
  // none for those without; `masks` are those of the inputs. Layers of Keras
  // behave as there; others pass none on.
  virtual Tensors compute_mask(const Tensors& inputs, const Tensors& masks);
  // The mask that came with an input of call(), or an empty tensor.
  static Tensor mask_of_input(const Tensor& input);

  // The fields that make another layer like it, without name and trainable
  // (keras/saving.h). Throws errors::FailedPrecondition unless your class
  // overrides it.
  virtual Config get_config() const;

  const std::string& name() const;
  Site site() const;  // where it was made
  // What it computes in (mixed_precision.h): the global policy at its creation.
  // Setting it, before the first call, sets that of the parts, too.
  const DTypePolicy& dtype_policy() const;
  void set_dtype_policy(const DTypePolicy& policy);
  DType compute_dtype() const { return dtype_policy().compute_dtype(); }
  DType variable_dtype() const { return dtype_policy().variable_dtype(); }
  LayerState& state() const { return *state_; }

 protected:
  // Makes a variable "layer/name" on the layer's device; in build() only.
  // `aggregation`: how writes by call() in replicas are combined.
  Variable add_weight(
      const std::string& name, const Shape& shape,
      const Initializer& initializer, bool trainable = true,
      VariableAggregation aggregation = VariableAggregation::kNone);
  Variable add_weight(const std::string& name, const Shape& shape,
                      const Initializer& initializer,
                      const WeightOptions& options);
  // Adds a scalar to the training loss, computed by `fn` in each step, from
  // weights for example; in the constructor or build().
  void add_loss(std::function<Tensor()> fn);
  // Adds a scalar that depends on the inputs; in call() only.
  void add_loss(const Tensor& loss);
  // Logs the mean over an epoch of the mean of `value` under `name`, weighted
  // by the number of examples of each batch. In call() only; without a name it
  // has the layer's.
  void add_metric(const Tensor& value, const std::string& name = {});
  // Adds the penalty of each output of call(), divided by the number of
  // examples, to the training loss.
  void set_activity_regularizer(Regularizer regularizer);
  // false: under a mixed policy call() gets inputs unchanged and weights in
  // float32, without casts; in the constructor.
  void set_autocast(bool autocast);
  // Makes `layer` a part: its weights count as this layer's.
  Layer track(Layer layer);
  // Throws errors::InvalidArgument: `message`, the layer and its line.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::unique_ptr<LayerState> state_;
};

// A value of a model that is being described: a shape, whose first dimension
// (the batch) is unknown, and its origin.
class KerasTensor {
 public:
  const Shape& shape() const;
  DType dtype() const;
  const std::shared_ptr<KerasNode>& node() const { return node_; }
  int index() const { return index_; }

  KerasTensor(std::shared_ptr<KerasNode> node, int index)
      : node_(std::move(node)), index_(index) {}

 private:
  std::shared_ptr<KerasNode> node_;
  int index_;
};
using KerasTensors = std::vector<KerasTensor>;

class Layer {
 public:
  // Throws errors::InvalidArgument for null.
  explicit Layer(std::shared_ptr<LayerBase> base);
  // The InputLayer of an Input(), for the front of a Sequential. Throws
  // errors::InvalidArgument for what a layer has computed.
  Layer(const KerasTensor& input);

  // Computes. The default of `training` is that of the enclosing call, else
  // false. Throws errors::InvalidArgument for inputs that do not fit.
  Tensor operator()(const Tensor& x,
                    std::optional<bool> training = std::nullopt) const;
  Tensors operator()(const Tensors& x,
                     std::optional<bool> training = std::nullopt) const;
  // Describes; makes the weights. A layer with several outputs is an error.
  KerasTensor operator()(const KerasTensor& x) const;
  KerasTensor operator()(const KerasTensors& x) const;
  // For anything else.
  template <class T>
  requires(!std::is_convertible_v<T, Tensor> &&
           !std::is_convertible_v<T, Tensors> &&
           !std::is_convertible_v<T, KerasTensor> &&
           !std::is_convertible_v<T, KerasTensors>) Tensor
  operator()(const T&, std::optional<bool> = std::nullopt) const {
    static_assert(std::is_convertible_v<T, Tensor>,
                  "a layer is called with a Tensor, a KerasTensor or a list of "
                  "one of them");
    return {};
  }
  // Describes a layer with any number of outputs.
  KerasTensors outputs_of(const KerasTensors& x) const;

  const std::string& name() const { return base_->name(); }
  // Its position: the names of the layers in whose calls it was built, then its
  // own, "model/block/dense".
  std::string path() const;
  bool built() const;
  // Makes the weights for inputs with these shapes, whose first dimension may
  // be -1, without computing anything.
  void build(const std::vector<Shape>& inputs, DType dtype = float32) const;

  // For the layer's only call with KerasTensors, or for a model: its inputs and
  // outputs. A new model of them shares the weights:
  //   keras::Model features(model.input(), model.get_layer("conv").output());
  // Throw errors::FailedPrecondition for a layer that is part of no described
  // model, or was called several times; errors::InvalidArgument for several
  // inputs (outputs): inputs() and outputs() have them all.
  KerasTensor input() const;
  KerasTensor output() const;
  KerasTensors inputs() const;
  KerasTensors outputs() const;
  // The output shape for such inputs; makes the weights. The batch may be -1.
  Shape compute_output_shape(const Shape& input, DType dtype = float32) const;
  std::vector<TensorSpec> compute_output_spec(
      const std::vector<TensorSpec>& inputs) const;
  // {"input_shape": ...} of a layer that is built, and a build from the result
  // of get_build_config(). Throw errors::FailedPrecondition, InvalidArgument.
  Config get_build_config() const;
  void build_from_config(const Config& config) const;
  // Whether masks of inputs are passed on to outputs, or read.
  bool supports_masking() const;
  // Whether the weights, with those of the parts, count as trainable; a
  // batch normalization that does not train uses its moving averages. A model
  // reads it at compile().
  bool trainable() const;
  void set_trainable(bool trainable) const;
  // As in LayerBase; returns the layer:
  // keras::Dense(10).set_dtype_policy("float32")
  const DTypePolicy& dtype_policy() const { return base_->dtype_policy(); }
  Layer set_dtype_policy(const DTypePolicy& policy) const;
  DType compute_dtype() const { return base_->compute_dtype(); }
  DType variable_dtype() const { return base_->variable_dtype(); }
  // What floating inputs are cast to.
  DType input_dtype() const { return compute_dtype(); }
  // The scope in which the layer was made; "" if there was none.
  const std::string& requested_device() const;

  // Trainable ones, then the others, layer by layer. None before the build.
  std::vector<Variable> weights() const;
  std::vector<Variable> trainable_variables() const;
  std::vector<Variable> non_trainable_variables() const;
  // Keras' other names.
  std::vector<Variable> variables() const { return weights(); }
  std::vector<Variable> trainable_weights() const {
    return trainable_variables();
  }
  std::vector<Variable> non_trainable_weights() const {
    return non_trainable_variables();
  }
  // What the layer and its parts add to the training loss whatever the inputs,
  // computed now: penalties of trainable weights, then add_loss(fn).
  Tensors losses() const;
  // Weights with their constraints.
  std::vector<std::pair<Variable, Constraint>> constraints() const;
  // Number of elements of the weights.
  int64_t count_params() const;
  // Values of weights(), in its order.
  Tensors get_weights() const;
  // Throws errors::InvalidArgument unless number and shapes are equal.
  void set_weights(const Tensors& values) const;

  // The fields that make another layer like it: name, trainable, and its own,
  // as Keras names them; and a new layer of this class, made from such fields,
  // with weights of its own (keras/saving.h). Throw as layers::serialize() and
  // deserialize().
  Config get_config() const;
  Layer from_config(const Config& config, Site site = Site::here()) const;

  const std::shared_ptr<LayerBase>& base() const { return base_; }

 private:
  std::shared_ptr<LayerBase> base_;
};

template <class T, class... Args>
Layer make_layer(Args&&... args) {
  return Layer(std::make_shared<T>(std::forward<Args>(args)...));
}

// Height and width: 3, or {3, 5}.
struct Size2D {
  Size2D(int64_t both) : h(both), w(both) {}  // NOLINT
  Size2D(int64_t h, int64_t w) : h(h), w(w) {}
  int64_t h, w;
};

// Activations are named as in activations.h.

struct DenseOptions {
  std::string activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // for the outputs
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
};
// activation(x kernel + bias): [..., in] -> [..., units].
struct Dense : Layer {
  explicit Dense(int64_t units, DenseOptions options = {},
                 Site site = Site::here());
};

struct Conv2DOptions {
  std::string activation = {};
  std::string padding = "valid";  // or "same"
  Size2D strides = 1;
  Size2D dilation_rate = 1;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // for the outputs
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
  int64_t groups = 1;  // of channels, each with filters / groups filters
};
// Correlation with a kernel [kh, kw, c / groups, filters]:
// [n, h, w, c] -> [n, oh, ow, filters].
struct Conv2D : Layer {
  Conv2D(int64_t filters, Size2D kernel_size, Conv2DOptions options = {},
         Site site = Site::here());
};

template <class Size>
struct PoolingOptions {
  std::optional<Size> strides = std::nullopt;  // pool_size when absent
  std::string padding = "valid";               // or "same"
  std::string name = {};
  OwnPolicy dtype = {};
};
using Pooling2DOptions = PoolingOptions<Size2D>;
// The maximum, or the mean, of each window: [n, h, w, c] -> [n, oh, ow, c].
struct MaxPooling2D : Layer {
  explicit MaxPooling2D(Size2D pool_size = 2, Pooling2DOptions options = {},
                        Site site = Site::here());
};
struct AveragePooling2D : Layer {
  explicit AveragePooling2D(Size2D pool_size = 2, Pooling2DOptions options = {},
                            Site site = Site::here());
};

struct NameOptions {
  std::string name = {};
  OwnPolicy dtype = {};
};
// [n, ...] -> [n, product of the rest].
struct Flatten : Layer {
  explicit Flatten(NameOptions options = {}, Site site = Site::here());
};
// [n, ...] -> [n, target...]; one dimension may be -1.
struct Reshape : Layer {
  explicit Reshape(Shape target, NameOptions options = {},
                   Site site = Site::here());
};
struct Activation : Layer {
  explicit Activation(const std::string& activation, NameOptions options = {},
                      Site site = Site::here());
};
// x * scale + offset as float32, for example images / 255.
struct RescalingOptions {
  double offset = 0;
  std::string name = {};
  OwnPolicy dtype = {};
};
struct Rescaling : Layer {
  explicit Rescaling(double scale, RescalingOptions options = {},
                     Site site = Site::here());
};

struct DropoutOptions {
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// In training, zeros each element with probability `rate` and divides the
// others by 1 - rate; otherwise does nothing.
struct Dropout : Layer {
  explicit Dropout(double rate, DropoutOptions options = {},
                   Site site = Site::here());
};

struct BatchNormalizationOptions {
  double momentum = 0.99;
  double epsilon = 0.001;
  bool center = true;  // has beta
  bool scale = true;   // has gamma
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
  // In training, each of this many equal consecutive groups of the batch has
  // its own moments, like replicas of TensorFlow; 0, 1: the batch is one group.
  // Batches must be multiples of it.
  int64_t statistics_groups = 1;
  // Groups of channels; each has its own moments and weights.
  int64_t axis = -1;
};
// Normalises along an axis, [..., c] -> [..., c] (Ioffe and Szegedy 2015):
// with the batch's moments in training, which also move the moving averages,
// else with the moving averages.
struct BatchNormalization : Layer {
  explicit BatchNormalization(BatchNormalizationOptions options = {},
                              Site site = Site::here());
};

// The sum of inputs of one shape; the concatenation of inputs along `axis`.
struct Add : Layer {
  explicit Add(NameOptions options = {}, Site site = Site::here());
};
struct ConcatenateOptions {
  int64_t axis = -1;
  std::string name = {};
  OwnPolicy dtype = {};
};
struct Concatenate : Layer {
  explicit Concatenate(ConcatenateOptions options = {},
                       Site site = Site::here());
};

struct InputOptions {
  DType dtype = float32;
  std::string name = {};
};
// Declares inputs [n, shape...]; the first layer of a Sequential that is built
// at once.
struct InputLayer : Layer {
  explicit InputLayer(Shape shape, InputOptions options = {},
                      Site site = Site::here());
};
// An input of a functional model, or in front of the layers of a Sequential.
KerasTensor Input(Shape shape, InputOptions options = {},
                  Site site = Site::here());

namespace layers {
using keras::Activation;
using keras::Add;
using keras::AveragePooling2D;
using keras::BatchNormalization;
using keras::Concatenate;
using keras::Conv2D;
using keras::Dense;
using keras::Dropout;
using keras::Flatten;
using keras::InputLayer;
using keras::Layer;
using keras::MaxPooling2D;
using keras::Rescaling;
using keras::Reshape;
}  // namespace layers

// Applies an activation by name. Throws errors::InvalidArgument for an unknown
// one.
Tensor apply_activation(const std::string& activation, const Tensor& x,
                        Site site = Site::here());

// Restarts the numbering of layer names (tf.keras.backend.clear_session).
void clear_session();

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_H_
